"""Ollama: ``/api/version``, ``/api/ps`` and, for the file behind a name, ``/api/show``.

``size`` is an estimate made before the load until mid-2026; since Ollama runs llama-server for GGUF
(ollama PR 16031) it is the sum of that program's buffers, incomplete in 0.32 with a draft model or
several caches (issue 17251). Both are *stated*, in bytes; the table that ``ollama ps`` prints is in
decimal GB.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any

from engine.seen import figures
from engine.seen.model import NO_MODEL, ModelSeen, Reach, RuntimeSeen, StatedBytes
from engine.telemetry.snapshot import Missing
from engine.words import tr, tr_later

if TYPE_CHECKING:
    from engine.seen.asker import Asker

_NEVER_FROM = 2300
"""Ollama writes a year beyond it for a model that stays (``keep_alive`` below 0)."""
_FROM = re.compile(r"^FROM\s+(.+?)\s*$", re.MULTILINE)
_NO_POOL = Missing(tr_later("Ollama doesn’t state what of the cache is filled"))
_NO_COUNT = Missing(tr_later("Ollama doesn’t state its requests"))
_OLD = Missing(tr_later("this release doesn’t state the context (newer ones do)"))


def read(asker: Asker) -> tuple[RuntimeSeen, ...]:
    """What one server says: a row per loaded model, one without a model where none is loaded."""
    common: dict[str, Any] = {
        "runtime": "ollama", "label": "Ollama", "reach": Reach.ANSWERS, "address": asker.address,
        "version": figures.version(asker.fields("/api/version").get("version")),
        "running": _NO_COUNT, "waiting": _NO_COUNT, "pool": _NO_POOL,
        "prompt_tokens": _NO_COUNT, "output_tokens": _NO_COUNT,
    }  # fmt: skip
    loaded = figures.rows(asker.fields("/api/ps").get("models"))
    named = [entry for entry in loaded if _name(entry)]
    # Which runner has which model is a question only where there are several.
    files = {_name(e): _file(asker, _name(e)) for e in named} if len(named) > 1 else {}
    rows = tuple(_row(entry, files.get(_name(entry), ""), common) for entry in named)
    return rows or (RuntimeSeen(**common, model=NO_MODEL),)


def _name(entry: dict[str, Any]) -> str:
    return figures.text(entry.get("name")) or figures.text(entry.get("model"))


def _row(entry: dict[str, Any], file: str, common: dict[str, Any]) -> RuntimeSeen:
    details = figures.fields(entry.get("details"))
    context = figures.positive(entry.get("context_length"))
    model = ModelSeen(
        name=_name(entry),
        context_tokens=_OLD if isinstance(context, Missing) else context,
        quantisation=figures.text(details.get("quantization_level")),
        file=file,
        expires=_expires(entry.get("expires_at")),
    )
    settings = {} if isinstance(context, Missing) else {"max_model_len": context}
    return RuntimeSeen(
        **common,
        model=model,
        stated=tuple(_stated(entry)),
        settings=settings,
        notes=tuple(_notes(entry)),
    )


def _stated(entry: dict[str, Any]) -> list[StatedBytes]:
    """What lies on devices, and what beside them in the computer's memory."""
    size, on_device = figures.count(entry.get("size")), figures.count(entry.get("size_vram"))
    if isinstance(size, Missing):
        return []
    if isinstance(on_device, Missing):
        return [StatedBytes(size)]
    found = [StatedBytes(on_device)] if on_device else []
    if size > on_device:
        found.append(StatedBytes(size - on_device, on_device=False))
    return found


def _notes(entry: dict[str, Any]) -> list[str]:
    size, on_device = figures.positive(entry.get("size")), figures.count(entry.get("size_vram"))
    if isinstance(size, Missing) or isinstance(on_device, Missing):
        return []
    if on_device >= size:
        # What ``100% GPU`` means: nothing of the card's fill (ollama issue 6160).
        return [tr("All of what it states lies on the GPU.")]
    if not on_device:
        return [tr("It runs on the processor alone.")]
    words = tr("{percent}% of what it states lies on the GPU, the rest in the computer’s memory.")
    return [words.format(percent=round(on_device / size * 100))]


def _file(asker: Asker, name: str) -> str:
    """The weights' file, from the Modelfile that ``/api/show`` gives."""
    shown = asker.fields("/api/show", {"model": name})
    modelfile = shown.get("modelfile")
    found = _FROM.search(modelfile[:65536]) if isinstance(modelfile, str) else None
    return figures.text(found[1].strip('"')) if found and "blobs" in found[1] else ""


def _expires(value: object) -> str:
    written = figures.text(value)
    try:
        year = datetime.fromisoformat(written).year if written else 0
    except ValueError:
        return ""
    return "never" if year >= _NEVER_FROM else written
