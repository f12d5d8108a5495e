"""Phrases of the report: sizes, margins, settings, the command."""

from __future__ import annotations

import re
import shlex
from contextlib import suppress
from dataclasses import fields
from typing import TYPE_CHECKING

from engine.deployment.spec import Deployment
from engine.devices import catalogue
from engine.devices.device import Device, DeviceKind, Vendor
from engine.errors import DeviceError
from engine.evidence import Basis, Estimate
from engine.fit.verdict import Fit
from engine.formats.weights import FORMATS
from engine.runtimes import registry, unpacking
from engine.runtimes.loading import in_words, loaded
from engine.source.catalogue import MIRRORED
from engine.text import printable
from engine.units import UnitSystem, format_gib
from engine.words import figures, grouped, tr, tr_later

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import date

    from engine.budget.model import Budget
    from engine.fit.verdict import Verdict

DASH = "\N{EN DASH}"
_HARMLESS = re.compile(r"[\w .,:/+-]+", re.ASCII)
"""Characters that no shell takes for anything else in quotation marks; Windows has but these."""
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
    *(
        tr_later("January"),
        tr_later("February"),
        tr_later("March"),
        tr_later("April"),
        tr_later("May"),
        tr_later("June"),
        tr_later("July"),
        tr_later("August"),
    ),
    *(tr_later("September"), tr_later("October"), tr_later("November"), tr_later("December")),
)


_BASES = {
    Basis.READ: tr_later("summed from a file header, or read from the device"),
    Basis.EXACT: tr_later("follows from whole numbers by the runtime’s own rule"),
    Basis.SETTING: tr_later("what a setting asks for"),
    Basis.MEASURED: tr_later("read from the device now"),
    Basis.LEARNED: tr_later("from this machine’s own runs"),
    Basis.FITTED: tr_later("a formula fitted to measured runs, with their spread"),
    Basis.ASSUMED: tr_later("a default without evidence for this case"),
    Basis.BOUND: tr_later("a limit, since something isn’t understood"),
}


def bases(used: Iterable[Basis]) -> str:
    """What the words for the basis mean, for those that are used, the surest first."""
    there = set(used)
    return " ".join(
        tr("{word}: {meaning}.").format(word=b.word, meaning=tr(meaning))
        for b, meaning in _BASES.items()
        if b in there
    )


def day(on: date) -> str:
    """``29 November 2026``, in the language of the window."""
    return tr("{day} {months} {year}").format(
        day=on.day, months=tr(_MONTHS[on.month - 1]), year=on.year
    )


def number(size_bytes: int, unit: UnitSystem) -> str:
    """``14.99``, for columns whose heading carries the unit."""
    return format_gib(size_bytes, unit, unit=False)


def difference(size_bytes: int, unit: UnitSystem) -> str:
    """``+0.18``, for columns whose heading carries the unit; what rounds to nothing has no sign."""
    text = format_gib(size_bytes, unit, signed=True, unit=False)
    return text if text.strip("+\N{MINUS SIGN}0.,") else number(0, unit)


def span(estimate: Estimate, unit: UnitSystem) -> str:
    """``4.12 - 5.89`` with an en dash; ``exact`` where it is; empty for a setting or nothing."""
    if not estimate.is_point:
        low, high = number(estimate.low_bytes, unit), number(estimate.high_bytes, unit)
        return (
            tr("within 0.01")
            if low == high
            else tr("{low} {dash} {high}").format(low=low, dash=DASH, high=high)
        )
    return tr("exact") if estimate.basis in {Basis.READ, Basis.EXACT} else ""


def margin(verdict: Verdict, unit: UnitSystem) -> str:
    """``0.3 GiB to spare``, ``2.7 GiB over``."""
    if verdict.fit is Fit.UNKNOWN:
        return tr("not known")
    size = format_gib(abs(verdict.margin_bytes), unit, digits=1)
    return (
        tr("{size} over").format(size=size)
        if verdict.margin_bytes < 0
        else tr("{size} to spare").format(size=size)
    )


def dtype(name: str) -> str:
    """``BF16`` for ``bfloat16``; other names as they are."""
    return _DTYPES.get(name.lower(), printable(name, 40))


def cache_format(name: str) -> str:
    """``FP8``, ``Q8_0`` and ``8 bit``."""
    bits, _, is_words = name.partition(" ")
    return tr("{bits} bit").format(bits=bits) if is_words else dtype(name).upper()


def runtime(budget: Budget) -> str:
    """``vLLM 0.33.0``: the runtime, and the release whose rules are used."""
    return f"{registry.get(budget.deployment.runtime).label} {release(budget)}".rstrip()


def release(budget: Budget) -> str:
    """The plan's release, the newest that is known where it states none."""
    versions = registry.get(budget.deployment.runtime).versions
    return printable(budget.deployment.runtime_version or next(iter(versions), ""), 40)


def source(said: str) -> str:
    """Where a model's description comes from, in the language in force."""
    if said.startswith(MIRRORED):
        said = tr("catalogue entry of {id}").format(id=said.removeprefix(MIRRORED))
    return printable(tr(said), 200)


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
    if registry.family(plan.runtime) == "llama.cpp":
        key, value = (
            cache_format(each or "f16") for each in (plan.cache_type_k, plan.cache_type_v)
        )
        return (
            key if key == value else tr("{key} keys, {value} values").format(key=key, value=value)
        )
    if plan.kv_bits:
        return cache_format(f"{figures(f'{plan.kv_bits:g}')} bit")
    name = plan.kv_cache_dtype
    shown = dtype(spec.kv_cache_dtype or spec.dtype) if name == "auto" else cache_format(name)
    block = budget.sequence_state.block_size
    return tr("{shown}, blocks of {block}").format(shown=shown, block=block) if block else shown


def requests(count: int) -> str:
    """``1 request``, ``4 requests``."""
    return tr("1 request") if count == 1 else tr("{count} requests").format(count=grouped(count))


def allocator(device: Device) -> str:
    """Who hands out the memory up to the load line."""
    if device.kind is DeviceKind.HOST:
        return tr("programs")
    names = {Vendor.NVIDIA: "CUDA", Vendor.AMD: "ROCm", Vendor.APPLE: "Metal"}
    return names.get(device.vendor, tr("the driver"))


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
        parts += [*_named(device), "--gpu-count", str(len(slots))]
    elif budget.machine.is_corrected and device.kind is not DeviceKind.HOST:
        # The terminal knows of no correction: it is told what programs can get.
        size = device.allocatable.likely_bytes
        with suppress(DeviceError):
            parts += ["--gpu", catalogue.find(device.name).name]
        parts += ["--gpu-total-bytes", str(size), "--gpu-count", str(len(slots))]
    return " ".join(map(_quoted, parts))


def _quoted(word: str) -> str:
    """``word`` as every shell reads it; a model's name may be anything, and may be meant ill."""
    return f'"{word}"' if " " in word and _HARMLESS.fullmatch(word) else shlex.quote(word)


def _named(device: Device) -> list[str]:
    """The option that means ``device``: by its name, or where it has none by its size."""
    try:
        return ["--gpu", catalogue.find(device.name).name]
    except DeviceError:
        return ["--gpu-total-bytes", str(device.total_bytes)]


def _option(name: str, value: object) -> list[str]:
    option = f"--{name.replace('_', '-')}"
    if value is True:
        return [option]
    if value is False:
        return [f"--no-{name.replace('_', '-')}"]
    if isinstance(value, tuple):
        return [option, ",".join(str(v) for v in value)]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]  # a tuple of numbers, by Deployment
    return [option, printable(str(value), 80)]
