"""The words in the picture: what stands at the load line and in the bands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.architecture.spec import Direction
from engine.budget.drawn import drawn_bytes, drawn_estimate, needed_bytes
from engine.budget.model import RankBudget, Region
from engine.devices.device import Device, DeviceKind, Vendor
from engine.evidence import Basis
from engine.fit.words import requests_at_once
from engine.together import holders
from engine.units import UnitSystem, format_bytes, format_gib
from engine.words import grouped, tr, tr_count, tr_later

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.budget.model import Budget
    from engine.evidence import Estimate

_LOAD_LINES = {
    Vendor.NVIDIA: tr_later("Load line: {size} that CUDA can allocate"),
    Vendor.AMD: tr_later("Load line: {size} that ROCm can allocate"),
    Vendor.INTEL: tr_later("Load line: {size} that the driver can allocate"),
    Vendor.APPLE: tr_later("Load line: {size} that Metal lets the GPU use"),
    Vendor.CPU: tr_later("Load line: {size} of memory for programs"),
}
_LOAD_LINE_SET = tr_later("Load line: {size} by your setting")
_LONGEST_NOTE = 60


@dataclass(frozen=True, slots=True)
class Caption:
    """One line in the middle of the bytes from ``bottom_bytes`` to ``top_bytes``."""

    bottom_bytes: int
    top_bytes: int
    texts: tuple[str, ...]
    """Wordings, longest first; the first that has room is shown."""


def is_open(budget: Budget, rank: RankBudget, region: Region) -> bool:
    """Whether more than what is drawn may be needed, and nobody knows how much."""
    is_bound = drawn_estimate(rank, region).basis is Basis.BOUND
    return is_bound and budget.direction(region) in (Direction.LOWER, Direction.EITHER)


def drawn_sign(budget: Budget, rank: RankBudget, region: Region) -> str:
    """The sign before the height of ``region``, where that is only a bound."""
    return bound_sign(budget, region, drawn_estimate(rank, region))


def bound_sign(budget: Budget, region: Region, estimate: Estimate) -> str:
    """The sign before a figure of ``region`` that is only a bound."""
    direction = budget.direction(region)
    return direction.sign if direction and estimate.basis is Basis.BOUND else ""


def load_texts(device: Device, unit: UnitSystem) -> tuple[str, ...]:
    """What stands at the load line, longest wording first."""
    size = format_gib(device.allocatable.likely_bytes, unit)
    is_set = device.allocatable.basis is Basis.SETTING
    longest = _LOAD_LINE_SET if is_set else _LOAD_LINES[device.vendor]
    return (
        tr(longest).format(size=size),
        tr("Load line: {size}").format(size=size),
        tr("Load line"),
    )


def reserve_label(device: Device) -> str:
    """Who keeps what lies between the load line and the device's total."""
    if device.vendor is Vendor.APPLE:
        return "macOS"
    return tr("Driver") if device.kind is DeviceKind.DISCRETE else tr("System")


def reserve_text(device: Device, unit: UnitSystem) -> str:
    """A sentence for that part where it is large: memory that the whole machine shares."""
    if device.kind is DeviceKind.DISCRETE:
        return ""
    kept = format_gib(device.total_bytes - device.allocatable.likely_bytes, unit)
    if device.vendor is Vendor.APPLE:
        return tr("{size} that macOS keeps for itself and for apps").format(size=kept)
    return tr("{size} that the system keeps for itself and for apps").format(size=kept)


