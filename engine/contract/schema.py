"""The published JSON Schemas, made from the same tables and enumerations as the answers.

``packaging/schemas.py`` writes them to ``resources/schema``; a test keeps them fresh.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.budget.model import Region
from engine.contract import answer, kv, machine
from engine.contract.fields import FIELDS, Field, Kind
from engine.evidence import Basis
from engine.fit.verdict import Fit

if TYPE_CHECKING:
    from collections.abc import Mapping

    Schema = dict[str, object]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_BYTES: Schema = {"type": "integer"}
_SIZE: Schema = {"type": "integer", "minimum": 0}
_TEXT: Schema = {"type": "string"}
_TEXTS: Schema = {"type": "array", "items": _TEXT}
_ID: Schema = {"type": ["string", "integer", "null"]}
_BASIS: Schema = {"enum": [basis.value for basis in Basis]}
_BUFFERS: Schema = {"type": "object", "additionalProperties": _SIZE}
_TYPES: Mapping[Kind, Schema] = {
    Kind.TEXT: {"type": "string", "minLength": 1},
    Kind.INTEGER: {"type": "integer"},
    Kind.NUMBER: {"type": "number"},
    Kind.BOOLEAN: {"type": "boolean"},
    Kind.SWITCH: {"enum": ["on", "off", "auto", True, False]},
    Kind.OBJECT: {"type": "object"},
}


def schemas() -> dict[str, Schema]:
    """Every published schema by its file's stem."""
    return {
        "request": _request(),
        "budget": _answer(),
        "kv": _kv(),
        "machine": _machine(),
        "sample": _sample(),
    }


def _request() -> Schema:
    properties = {"id": _ID} | {field.name: _property(field) for field in FIELDS}
    return {
        "$schema": _DIALECT,
        "title": "plimsoll.request/1",
        "description": "One line of plimsoll size --batch. A null counts as not given.",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "anyOf": [{"required": ["model"]}, {"required": ["config"]}],
        "dependentRequired": {"tensors": ["config"]},
    }


def _property(field: Field) -> Schema:
    limits: Schema = {}
    if field.least is not None:
        limits["minimum"] = field.least
    if field.most is not None:
        limits["maximum"] = field.most
    if field.kind is Kind.NUMBERS:
        shape: Schema = {"type": "array", "items": {"type": "number"} | limits}
    elif field.kind is Kind.OBJECTS:
        shape = {"type": "array", "items": _tensor()}
    elif field.choices:
        shape = {"enum": list(field.choices)}
    else:
        shape = dict(_TYPES[field.kind]) | limits
    return {"description": field.help, "anyOf": [shape, {"type": "null"}]}


def _tensor() -> Schema:
    shape: Schema = {"type": "array", "items": _SIZE, "maxItems": 16}
    return _closed(name=_TEXT, dtype=_TEXT, shape=shape)


def _answer() -> Schema:
    estimate = _closed(low=_BYTES, likely=_BYTES, high=_BYTES, basis=_BASIS, source=_TEXT)
    rank = _closed(
        rank=_SIZE,
        device=_TEXT,
        total_bytes=_or_null(_SIZE),
        allocatable_bytes=_or_null(_SIZE),
        regions=_closed(**{region.value: estimate for region in Region}),
        planned_bytes=_BYTES,
        free_bytes=_or_null(_BYTES),
    )
    full = _closed(
        schema={"const": answer.SCHEMA},
        id=_ID,
        error={"type": "null"},
        model=_closed(
            id=_TEXT, model_type=_TEXT, parameters=_SIZE, weights_bytes=_SIZE, basis=_BASIS
        ),
        ranks={"type": "array", "items": rank, "minItems": 1},
        sequence_state=_sequence_state(),
        llama_cpp=_or_null(
            _closed(
                model_buffers=_BUFFERS,
                kv_buffers=_BUFFERS,
                rs_buffers=_BUFFERS,
                compute_buffers=_BUFFERS,
                output_buffer=_SIZE,
            )
        ),
        verdict={"enum": [fit.value for fit in Fit]},
        binding=_closed(rank=_SIZE, region={"enum": [region.value for region in Region]}),
        limits=_closed(
            max_context=_or_null(_SIZE),
            max_concurrency=_or_null(_SIZE),
            best_weight_format=_or_null(_TEXT),
        ),
        assumptions=_TEXTS,
        warnings=_TEXTS,
    )
    failed = _closed(
        schema={"const": answer.SCHEMA},
        id=_ID,
        error=_closed(code=_TEXT, message=_TEXT, field=_or_null(_TEXT)),
    )
    return {
        "$schema": _DIALECT,
        "title": answer.SCHEMA,
        "description": "The answer to one request: a budget, or what is wrong with the request.",
        "oneOf": [full, failed],
    }


