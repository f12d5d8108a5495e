"""The plan of a run: what its log states, as a request of the machine contract."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from engine.contract.fields import BY_NAME
from engine.contract.request import parse
from engine.errors import PlimsollError
from engine.logs.buffers import is_host
from engine.logs.settings import as_contract
from engine.runtimes import foreign, registry
from engine.source import catalogue
from engine.source.derived import derived
from engine.text import printable
from engine.units import GIB
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.contract.desk import Desk, Plan
    from engine.logs.reading import LogReading

_MIX = re.compile(
    r"(?<![A-Za-z0-9])((?:UD-)?(?:I?Q[2-8]_[A-Z0-9]{1,3}(?:_[A-Z]{1,2})?|BF16|F16|MXFP4(?:_MOE)?))(?![A-Za-z0-9])"
)
_MIX_WORDS = re.compile(r"(I?Q\d_\w+?|F16|BF16|MXFP4 MoE)(?: - (\w)\w*)?(?: - [\d.]+ bpw)? *")
_HUB_FOLDER = re.compile(r"models--([^/\\]{1,100}?)--([^/\\]{1,100})")
_BACKENDS = {"ROCm": "rocm", "Vulkan": "vulkan", "SYCL": "sycl", "MTL": "metal", "Metal": "metal"}
_FAMILY = "llama.cpp"
_DEVICE = {"gpu", "gpu_count", "gpu_total_bytes"}
"""Keys that say which device a run had."""
_MOST_TRIES = 12
_UNNAMED_GPU_BYTES = 80 * GIB
"""Of a device that nobody names: what depends on its size is then not said."""


class NoPlanError(PlimsollError):
    """Nothing can be predicted; the message says what is missing."""

    code = "no_plan"


def plan_of(
    reading: LogReading, desk: Desk, given: Mapping[str, object]
) -> tuple[Plan, tuple[str, ...]]:
    """The plan of the run in ``reading``, and a sentence for what was taken on trust.

    Args:
        reading: what the log states.
        desk: finds the model. A name that only the log states is looked up in the catalogue, and
            nowhere else.
        given: keys of the machine contract that go before the log's.

    Raises:
        NoPlanError: the log names no model or runtime that is known.
        PlimsollError: a key of ``given`` is wrong.
    """
    mapping, notes = _stated(reading)
    if "model" in given:
        notes.clear()  # Of the log's own model, which is not asked then.
    _drop_device(mapping, reading, given)
    mapping |= given
    if not mapping.get("runtime"):
        raise NoPlanError(tr("No line of the log says which runtime wrote it."))
    if mapping["runtime"] not in registry.RUNTIMES:
        runtime = printable(str(mapping["runtime"]), 40)
        raise NoPlanError(tr("No plan is made for {runtime}.").format(runtime=runtime))
    if "model" not in mapping and "config" not in mapping:
        named = printable(_named(reading), 80)
        if named:
            message = tr("{model} is not in the catalogue: name the model to predict it.")
            raise NoPlanError(message.format(model=named))
        raise NoPlanError(tr("The log names no model: name it to predict the regions."))
    for _ in range(_MOST_TRIES):
        try:
            plan = desk.plan(parse(mapping))
            registry.get(plan.deployment.runtime).plan(plan.model, plan.deployment, plan.machine)
        except PlimsollError as error:
            if error.field in given or error.field not in mapping or error.field == "model":
                raise
            # What a log states may be of a release that we don't know, or no setting at all.
            notes.append(
                tr("{setting} of the log was left out: {why}").format(
                    setting=error.field, why=error.message
                )
            )
            del mapping[error.field]
        else:
            return plan, tuple(notes)
    raise NoPlanError(tr("The settings that the log states do not go together."))


def _drop_device(
    mapping: dict[str, object], reading: LogReading, given: Mapping[str, object]
) -> None:
    """What the log says of its device, where it is ``given``."""
    if "gpu" in given or "gpu_count" in given:
        mapping.pop("gpu_total_bytes", None)
    if _DEVICE & given.keys() and "kv_pool_bytes" not in reading.settings:
        # On a device that is known the pool is predicted, and compared with what the log states.
        mapping.pop("kv_pool_bytes", None)


def _stated(reading: LogReading) -> tuple[dict[str, object], list[str]]:
    notes: list[str] = []
    runtime = reading.runtime
    mapping: dict[str, object] = {}
    if runtime:
        mapping["runtime"] = runtime
    if reading.version:
        mapping["runtime_version"] = reading.version
    settings = as_contract(reading.settings)
    mapping |= {k: v for k, v in settings.items() if k in BY_NAME and k != "model"}
    named = _named(reading)
    found = _in_catalogue(named)
    if found:
        mapping["model"] = found
        if found != named:
            notes.append(tr("The model is taken for {model}, by its name.").format(model=found))
    if runtime in registry.RUNTIMES and registry.family(runtime) == _FAMILY:
        _of_files(reading, mapping)
    room = room_of(reading)
    mapping["gpu_total_bytes"] = room or _UNNAMED_GPU_BYTES
    pool = reading.stated("kv_pool")
    takes_pool = runtime in registry.RUNTIMES and foreign.has(runtime, "kv_pool_bytes")
    if takes_pool and room is None and pool is not None and pool.size_bytes > 0:
        mapping["kv_pool_bytes"] = pool.size_bytes
    return mapping, notes


def says_device(reading: LogReading, given: Mapping[str, object]) -> bool:
    """Whether the log or what is ``given`` beside it says how much memory the run had."""
    return room_of(reading) is not None or bool(_DEVICE & given.keys())


def room_of(reading: LogReading) -> int | None:
    """Memory of each device of the run, as its log states it; None where it doesn't.

    llama.cpp takes what is free, and often says nothing else of a device. SGLang says what is
    free once its libraries are loaded, and what these took; the share it takes is of that.
    """
    before, libraries = reading.stated("free_before_load"), reading.stated("non_torch")
    if before is not None and libraries is not None:
        return before.size_bytes + libraries.size_bytes
    names = ("total", "free_at_start") if reading.runtime == _FAMILY else ("total",)
    stated = (reading.stated(name) for name in names)
    return next((fact.size_bytes for fact in stated if fact and fact.size_bytes > 0), None)


def _of_files(reading: LogReading, mapping: dict[str, object]) -> None:
    """What llama.cpp says of its file and of its devices."""
    file_type = str(reading.whole["file_type"].value) if "file_type" in reading.whole else ""
    name = f"{reading.settings.get('file', '')} {_file(reading)}"
    mix = _mix(file_type) or next(iter(_MIX.findall(name)), "")
    if mix:
        mapping["weight_format"] = mix
    there = [r for r in reading.ranks if r.name and not is_host(r.name)]
    used = [r for r in there if r.facts.keys() & {"weights", "kv_pool", "compute"}]
    devices = [r.name for r in used or there]
    if not there and any(r.facts.keys() & {"weights", "kv_pool"} for r in reading.ranks):
        # Built without one, or on a computer that has none.
        mapping["n_gpu_layers"] = 0
    if devices:
        mapping["gpu_count"] = len(devices)
        backend = devices[0].rstrip("0123456789")
        if backend in _BACKENDS:
            mapping["backend"] = _BACKENDS[backend]
    there, all_of = reading.whole.get("offloaded"), reading.whole.get("layers")
    if there is not None and all_of is not None:
        whole = there.size_bytes >= all_of.size_bytes
        mapping["n_gpu_layers"] = -2 if whole else there.size_bytes
    if "flash_attn" in mapping:
        word = str(mapping["flash_attn"]).lower()
        mapping["flash_attn"] = {"1": "on", "true": "on", "enabled": "on", "0": "off"}.get(
            word, word if word in {"on", "off", "auto"} else "auto"
        )
    if isinstance(mapping.get("kv_unified"), str):
        mapping["kv_unified"] = mapping["kv_unified"] == "true"


def _mix(words: str) -> str:
    """``Q4_K_M`` for ``Q4_K - Medium``."""
    found = _MIX_WORDS.fullmatch(words)
    if found is None:
        return ""
    return f"{found[1]}_{found[2].upper()}" if found[2] else found[1].replace(" ", "_")


def _file(reading: LogReading) -> str:
    return str(reading.whole["file"].value) if "file" in reading.whole else ""


def _named(reading: LogReading) -> str:
    """The model's name as the log has it: an id, the last part of a path, a file's name."""
    for name in (
        str(reading.settings.get("model", "")),
        str(reading.whole["model"].value) if "model" in reading.whole else "",
        str(reading.settings.get("file", "")),
        _file(reading),
    ):
        text = _short(name.strip().strip("'\"").rstrip("/\\"))
        # Ollama's files are named by their content.
        if text and not text.startswith("sha256"):
            return text
    return ""


def _short(text: str) -> str:
    folder = _HUB_FOLDER.search(text)
    if folder is not None:
        return f"{folder[1]}/{folder[2]}"
    is_path = text.startswith(("/", "~", ".", "\\")) or text[1:3] == ":\\" or text.count("/") > 1
    return re.split(r"[/\\]", text)[-1] if is_path else text


def _in_catalogue(name: str) -> str:
    """The id of the bundled model that ``name`` means; empty for every other."""
    plain = _MIX.sub("", name.removesuffix(".gguf")).strip("-. _")
    for candidate in (name, plain, plain.removesuffix("-GGUF")):
        if not candidate:
            continue
        entry = catalogue.find(candidate)
        if entry is not None:
            return entry.id
        if catalogue.mirrored(candidate) is not None or derived(candidate) is not None:
            return candidate
    return ""
