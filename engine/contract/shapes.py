"""Pieces that the published JSON Schemas are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.evidence import Basis

if TYPE_CHECKING:
    Schema = dict[str, object]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
BYTES: Schema = {"type": "integer"}
SIZE: Schema = {"type": "integer", "minimum": 0}
TEXT: Schema = {"type": "string"}
TEXTS: Schema = {"type": "array", "items": TEXT}
BASIS: Schema = {"enum": [basis.value for basis in Basis]}


def closed(**properties: Schema) -> Schema:
    """An object that has exactly these keys."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def or_null(schema: Schema) -> Schema:
    """A value, or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def or_missing(schema: Schema) -> Schema:
    """A value, or why there is none."""
    return {"anyOf": [schema, closed(missing=TEXT)]}


def said(schema: Schema, text: str) -> Schema:
    """The same with what it means."""
    return schema | {"description": text}


def estimate() -> Schema:
    """A figure with its range and what it rests on."""
    return closed(low=BYTES, likely=BYTES, high=BYTES, basis=BASIS, source=TEXT)
