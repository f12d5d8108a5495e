"""How a plan is started, as a mapping for JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.contract.shapes import TEXT, TEXTS, closed, published, said
from engine.launch.launch import Kind

if TYPE_CHECKING:
    from engine.contract.shapes import Schema
    from engine.launch.launch import Launch

SCHEMA = "plimsoll.launch/1"


def answer(found: Launch) -> dict[str, object]:
    """How a plan is started."""
    return {
        "schema": SCHEMA,
        "runtime": found.runtime,
        "label": found.label,
        "model": found.model,
        "words": list(found.words),
        "environment": dict(found.environment),
        "forms": {form.kind.value: form.text for form in found.forms},
        "notes": list(found.notes),
        "unsaid": dict(found.unsaid),
    }


def schema() -> Schema:
    """Its schema."""
    texts: Schema = {"type": "object", "additionalProperties": TEXT}
    kinds = [kind.value for kind in Kind]
    body = closed(
        schema={"const": SCHEMA},
        runtime=TEXT,
        label=said(TEXT, "runtime and release, as people write them"),
        model=said(TEXT, "what the runtime finds the model by"),
        words=said(TEXTS, "program and arguments; empty where no command starts it"),
        environment=said(texts, "variables to set for it"),
        forms=said(texts | {"propertyNames": {"enum": kinds}}, "texts to copy, by their kind"),
        notes=said(TEXTS, "what to know before; the forms say it as comments"),
        unsaid=said(texts, "settings that the runtime has no word for, and what to know of each"),
    )
    about = "How a plan is started: plimsoll launch --json."
    return published(SCHEMA, about, body)