def _sequence_state() -> Schema:
    least = "the least for a sequence of the plan's context, whole model, no rounding, no copies"
    reserved = "what the runtime sets aside for that sequence, on the fullest rank"
    return _closed(
        architecture_bytes_per_sequence=_said(_SIZE, least),
        reserved_bytes_per_sequence=_said(_SIZE, reserved),
        bytes_per_token=_said(_SIZE, "growth with one more token, on the fullest rank"),
        pool_bytes=_said(_or_null(_BYTES), "all that is set aside, on the fullest rank"),
        num_blocks=_said(_or_null(_SIZE), "blocks of that pool"),
        block_size=_said(_or_null(_SIZE), "tokens of a block"),
        bytes_per_block=_said(_or_null(_SIZE), "of one block in all layers of that rank"),
        pool_tokens=_said(_or_null(_SIZE), "tokens that the pool holds, as the runtime says it"),
        max_concurrency=_said(
            _or_null({"type": "number", "minimum": 0}), "requests of full context at once"
        ),
    )


def _said(schema: Schema, text: str) -> Schema:
    return schema | {"description": text}


def _kv() -> Schema:
    term = _closed(
        kind=_TEXT,
        layers=_SIZE,
        window=_or_null(_SIZE),
        tokens=_SIZE,
        bytes_per_token_and_layer=_SIZE,
        bytes=_SIZE,
    )
    body = _closed(
        schema={"const": kv.SCHEMA},
        model=_TEXT,
        kv_cache_dtype=_TEXT,
        max_model_len=_SIZE,
        formula=_TEXT,
        inputs={"type": "array", "items": term},
        bytes_per_token=_SIZE,
        cache_bytes=_SIZE,
        state_bytes=_SIZE,
        total_bytes=_SIZE,
        basis={"enum": [Basis.EXACT.value, Basis.BOUND.value]},
        warnings=_TEXTS,
    )
    return {"$schema": _DIALECT, "title": kv.SCHEMA, **body}


def _machine() -> Schema:
    estimate = _closed(low=_BYTES, likely=_BYTES, high=_BYTES, basis=_BASIS, source=_TEXT)
    device = _closed(
        name=_TEXT,
        uuid=_TEXT,
        vendor=_TEXT,
        kind=_TEXT,
        label=_TEXT,
        total_bytes=_SIZE,
        allocatable=estimate,
        foreign=estimate,
        sm_count=_SIZE,
        compute_capability={"type": "number"},
        ecc=_TEXT,
        source=_TEXT,
    )
    body = _closed(
        schema={"const": machine.MACHINE_SCHEMA},
        name=_TEXT,
        is_here={"type": "boolean"},
        devices={"type": "array", "items": device},
        host=device,
        now=_closed(**_moment()),
    )
    return {"$schema": _DIALECT, "title": machine.MACHINE_SCHEMA, **body}


def _sample() -> Schema:
    body = _closed(schema={"const": machine.SAMPLE_SCHEMA}, **_moment())
    return {"$schema": _DIALECT, "title": machine.SAMPLE_SCHEMA, **body}


def _moment() -> dict[str, Schema]:
    return {
        "monotonic_s": {"type": "number"},
        "wall_time_s": {"type": "number"},
        "devices": {"type": "array", "items": _reading()},
        "notes": _TEXTS,
    }


def _reading() -> Schema:
    process = _closed(
        pid=_SIZE,
        name=_TEXT,
        used_bytes=_or_missing(_SIZE),
        file_bytes=_or_missing(_SIZE),
        command=_TEXT,
    )
    return _closed(
        uuid=_TEXT,
        name=_TEXT,
        pool=_TEXT,
        total_bytes=_or_missing(_SIZE),
        used_bytes=_or_missing(_SIZE),
        free_bytes=_or_missing(_SIZE),
        reserved_bytes=_or_missing(_SIZE),
        processes=_or_missing({"type": "array", "items": process}),
        source=_TEXT,
        note=_TEXT,
        sm_count=_SIZE,
        compute_capability={"type": "number"},
    )


def _closed(**properties: Schema) -> Schema:
    """An object that has exactly these keys."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _or_missing(schema: Schema) -> Schema:
    """A value, or why there is none."""
    return {"anyOf": [schema, _closed(missing=_TEXT)]}
