"""llama.cpp and Ollama on real devices: printed buffers, and what a driver counted in all."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from engine.budget.model import Region
from engine.devices.device import DeviceKind
from engine.evidence import total
from engine.units import MIB
from tests.truth.scoring.scores import Score, span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.budget.model import RankBudget
    from engine.evidence import Estimate
    from tests.truth.scoring.ask import Asked

_PRINTED_BYTES = 0.0051 * MIB
"""The log has two decimals of a MiB."""
_PARTS = {
    "model": (Region.WEIGHTS,),
    "cache and state": (Region.KV_CACHE, Region.RECURRENT_STATE),
    "compute": (Region.ACTIVATIONS,),
}
_KEYS = {"model": "model", "kv": "cache and state", "rs": "cache and state", "compute": "compute"}


def scores(asked: Asked) -> Iterator[Score]:
    """Every buffer that is printed, per device; and the device's total."""
    printed = asked.record.printed
    ranks = asked.sizing.budget.ranks
    gpus = [rank for rank in ranks if rank.slot.device.kind is not DeviceKind.HOST]
    host = next((rank for rank in ranks if rank not in gpus), None)
    for (index, part), wanted in _summed(printed.get("buffers", {})).items():
        rank = host if index is None else gpus[index] if index < len(gpus) else None
        if rank is not None:
            ours = span(total(_estimates(rank, part)))
            yield _score(asked, f"printed {part} buffers", (wanted, _PRINTED_BYTES), ours)
    if "card" in printed and gpus:
        yield _total(asked, gpus[0])


def _summed(buffers: dict[str, dict[str, float]]) -> dict[tuple[int | None, str], float]:
    """(number of the GPU or None for the host, part) -> bytes."""
    found: dict[tuple[int | None, str], float] = {}
    for name, held in buffers.items():
        number = re.fullmatch(r"(?:CUDA|ROCm|Vulkan|MTL)(\d+)", name)
        index = int(number[1]) if number else 0 if name == "Metal_Mapped" else None
        for key, size in held.items():
            if key in _KEYS:
                place = (index, _KEYS[key])
                found[place] = found.get(place, 0) + size * MIB
    return found


def _estimates(rank: RankBudget, part: str) -> list[Estimate]:
    found = [rank.regions[region].estimate for region in _PARTS[part]]
    # The output buffer has a line of its own, and stands beside the compute buffer.
    return [found[0].parts[0]] if part == "compute" and found[0].parts else found


def _total(asked: Asked, rank: RankBudget) -> Score:
    """What the driver counted, with the file's real size in place of our count of its tensors."""
    wanted, within = asked.record.printed["card"]
    held = (r.estimate for kind, r in rank.regions.items() if kind is not Region.HEADROOM)
    file_bytes = asked.record.facts.get("file_bytes")
    if file_bytes:
        buffers = asked.sizing.budget.llama_cpp
        assert buffers is not None
        wanted += sum(buffers.model_buffers.values()) - file_bytes
    return _score(asked, "card", (wanted, within), span(total(held)))


def _score(
    asked: Asked, figure: str, printed: tuple[float, float], ours: tuple[float, float, float]
) -> Score:
    record = asked.record
    return Score(
        record.id,
        record.runtime,
        "real devices",
        asked.plan.model.spec.model_type,
        figure,
        printed[0],
        *ours,
        printed[1],
        is_region=True,
        traits=frozenset({"device"}),
    )