def captions(budget: Budget, rank: RankBudget, unit: UnitSystem) -> tuple[Caption, ...]:
    """The lines in the bands of other models, weights and KV cache."""
    foreign = drawn_bytes(rank, Region.FOREIGN)
    weights = drawn_bytes(rank, Region.WEIGHTS)
    bottom = foreign + weights
    made: list[Caption] = list(_neighbours(rank, unit))
    if words := _weights_texts(budget, rank):
        made.append(Caption(foreign, bottom, words))
    needed = needed_bytes(rank)
    pool = rank.regions[Region.KV_CACHE].estimate.likely_bytes
    if needed > 0:
        sign = bound_sign(budget, Region.KV_CACHE, rank.needed)
        texts = tuple(f"{sign}{text}" for text in _needed_texts(budget, needed, unit))
        made.append(Caption(bottom, bottom + needed, texts))
    if rank.has_pool and pool > needed:
        spare = format_gib(pool - needed, unit)
        words = (
            tr("{size} spare in the pool").format(size=spare),
            tr("{size} spare").format(size=spare),
        )
        made.append(Caption(bottom + needed, bottom + pool, words))
    elif rank.has_pool and pool < needed:
        # Below the line of what is needed, in the same band.
        left = tr("{size} are left for it").format(size=format_gib(pool, unit))
        middle = bottom + needed // 2
        made[-1] = Caption(middle, bottom + needed, made[-1].texts)
        made.append(Caption(bottom, middle, (left,)))
    return tuple(made)


def others_edges(rank: RankBudget) -> tuple[int, ...]:
    """Where one model's share of the others ends and the next one's begins."""
    edges: list[int] = []
    for holder in holders(rank.slot.foreign)[:-1]:
        edges.append((edges[-1] if edges else 0) + holder.likely_bytes)
    return tuple(edge for edge in edges if edge)


def _neighbours(rank: RankBudget, unit: UnitSystem) -> Iterator[Caption]:
    """A line in the share of each model that runs beside the plan's."""
    bottom, *models = holders(rank.slot.foreign)
    low = bottom.likely_bytes
    for model in models:
        high = low + model.likely_bytes
        name, size = model.label.rsplit("/", 1)[-1], format_gib(model.likely_bytes, unit)
        words = tr("{model} beside it: {size}").format(model=name, size=size)
        yield Caption(low, high, (words, name, size))
        low = high


def _weights_texts(budget: Budget, rank: RankBudget) -> tuple[str, ...]:
    region = rank.regions[Region.WEIGHTS]
    parameters = budget.model.parameters
    sums = (region.estimate, *region.estimate.parts)
    for size in (s.likely_bytes for s in sums if s.is_point):
        # Buffers beside the tensors are part of the figure, not of the product.
        if parameters and size > parameters and size % parameters == 0:
            each = size // parameters
            words = tr_count(
                "{parameters} parameters × {each} byte",
                "{parameters} parameters × {each} bytes",
                each,
            )
            return (words.format(parameters=grouped(parameters), each=each),)
    note = tr(region.note)
    return (note,) if note and len(note) <= _LONGEST_NOTE else ()


def _needed_texts(budget: Budget, needed: int, unit: UnitSystem) -> tuple[str, ...]:
    plan = budget.deployment
    each = budget.sequence_state.bytes_per_token
    size = format_gib(needed, unit)
    only = tr("{size} needed").format(size=size)
    if plan.max_model_len is None and plan.live_tokens is None:
        return (only,)
    if plan.live_tokens is not None and plan.live_tokens < (plan.max_model_len or 0):
        # vLLM asks for room for one request of full length, whatever is live.
        return (only,)
    length, requests = plan.max_model_len or 0, requests_at_once(budget)
    tokens = plan.live_tokens or requests * length
    # Block rounding may add a little; the product must give what is shown as needed.
    if each and format_gib(tokens * each, unit) == size:
        per_token = format_bytes(each, unit, _digits(each, unit))
        figures = {"tokens": grouped(tokens), "each": per_token, "size": size}
        return (
            tr("{tokens} tokens × {each} = {size} needed").format(**figures),
            tr("{tokens} tokens × {each} = {size}").format(**figures),
            only,
        )
    if plan.live_tokens is None and requests > 1:
        words = tr("{requests} × {tokens} tokens need {size}")
        return (words.format(requests=requests, tokens=grouped(length), size=size), only)
    return (tr("{tokens} tokens need {size}").format(tokens=grouped(tokens), size=size), only)


def _digits(size_bytes: int, unit: UnitSystem) -> int:
    """No decimals where the size is whole in its unit: ``128 KiB``, but ``31.88 KiB``."""
    base = 1024 if unit is UnitSystem.BINARY else 1000
    while size_bytes >= base and size_bytes % base == 0:
        size_bytes //= base
    return 0 if size_bytes < base else 2
