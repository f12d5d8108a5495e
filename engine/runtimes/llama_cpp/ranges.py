"""How far the fitted compute buffers may be off, and what a process takes besides buffers.

The ranges hold 99 % of 2,842 measured runs. Misses come in whole hidden states (T × n_embd ×
4 bytes): the allocator found, or did not find, a hole for one more tensor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.devices.device import DeviceKind
from engine.evidence import Basis, Estimate, exactly, total
from engine.runtimes import overheads
from engine.units import MIB
from engine.words import figures, tr, tr_later

if TYPE_CHECKING:
    from engine.devices.device import Device

_COMPUTE_SOURCE = tr_later(
    "phase table fitted to 2,842 runs of llama.cpp b11549 and b11434 (42 models, 25 architectures)"
)


@dataclass(frozen=True, slots=True)
class _Spread:
    units_below: float
    share_below: float
    units_above: float
    share_above: float


_PLAIN = _Spread(1, 0.02, 1, 0.05)
_HYBRID = _Spread(2, 0.10, 3, 0.20)
_SPLIT = _Spread(2, 0.10, 8, 0.30)


def compute(
    likely_bytes: int,
    unit_bytes: int,
    *,
    open_bytes: tuple[int, int],
    is_plain: bool,
    is_split: bool,
    doubtful: bool,
) -> Estimate:
    """A compute buffer with its range.

    Args:
        likely_bytes: by the phase table.
        unit_bytes: one hidden state of the micro-batch.
        open_bytes: what it may hold less, and more, by where the allocator finds holes.
        is_plain: dense or MoE attention model without recurrent state.
        is_split: the graph is split between devices.
        doubtful: the architecture is not understood.
    """
    spread = _SPLIT if is_split else _PLAIN if is_plain else _HYBRID
    below = round(spread.units_below * unit_bytes + spread.share_below * likely_bytes)
    above = round(spread.units_above * unit_bytes + spread.share_above * likely_bytes)
    below, above = max(below, open_bytes[0]), max(above, open_bytes[1])
    if not likely_bytes:
        return exactly(0, Basis.EXACT, tr("no graph runs there"), label=tr("compute buffer"))
    return Estimate(
        low_bytes=max(likely_bytes - below, 0),
        likely_bytes=likely_bytes,
        high_bytes=likely_bytes + (max(above, likely_bytes) if doubtful else above),
        basis=Basis.ASSUMED if doubtful else Basis.FITTED,
        source=tr(_COMPUTE_SOURCE),
        formula=tr("inputs + largest phase = {likely_bytes} MiB").format(
            likely_bytes=figures(format(likely_bytes / MIB, ",.1f"))
        ),
        label=tr("compute buffer"),
    )


def device_runtime(device: Device, backend: str, held_bytes: int) -> Estimate:
    """Device context and libraries of one GPU, and the page tables of what it holds."""
    tables = overheads.page_tables(device, backend, held_bytes)
    context = overheads.ggml(device, backend)
    return total((context, tables)) if tables.high_bytes else context


def process(device: Device, work_bytes: int, *, beside_gpu: bool) -> Estimate:
    """What a llama.cpp process takes of host RAM besides its buffers.

    Args:
        device: the host.
        work_bytes: the CPU backend's work area for the largest product.
        beside_gpu: whether a GPU driver is loaded into the process as well.
    """
    if device.kind is not DeviceKind.HOST:
        return exactly(0, Basis.EXACT, tr("counted on the host"), label=tr("process"))
    if beside_gpu:
        return Estimate(
            80 * MIB, 300 * MIB, 900 * MIB, Basis.ASSUMED,
            tr("driver libraries mapped into the process; not measured for llama.cpp"),
            "300 MiB", tr("process and driver libraries"),
        )  # fmt: skip
    base = Estimate(
        25 * MIB, 60 * MIB, 160 * MIB, Basis.FITTED,
        tr(
"31 real loads on the CPU: heap and libraries beside the mapped "
"weights and the cache"
),
        "60 MiB", tr("heap and libraries"),
    )  # fmt: skip
    work = Estimate(
        0, work_bytes, 2 * work_bytes, Basis.FITTED,
        tr("ggml-cpu: the right-hand side of the largest product, quantised"),
        f"{figures(format(work_bytes / MIB, ',.1f'))} MiB", tr("work area"),
    )  # fmt: skip
    return total((base, work))
