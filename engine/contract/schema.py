"""The published JSON Schemas, made from the same tables and enumerations as the answers.

``packaging/schemas.py`` writes them to ``resources/schema``; a test keeps them fresh.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.budget.model import Region
from engine.budget.phases import Phase
from engine.contract import (
    answer,
    kv,
    launch,
    learned_schema,
    live_schemas,
    log_schemas,
    verify,
    workspace_schema,
)
from engine.contract.fields import FIELDS, Field, Kind
from engine.contract.shapes import (
    BASIS,
    BYTES,
    SIZE,
    TEXT,
    TEXTS,
    closed,
    one_of,
    or_null,
    published,
    said,
)
from engine.evidence import Basis
from engine.fit.verdict import Fit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.contract.shapes import Schema

_ID: Schema = {"type": ["string", "integer", "null"]}
_BUFFERS: Schema = {"type": "object", "additionalProperties": SIZE}
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
        "verify": _verify(),
        "workspace": workspace_schema.schema(property_of),
        "log": log_schemas.schema(),
        "launch": launch.schema(),
        "learned": learned_schema.schema(),
        **live_schemas.schemas(),
    }


def _request() -> Schema:
    properties = {"id": _ID} | {field.name: property_of(field) for field in FIELDS}
    body: Schema = {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "anyOf": [{"required": [name]} for name in ("model", "config", "from_command")],
        "dependentRequired": {"tensors": ["config"]},
    }
    about = "One line of plimsoll size --batch. A null counts as not given."
    return published("plimsoll.request/1", about, body)


def property_of(field: Field) -> Schema:
    """A key of a request."""
    limits: Schema = {}
    if field.least is not None:
        limits["minimum"] = field.least
    if field.most is not None:
        limits["maximum"] = field.most
    if field.kind in (Kind.NUMBERS, Kind.INTEGERS):
        of = "number" if field.kind is Kind.NUMBERS else "integer"
        shape: Schema = {"type": "array", "items": {"type": of} | limits}
    elif field.kind is Kind.OBJECTS:
        # A further model is a request of its own, but for the machine.
        items = _tensor() if field.name == "tensors" else {"$ref": "#"}
        shape = {"type": "array", "items": items}
    elif field.choices:
        shape = {"enum": list(field.choices)}
    else:
        shape = dict(_TYPES[field.kind]) | limits
    return {"description": field.help, "anyOf": [shape, {"type": "null"}]}


def _tensor() -> Schema:
    shape: Schema = {"type": "array", "items": SIZE, "maxItems": 16}
    return closed(name=TEXT, dtype=TEXT, shape=shape)


def _answer() -> Schema:
    rank = closed(
        rank=SIZE,
        device=TEXT,
        total_bytes=or_null(SIZE),
        allocatable_bytes=or_null(SIZE),
        regions=closed(**{region.value: _region() for region in Region}),
        phases=said(
            closed(**{phase.value: _peak() for phase in Phase}),
            "the most the rank holds in each phase, others included, headroom not",
        ),
        planned_bytes=BYTES,
        free_bytes=or_null(BYTES),
    )
    full = closed(
        schema={"const": answer.SCHEMA},
        id=_ID,
        error={"type": "null"},
        model=closed(id=TEXT, model_type=TEXT, parameters=SIZE, weights_bytes=SIZE, basis=BASIS),
        ranks={"type": "array", "items": rank, "minItems": 1},
        sequence_state=_sequence_state(),
        llama_cpp=or_null(
            closed(
                model_buffers=_BUFFERS,
                kv_buffers=_BUFFERS,
                rs_buffers=_BUFFERS,
                compute_buffers=_BUFFERS,
                output_buffer=SIZE,
            )
        ),
        verdict=one_of(Fit),
        binding=closed(rank=SIZE, region=one_of(Region)),
        starts=said(
            or_null({"type": "boolean"}),
            "whether the runtime starts with it; null where that is not known",
        ),
        limits=closed(
            max_context=or_null(SIZE),
            max_concurrency=or_null(SIZE),
            best_weight_format=or_null(TEXT),
        ),
        inverse=said(or_null(_inverse()), "null unless asked for with inverse"),
        together=said(or_null(_together()), "null unless further models are given with the first"),
        traffic=said(or_null(_traffic()), "what runs at once; null unless a traffic is stated"),
        assumptions=TEXTS,
        warnings=TEXTS,
    )
    failed = closed(
        schema={"const": answer.SCHEMA},
        id=_ID,
        error=closed(code=TEXT, message=TEXT, field=or_null(TEXT)),
    )
    about = "The answer to one request: a budget, or what is wrong with the request."
    return published(answer.SCHEMA, about, {"oneOf": [full, failed]})


def _peak() -> Schema:
    return closed(low=BYTES, likely=BYTES, high=BYTES, driver=said(TEXT, "what drives the peak"))


def _region() -> Schema:
    choices = [*answer.DIRECTIONS.values(), None]
    said_of = "of a bound: the truth is at least this, at most this, or either; else null"
    return closed(
        low=BYTES,
        likely=BYTES,
        high=BYTES,
        basis=BASIS,
        source=TEXT,
        direction=said({"enum": choices}, said_of),
    )


def _together() -> Schema:
    lies = closed(
        devices={"type": "array", "items": SIZE},
        answer=said({"type": "object"}, "an answer of this same kind, beside the others"),
    )
    device = closed(
        device=TEXT,
        allocatable_bytes=or_null(SIZE),
        held=said(closed(low=BYTES, likely=BYTES, high=BYTES), "by all models and others"),
    )
    return closed(
        models=said({"type": "array", "items": lies}, "in the order of start"),
        devices={"type": "array", "items": device},
        verdict=said(one_of(Fit), "the worst of the models'"),
    )


def _traffic() -> Schema:
    spread = closed(mean={"type": "number", "minimum": 0}, p95=SIZE, p99=SIZE)
    return closed(
        requests=said(spread, "that run at once"),
        live_tokens=said(spread, "of all that run: prompts and what is answered so far"),
        longest=said(SIZE, "tokens of the longest request at its end"),
    )


def _inverse() -> Schema:
    """Questions by name; which of them a runtime has differs."""
    found = closed(
        value=said(or_null({"type": ["integer", "string"]}), "null where nothing fits"),
        settings=said({"type": "object"}, "keys of a request that give it"),
        binding=or_null(closed(rank=SIZE, region=one_of(Region))),
        reason=said(TEXT, "what stops it there"),
    )
    return {"type": "object", "additionalProperties": found}


def _sequence_state() -> Schema:
    least = "the least for a sequence of the plan's context, whole model, no rounding, no copies"
    reserved = "what the runtime sets aside for that sequence, on the fullest rank"
    return closed(
        architecture_bytes_per_sequence=said(SIZE, least),
        reserved_bytes_per_sequence=said(SIZE, reserved),
        bytes_per_token=said(SIZE, "growth with one more token, on the fullest rank"),
        pool_bytes=said(or_null(BYTES), "all that is set aside, on the fullest rank"),
        num_blocks=said(or_null(SIZE), "blocks of that pool"),
        block_size=said(or_null(SIZE), "tokens of a block"),
        bytes_per_block=said(or_null(SIZE), "of one block in all layers of that rank"),
        pool_tokens=said(or_null(SIZE), "tokens that the pool holds, as the runtime says it"),
        max_concurrency=said(
            or_null({"type": "number", "minimum": 0}), "requests of full context at once"
        ),
    )


def _verify() -> Schema:
    body = closed(
        schema={"const": verify.SCHEMA},
        model=TEXT,
        agrees={"type": "boolean"},
        parameters=said(SIZE, "as counted here"),
        built_parameters=said(SIZE, "of the model that transformers built without weights"),
        basis=BASIS,
        classes={
            "type": "array",
            "items": closed(**{"class": TEXT, "parameters": SIZE, "built_parameters": SIZE}),
        },
        model_class=TEXT,
        transformers=TEXT,
        torch=TEXT,
        warnings=TEXTS,
    )
    about = "Our parameters beside those of the built model: plimsoll verify --json."
    return published(verify.SCHEMA, about, body)


def _kv() -> Schema:
    term = closed(
        kind=said(TEXT, "what such layers attend to"),
        layers=SIZE,
        window=said(or_null(SIZE), "tokens that such a layer looks back; null for all"),
        tokens=said(SIZE, "tokens it keeps of max_model_len"),
        bytes_per_token_and_layer=SIZE,
        bytes=said(SIZE, "layers × tokens × bytes_per_token_and_layer"),
    )
    body = closed(
        schema={"const": kv.SCHEMA},
        model=TEXT,
        kv_cache_dtype=TEXT,
        max_model_len=said(SIZE, "tokens of the one request"),
        formula=said(TEXT, "the whole calculation, one term per kind of layer"),
        inputs={"type": "array", "items": term},
        bytes_per_token=said(SIZE, "what one more token costs at this length"),
        cache_bytes=said(SIZE, "the sum of the inputs"),
        state_bytes=said(SIZE, "constant state, which does not grow"),
        total_bytes=said(SIZE, "cache_bytes + state_bytes"),
        basis={"enum": [Basis.EXACT.value, Basis.BOUND.value]},
        warnings=said(TEXTS, "which way the figures are bounds, and why"),
    )
    about = "The KV cache of one request by the architecture alone: plimsoll kv --json."
    return published(kv.SCHEMA, about, body)
