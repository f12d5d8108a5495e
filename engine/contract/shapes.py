"""Pieces that the published JSON Schemas are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.evidence import Basis

if TYPE_CHECKING:
    from enum import StrEnum

    Schema = dict[str, object]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
BYTES: Schema = {"type": "integer"}
SIZE: Schema = {"type": "integer", "minimum": 0}
TEXT: Schema = {"type": "string"}
TEXTS: Schema = {"type": "array", "items": TEXT}


def one_of(kinds: type[StrEnum]) -> Schema:
    """One of the names of ``kinds``."""
    return {"enum": [kind.value for kind in kinds]}


BASIS: Schema = one_of(Basis)


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


def published(title: str, about: str, body: Schema) -> Schema:
    """A whole schema: its head, then ``body``."""
    return {"$schema": DIALECT, "title": title, "description": about, **body}


def estimate() -> Schema:
    """A figure with its range and what it rests on."""
    return closed(low=BYTES, likely=BYTES, high=BYTES, basis=BASIS, source=TEXT)
