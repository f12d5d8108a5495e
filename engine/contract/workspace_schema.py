"""The published schema of a ``.plimsoll`` file."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from engine.contract import workspace, workspace_values
from engine.contract.fields import BY_NAME
from engine.contract.shapes import TEXT, closed, one_of, or_null, published, said
from engine.deployment.spec import Deployment
from engine.seen.load_driver import LIMITS
from engine.units import UnitSystem

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.contract.fields import Field
    from engine.contract.shapes import Schema

_NAME: Schema = {"type": "string", "minLength": 1, "maxLength": workspace_values.MAX_TEXT}
_COUNT: Schema = {"type": "integer", "minimum": 1, "maximum": workspace_values.MAX_MEASURE}


def schema(property_of: Callable[[Field], Schema]) -> Schema:
    """The schema; ``property_of`` says what a setting must be, as in a request."""
    names = [field.name for field in fields(Deployment)]
    settings = {name: property_of(BY_NAME[name]) for name in names}
    follows = "whether nobody chose the context, so that it follows the runtime"
    neighbour: dict[str, Schema] = {
        "model": {"$ref": "#/$defs/model"},
        "plan": {"$ref": "#/$defs/settings"},
        "context_assumed": said({"type": ["boolean", "null"]}, follows),
    }
    others: Schema = {
        "type": "array",
        "items": {"$ref": "#/$defs/neighbour"},
        "maxItems": workspace.MOST_BESIDE,
    }
    asked: dict[str, Schema] = neighbour | {
        "machine": _open(
            gpu=said(or_null(TEXT), "as in a request; null is the computer that opens the file"),
            host_total_bytes=said(or_null(_COUNT), "RAM of that machine, where it is stated"),
            baseline=said({"enum": ["now", "empty", None]}, "of this computer, as in a request"),
        ),
    }
    asked["with"] = said(or_null(others), "on the same machine, in order of start")
    compared: Schema = {
        "type": "array",
        "items": {"$ref": "#/$defs/plan"},
        "maxItems": workspace.MOST_COMPARED,
    }
    body = _open(
        schema={"const": workspace.SCHEMA},
        **asked,
        compared=said(or_null(compared), "in their order; the first is what others differ from"),
        unit=one_of(UnitSystem),
        tab=said(or_null(TEXT), "which page is open: regions, map, compare, holds …"),
        load=said(or_null(_load()), "what the checklist is to send to a runtime"),
    )
    about = "What was asked, never what came out: a .plimsoll file. A null counts as not given."
    parts: Schema = {
        "settings": _open(**settings),
        "model": said(or_null({"anyOf": _models()}), "null where none was picked"),
        "neighbour": _open(**neighbour) | {"required": ["plan"]},
        "plan": _open(**asked) | {"required": ["plan"]},
    }
    whole = body | {"required": ["schema", "plan", "unit"], "$defs": parts}
    return published(workspace.SCHEMA, about, whole)


def _models() -> list[Schema]:
    needed = ("parameters", "num_hidden_layers", "num_key_value_heads", "head_dim")
    further = ("hidden_size", "vocab_size", "max_position_embeddings")
    by_hand = _open(
        **dict.fromkeys(needed, _COUNT),
        **dict.fromkeys(further, or_null(_COUNT)),
        name=or_null(TEXT),
    )
    hub = _open(name=_NAME, revision=or_null(TEXT), file=or_null(TEXT)) | {"required": ["name"]}
    here = _open(path=_NAME, name=or_null(TEXT)) | {"required": ["path"]}
    return [
        said(hub, "of the catalogue, the Hub (with a commit and a file of it), or Ollama"),
        said(here, "a file or folder of this computer, and what its store calls it"),
        said(closed(pasted=TEXT), "a config.json, as it was pasted"),
        closed(measures=by_hand | {"required": list(needed)}),
    ]


def _load() -> Schema:
    limits: dict[str, Schema] = {}
    for name, (low, high) in LIMITS.items():
        kind = "number" if name.endswith("_s") else "integer"
        limits[name] = {"type": kind, "minimum": low, "maximum": high}
    return _open(**limits, in_bursts={"type": "boolean"})


def _open(**properties: Schema) -> Schema:
    """An object that may have these keys, and no others."""
    return {"type": "object", "properties": properties, "additionalProperties": False}
