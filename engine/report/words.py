"""Phrases of the report: sizes, margins, settings, the command."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from engine.deployment.spec import Deployment
from engine.devices.device import Device, DeviceKind, Vendor
from engine.evidence import Basis, Estimate
from engine.fit.verdict import Fit
from engine.formats.weights import FORMATS
from engine.runtimes import unpacking
from engine.runtimes.loading import in_words, loaded
from engine.runtimes.registry import family
from engine.text import printable
from engine.units import UnitSystem, format_gib

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import date

    from engine.budget.model import Budget
    from engine.fit.verdict import Verdict

DASH = "\N{EN DASH}"
_DTYPES = {
    "bfloat16": "BF16",
    "float16": "F16",
    "float32": "F32",
    "bf16": "BF16",
    "fp16": "FP16",
    "f16": "F16",
    "fp32": "FP32",
}


_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August"),
    *("September", "October", "November", "December"),
)


_BASES = {
    Basis.READ: "summed from a file header, or read from the device",
    Basis.EXACT: "follows from whole numbers by the runtime’s own rule",
    Basis.SETTING: "what a setting asks for",
    Basis.MEASURED: "read from the device now",
    Basis.LEARNED: "from this machine’s own runs",
    Basis.FITTED: "a formula fitted to measured runs, with their spread",
    Basis.ASSUMED: "a default without evidence for this case",
    Basis.BOUND: "a limit, since something isn’t understood",
}


def bases(used: Iterable[Basis]) -> str:
    """What the words for the basis mean, for those that are used, the surest first."""
    there = set(used)
    return " ".join(f"{b.word}: {meaning}." for b, meaning in _BASES.items() if b in there)


def day(on: date) -> str:
    """``29 November 2026``, whatever the computer's language."""
    return f"{on.day} {_MONTHS[on.month - 1]} {on.year}"


def number(size_bytes: int, unit: UnitSystem) -> str:
    """``14.99``, for columns whose heading carries the unit."""
    return format_gib(size_bytes, unit, unit=False)


def span(estimate: Estimate, unit: UnitSystem) -> str:
    """``4.12 - 5.89`` with an en dash; ``exact`` where it is; empty for a setting or nothing."""
    if not estimate.is_point:
        low, high = number(estimate.low_bytes, unit), number(estimate.high_bytes, unit)
        return "within 0.01" if low == high else f"{low} {DASH} {high}"
    return "exact" if estimate.basis in {Basis.READ, Basis.EXACT} else ""


def margin(verdict: Verdict, unit: UnitSystem) -> str:
    """``0.3 GiB to spare``, ``2.7 GiB over``."""
    if verdict.fit is Fit.UNKNOWN:
        return "not known"
    size = format_gib(abs(verdict.margin_bytes), unit, digits=1)
    return f"{size} over" if verdict.margin_bytes < 0 else f"{size} to spare"


def dtype(name: str) -> str:
    """``BF16`` for ``bfloat16``; other names as they are."""
    return _DTYPES.get(name.lower(), printable(name, 40))


def weights(budget: Budget) -> str:
    """The weight format: ``BF16, as stored``."""
    chosen = budget.deployment.weight_format
    found = loaded(budget.model, budget.deployment.runtime)
    name = found.name if chosen == "auto" else chosen
    known = FORMATS.get(name)
    label = known.label if known else dtype(name)
    said = in_words(found, label) if chosen == "auto" else label
    return said + unpacking.in_words(budget)


def kv_cache(budget: Budget) -> str:
    """The KV cache's dtype and blocks: ``BF16, blocks of 16``."""
    plan, spec = budget.deployment, budget.model.spec
    if family(plan.runtime) == "llama.cpp":
        key, value = dtype(plan.cache_type_k or "f16"), dtype(plan.cache_type_v or "f16")
        return key if key == value else f"{key} keys, {value} values"
    name = plan.kv_cache_dtype
    shown = dtype(spec.kv_cache_dtype or spec.dtype) if name == "auto" else dtype(name).upper()
    block = budget.sequence_state.block_size
    return f"{shown}, blocks of {block}" if block else shown


def requests(count: int) -> str:
    """``1 request``, ``4 requests``."""
    return "1 request" if count == 1 else f"{count:,} requests"


def allocator(device: Device) -> str:
    """Who hands out the memory up to the load line."""
    if device.kind is DeviceKind.HOST:
        return "programs"
    names = {Vendor.NVIDIA: "CUDA", Vendor.AMD: "ROCm", Vendor.APPLE: "Metal"}
    return names.get(device.vendor, "the driver")


def command(model_id: str, plan: Deployment, budget: Budget) -> str:
    """The command that gives the same answer in a terminal."""
    parts = ["plimsoll", "size", printable(model_id, 200)]
    default = Deployment()
    for entry in fields(plan):
        value = getattr(plan, entry.name)
        if value == getattr(default, entry.name) and entry.name != "runtime":
            continue
        parts += _option(entry.name, value)
    slots = budget.machine.slots
    device = slots[0].device
    if not budget.machine.is_here:
        parts += ["--gpu", device.name, "--gpu-count", str(len(slots))]
    return " ".join(f'"{p}"' if " " in p else p for p in parts)


def _option(name: str, value: object) -> list[str]:
    option = f"--{name.replace('_', '-')}"
    if value is True:
        return [option]
    if value is False:
        return [f"--no-{name.replace('_', '-')}"]
    if isinstance(value, tuple):
        return [option, ",".join(str(v) for v in value)]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]  # a tuple of numbers, by Deployment
    return [option, printable(str(value), 80)]
