"""llama.cpp and Ollama on real devices: printed buffers, and what a driver counted in all."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from engine.budget.model import Region
from engine.devices.device import DeviceKind
from engine.evidence import total
from engine.runtimes.llama_cpp import shape_of
from engine.units import MIB
from tests.truth.scoring.scores import Score, law_of, span
from tests.truth.scoring.versions import range_of, release_of, version_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from engine.budget.model import RankBudget
    from engine.evidence import Estimate
    from tests.truth.scoring.ask import Asked

_PRINTED_BYTES = 0.0051 * MIB
"""The log has two decimals of a MiB."""
_PAGE_BYTES = 2**14
"""A mapped buffer of Metal begins with the page of its first tensor (ggml-metal)."""
_ODD_FILE = 0.001
"""A file that differs by more from its mix has types of its own."""
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
    buffers = asked.sizing.budget.llama_cpp
    output = buffers.output_buffer if buffers else 0
    found = _summed(printed.get("buffers", {}), is_one=not host)
    for (index, part), (wanted, within) in found.items():
        rank = host if index is None else gpus[index] if index < len(gpus) else None
        if rank is not None:
            ours = total(_estimates(rank, part))
            beside = output if part == "compute" and rank is host and not _has_parts(rank) else 0
            yield _score(asked, f"printed {part} buffers", (wanted + beside, within), ours)
    if "encoders" in printed:
        yield _score(asked, "encoders", printed["encoders"], total(_encoders(ranks)))
    if "card" in printed and gpus:
        yield _total(asked, gpus[0])


def _summed(
    buffers: dict[str, dict[str, float]], *, is_one: bool
) -> dict[tuple[int | None, str], tuple[float, float]]:
    """(number of the GPU or None for the host, part) -> bytes, and half a unit of every line.

    All is on one device where the memory is one.
    """
    found: dict[tuple[int | None, str], tuple[float, float]] = {}
    for name, held in buffers.items():
        number = re.fullmatch(r"(?:CUDA|ROCm|Vulkan|MTL)(\d+)", name)
        index = int(number[1]) if number else 0 if is_one or name == "Metal_Mapped" else None
        for key, size in held.items():
            if key in _KEYS:
                place = (index, _KEYS[key])
                within = _PRINTED_BYTES + (_PAGE_BYTES if name == "Metal_Mapped" else 0)
                before = found.get(place, (0.0, 0.0))
                found[place] = before[0] + size * MIB, before[1] + within
    return found


def _has_parts(rank: RankBudget) -> bool:
    """Whether the output buffer stands apart: in a bound it doesn't."""
    return bool(rank.regions[Region.ACTIVATIONS].estimate.parts)


def _estimates(rank: RankBudget, part: str) -> list[Estimate]:
    found = [rank.regions[region].estimate for region in _PARTS[part]]
    # The output buffer has a line of its own, and stands beside the compute buffers.
    if part == "compute" and found[0].parts:
        return [e for e in found[0].parts if e.label == "compute buffer"]
    return found


def _encoders(ranks: Iterable[RankBudget]) -> Iterator[Estimate]:
    """Weights and work of what is in a file apart (mmproj)."""
    for rank in ranks:
        for region in (Region.WEIGHTS, Region.ACTIVATIONS):
            parts = rank.regions[region].estimate.parts
            yield from (part for part in parts if part.label.startswith("encoders"))


def _total(asked: Asked, rank: RankBudget) -> Score:
    """What the driver counted, with the file's real size in place of our count of its tensors."""
    facts = asked.record.facts
    wanted, within = asked.record.printed["card"]
    held = [r.estimate for kind, r in rank.regions.items() if kind is not Region.HEADROOM]
    if facts.get("reads_prompt"):
        held += [e for e in rank.moments.sustained if "RAM" not in e.label]
    buffers = asked.sizing.budget.llama_cpp
    assert buffers is not None
    if facts.get("counter") == "rocm":
        # The driver counts what the GPU was given: the host's own buffers are the process's.
        wanted += buffers.output_buffer + sum(
            size
            for kind in (buffers.model_buffers, buffers.compute_buffers)
            for name, size in kind.items()
            if name in ("CPU", "ROCm_Host")
        )
    if "file_bytes" in facts:
        weights = shape_of(asked.plan.model, asked.plan.deployment.weight_format).weights
        wanted += weights.size_bytes - facts["file_bytes"]
        # Of such a file the embedding's type is not known, between Q4_K and Q8_0: it counts where
        # the host's copy is left out (ROCm), or where a tied one is held twice (Vulkan).
        if abs(weights.size_bytes - facts["file_bytes"]) > _ODD_FILE * facts["file_bytes"]:
            elements = asked.plan.model.spec.vocab_size * asked.plan.model.spec.hidden_size
            within += elements // 4 if weights.is_tied is (facts["counter"] == "vulkan") else 0
    return _score(asked, "card", (wanted, within), total(held))


def _score(asked: Asked, figure: str, printed: tuple[float, float], ours: Estimate) -> Score:
    record, version = asked.record, version_of(asked.record)
    builds = range_of(record.runtime, version)
    return Score(
        record.id,
        record.runtime,
        "real devices" if builds == "all" else f"real devices, {builds}",
        asked.plan.model.spec.model_type,
        figure,
        printed[0],
        *span(ours),
        printed[1],
        is_region=True,
        traits=frozenset({"device"}),
        release=release_of(version),
        law=law_of([ours]),
    )
