"""Which device each layer is on (``llama-model.cpp``, ``load_tensors``)."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate, groupby
from math import inf
from typing import TYPE_CHECKING

from engine.errors import DeploymentError
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from engine.runtimes.llama_cpp.shape import Shape

HOST = -1


@dataclass(frozen=True, slots=True)
class Placement:
    """Device index per block (``HOST`` = the CPU) and of the output layer."""

    devices: int
    blocks: tuple[int, ...]
    output: int
    cpu_experts: int
    """Blocks from the first whose experts stay on the host."""

    def runs(self) -> Iterator[tuple[int, int, int]]:
        """(device, first block, block after the last) of each run of blocks on one device."""
        start = 0
        for device, run in groupby(self.blocks):
            end = start + len(list(run))
            yield device, start, end
            start = end

    @property
    def on_host_only(self) -> bool:
        """Whether no layer is on a GPU."""
        return self.output == HOST and set(self.blocks) == {HOST}

    @property
    def is_full(self) -> bool:
        """Whether every layer, experts included, is on a GPU."""
        return self.output != HOST and HOST not in self.blocks and self.cpu_experts == 0


def place(
    shape: Shape,
    shares: Sequence[float],
    n_gpu_layers: int | None,
    n_cpu_moe: int,
    *,
    output_first: bool = True,
) -> Placement:
    """Layers to devices: the last ``n_gpu_layers`` units, the output layer the first of them.

    Args:
        shape: the model; prediction blocks count as units.
        shares: relative share of each GPU (``--tensor-split`` or free memory); empty = no GPU.
        n_gpu_layers: None or negative (llama.cpp's ``auto`` and ``all``) = all.
        n_cpu_moe: blocks from the first whose experts stay on the host.
        output_first: older builds take the output layer last, so that other layers go first.

    Raises:
        DeploymentError: a share is negative, or all are 0.
    """
    if shares and (min(shares) < 0 or not 0 < sum(shares) < inf):
        raise DeploymentError(
            tr("tensor_split wants a share of 0 or more for each GPU, not all 0."),
            field="tensor_split",
        )
    units = shape.blocks_in_file + 1
    on_gpu = units if n_gpu_layers is None or n_gpu_layers < 0 else min(n_gpu_layers, units)
    cpu_experts = min(n_cpu_moe, shape.num_layers) if shape.moe else 0
    if not output_first and on_gpu < units:
        placed = _placed(shape.num_layers, units - 1, tuple(shares), on_gpu, cpu_experts)
        return replace(placed, output=HOST)
    return _placed(shape.num_layers, units, tuple(shares), on_gpu, cpu_experts)


@lru_cache(maxsize=4096)
def _placed(
    layers: int, units: int, shares: tuple[float, ...], on_gpu: int, cpu_experts: int
) -> Placement:
    if not shares or on_gpu == 0:
        return Placement(len(shares), (HOST,) * layers, HOST, 0)
    whole = sum(shares)
    bounds = [part / whole for part in accumulate(shares)]
    start = units - on_gpu

    def device(unit: int) -> int:
        if unit < start:
            return HOST
        return min(bisect_right(bounds, (unit - start) / on_gpu), len(shares) - 1)

    blocks = tuple(device(i) for i in range(layers))
    return Placement(len(shares), blocks, device(units - 1), cpu_experts)
