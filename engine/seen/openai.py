"""``/v1/models`` as OpenAI defined it, which nearly every runtime answers in its own way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.seen import figures
from engine.seen.model import NOT_STATED, ModelSeen
from engine.telemetry.snapshot import Missing
from engine.words import tr_later

if TYPE_CHECKING:
    from engine.seen.asker import Asker

NO_MODEL = Missing(tr_later("the runtime lists no model"))
_CONTEXTS = ("max_model_len", "max_context_length", "context_length", "context_window")
"""vLLM and SGLang say the first."""


def models(asker: Asker) -> list[dict[str, Any]]:
    """The entries of the list; adapters on top of another entry come last."""
    found = figures.rows(asker.fields("/v1/models").get("data"))
    return sorted(found, key=lambda entry: bool(entry.get("parent")))


def first_model(asker: Asker) -> ModelSeen | Missing:
    """The model that a server of one model serves."""
    found = models(asker)
    if not found or not figures.text(found[0].get("id")):
        return NO_MODEL
    entry = found[0]
    contexts = (figures.positive(entry.get(name)) for name in _CONTEXTS)
    return ModelSeen(
        name=figures.text(entry.get("id")),
        context_tokens=next((c for c in contexts if isinstance(c, int)), NOT_STATED),
        file=figures.text(entry.get("root")),
    )
