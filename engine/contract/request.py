"""A request as a value: checked, and split into model, plan and device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from engine.contract.fields import (
    ABOUT_THE_ANSWER,
    ABOUT_THE_DEVICE,
    ABOUT_THE_MODEL,
    ABOUT_THE_TRAFFIC,
    BY_NAME,
    Field,
    Kind,
)
from engine.deployment.spec import Deployment
from engine.errors import UsageError
from engine.source.raw import HeaderTensor
from engine.words import figures, grouped, tr

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.fit.traffic import Traffic

RequestId = str | int | None

_NOT_THE_PLAN = {*ABOUT_THE_MODEL, *ABOUT_THE_DEVICE, *ABOUT_THE_ANSWER, *ABOUT_THE_TRAFFIC}
_OF_THE_MACHINE = (ABOUT_THE_DEVICE | ABOUT_THE_ANSWER) - {"devices"}
_MOST_TENSORS = 1_000_000
_MOST_MODELS = 16
_TENSOR_KEYS = {"name", "dtype", "shape"}
_BITS = {
    **dict.fromkeys(("F64", "I64", "U64"), 64),
    **dict.fromkeys(("F32", "I32", "U32"), 32),
    **dict.fromkeys(("F16", "BF16", "I16", "U16"), 16),
    **dict.fromkeys(("F8_E4M3", "F8_E5M2", "F8_E8M0", "I8", "U8", "BOOL"), 8),
    **dict.fromkeys(("F6_E2M3", "F6_E3M2"), 6),
    **dict.fromkeys(("F4", "F4_E2M1"), 4),
}


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """One question. ``given`` names the keys that were stated, for what is assumed beside."""

    id: RequestId
    model: str | None
    config: Mapping[str, object] | None
    tensors: tuple[HeaderTensor, ...]
    draft_model: str | None
    deployment: Deployment
    gpu: str | None
    gpu_total_bytes: int | None
    gpu_count: int | None
    host_total_bytes: int | None
    """RAM of a machine that isn't this one; None where it isn't stated."""
    devices: tuple[int, ...] | None
    """Which devices of the machine the plan takes, by index."""
    empty: bool
    """Whether this machine counts as if nothing else ran on it."""
    instead_of: frozenset[int]
    """Processes whose memory counts as free."""
    others: tuple[Request, ...]
    """Further models on the same machine, in the order in which they start."""
    traffic: Traffic | None
    inverse: bool
    """Whether the inverse questions are asked too."""
    given: frozenset[str]
    remarks: tuple[str, ...] = ()
    """What of a command was not understood, one sentence each."""


def parse(mapping: Mapping[str, object]) -> Request:
    """The request that ``mapping`` (a batch line, or the options of a command) states.

    A key whose value is null counts as not given.

    Raises:
        UsageError: an unknown key or a value of the wrong type or size; names the key.
    """
    identity = request_id(mapping)
    given = {k: v for k, v in mapping.items() if v is not None and k != "id"}
    values = {name: _checked(_field(name), value) for name, value in given.items()}
    remarks: tuple[str, ...] = ()
    if "from_command" in values:
        values, remarks = _with_command(values)
    if "model" not in values and "config" not in values:
        message = "No model is named: give model (a name, path or Hub id) or config."
        raise UsageError(message, field="model")
    if "tensors" in values and "config" not in values:
        message = "tensors needs the config they belong to: give config as well."
        raise UsageError(message, field="tensors")
    if values.get("max_model_len") == 0:
        message = (
            "max_model_len must be at least 1, or -1 for the longest that vLLM finds room for."
        )
        raise UsageError(message, field="max_model_len")
    plan = {k: v for k, v in values.items() if k not in _NOT_THE_PLAN}
    return Request(
        id=identity,
        model=values.get("model"),
        config=values.get("config"),
        tensors=_tensors(values.get("tensors", ())),
        draft_model=values.get("draft_model"),
        deployment=Deployment(**plan),
        gpu=values.get("gpu"),
        gpu_total_bytes=values.get("gpu_total_bytes"),
        gpu_count=values.get("gpu_count"),
        host_total_bytes=values.get("host_total_bytes"),
        devices=values.get("devices"),
        empty=values.get("baseline") == "empty",
        instead_of=frozenset(values.get("instead_of", ())),
        others=_others(values.get("with", ())),
        traffic=_traffic(values),
        inverse=values.get("inverse", False),
        given=frozenset(values),
        remarks=remarks,
    )


def _with_command(values: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """``values`` with those of the command where they state none, and what it leaves open."""
    from engine.launch.read import read  # noqa: PLC0415 - seldom stated

    found = read(values["from_command"])
    named = {"model": found.model, "draft_model": found.draft}
    said: dict[str, Any] = found.stated | {name: text for name, text in named.items() if text}
    if found.devices is not None and not values.keys() & {"gpu_count", "devices"}:
        said["gpu_count"] = found.devices
    said = {name: value for name, value in said.items() if name not in values}
    checked = {name: _checked(_field(name), value) for name, value in said.items()}
    return values | checked, found.remarks


def _traffic(values: Mapping[str, Any]) -> Traffic | None:
    if values.keys().isdisjoint(ABOUT_THE_TRAFFIC):
        return None
    from engine.fit.traffic import Traffic  # noqa: PLC0415 - seldom stated

    lacking = next((name for name in ABOUT_THE_TRAFFIC if name not in values), None)
    if lacking is not None:
        message = f"A traffic needs {lacking} too: give {', '.join(ABOUT_THE_TRAFFIC)}."
        raise UsageError(message, field=lacking)
    for name in ("concurrency", "live_tokens"):
        if name in values:
            message = f"A traffic says by itself how much runs at once: leave out {name}."
            raise UsageError(message, field=name)
    return Traffic(**{name: values[name] for name in ABOUT_THE_TRAFFIC})


def _others(items: object) -> tuple[Request, ...]:
    """The further requests: each a model and a plan, on the machine of the first."""
    found: list[Request] = []
    if len(cast("list[object]", items)) > _MOST_MODELS:
        message = f"with takes at most {_MOST_MODELS} further models."
        raise UsageError(message, field="with")
    for index, item in enumerate(cast("list[object]", items)):
        where = f"with[{index}]"
        if not isinstance(item, dict):
            message = f"{where} must be an object with model and the settings of its plan."
            raise UsageError(message, field=where)
        entry = cast("dict[str, object]", item)
        misplaced = sorted(_OF_THE_MACHINE & set(entry))
        if misplaced:
            message = f"{where} shares the machine of the request: leave out {misplaced[0]}."
            raise UsageError(message, field=f"{where}.{misplaced[0]}")
        found.append(parse(entry))
    return tuple(found)


def request_id(mapping: Mapping[str, object]) -> RequestId:
    """The caller's own name for the request, given back with the answer.

    Raises:
        UsageError: it is neither text nor a whole number.
    """
    value = mapping.get("id")
    if isinstance(value, bool) or not isinstance(value, str | int | None):
        message = "id must be text or a whole number."
        raise UsageError(message, field="id")
    return value


def _field(name: str) -> Field:
    field = BY_NAME.get(name)
    if field is not None:
        return field
    import difflib  # noqa: PLC0415 - for a slip only

    near = difflib.get_close_matches(name, BY_NAME, n=1)
    hint = f" Did you mean {near[0]}?" if near else " Leave it out, or see plimsoll size --help."
    message = f"There is no setting {name[:80]!r}.{hint}"
    raise UsageError(message, field=name[:80])


def _checked(field: Field, value: object) -> Any:
    check = {
        Kind.TEXT: _text,
        Kind.INTEGER: _integer,
        Kind.NUMBER: _number,
        Kind.BOOLEAN: _boolean,
        Kind.SWITCH: _switch,
        Kind.NUMBERS: _numbers,
        Kind.INTEGERS: _integers,
        Kind.OBJECT: _object,
        Kind.OBJECTS: _objects,
    }
    return check[field.kind](field, value)


def _text(field: Field, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _wrong(field, tr("text"), value)
    if field.choices and value not in field.choices:
        message = tr("{name} is one of {choices}, not {value}.").format(
            name=field.name, choices=", ".join(field.choices), value=repr(value[:80])
        )
        raise UsageError(message, field=field.name)
    return value


def _integer(field: Field, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _wrong(field, tr("a whole number"), value)
    return int(_within(field, value))


def _number(field: Field, value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise _wrong(field, tr("a number"), value)
    return float(_within(field, value))


def _boolean(field: Field, value: object) -> bool:
    if not isinstance(value, bool):
        raise _wrong(field, tr("true or false"), value)
    return value


def _switch(field: Field, value: object) -> str | bool:
    if isinstance(value, bool) or (isinstance(value, str) and value in {"on", "off", "auto"}):
        return value
    raise _wrong(field, tr("on, off, auto, true or false"), value)


def _numbers(field: Field, value: object) -> tuple[float, ...]:
    items = cast("list[object] | tuple[object, ...] | None", _listed(value))
    if items is None or len(items) > 1024:
        raise _wrong(field, tr("a list of numbers"), value)
    return tuple(_number(field, item) for item in items)


def _integers(field: Field, value: object) -> tuple[int, ...]:
    items = cast("list[object] | tuple[object, ...] | None", _listed(value))
    if not items or len(items) > 1024:
        raise _wrong(field, tr("a list of whole numbers"), value)
    return tuple(_integer(field, item) for item in items)


def _listed(value: object) -> object:
    return cast("object", value) if isinstance(value, list | tuple) else None


def _object(field: Field, value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise _wrong(field, tr("an object"), value)
    return cast("dict[str, object]", value)


def _objects(field: Field, value: object) -> list[object]:
    items = _listed(value)
    if not isinstance(items, list) or len(cast("list[object]", items)) > _MOST_TENSORS:
        raise _wrong(
            field, tr("a list of at most {most} objects").format(most=grouped(_MOST_TENSORS)), value
        )
    return cast("list[object]", items)


def _within(field: Field, value: float) -> float:
    low, high = field.least, field.most
    # Written so that NaN, which compares as false, is refused.
    if (low is None or value >= low) and (high is None or value <= high) and value == value:  # noqa: PLR0124 - NaN
        return value
    if low is not None and high is not None:
        text = tr("{name} must be between {low} and {high}, not {value}.")
        message = text.format(
            name=field.name, low=_plain(low), high=_plain(high), value=_shown(value)
        )
    else:
        text = tr("{name} must be at least {low}, not {value}.")
        message = text.format(name=field.name, low=_plain(low or 0), value=_shown(value))
    raise UsageError(message, field=field.name)


def _plain(value: float) -> str:
    return figures(f"{value:,.0f}" if value == int(value) else f"{value:g}")


def _wrong(field: Field, wanted: str, value: object) -> UsageError:
    message = tr("{name} must be {wanted}, not {value}.").format(
        name=field.name, wanted=wanted, value=_shown(value)
    )
    return UsageError(message, field=field.name)


def _shown(value: object) -> str:
    """A value quoted back, cut short: it may be anything, and as long as anything."""
    if isinstance(value, dict):
        return tr("an object")
    if isinstance(value, list | tuple):
        return tr("a list")
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and abs(value) >= 10**30:
        return tr("a number of more than 30 digits")
    text = repr(value)
    return text if len(text) <= 80 else text[:79] + "\N{HORIZONTAL ELLIPSIS}"


def _tensors(items: object) -> tuple[HeaderTensor, ...]:
    return tuple(_tensor(i, item) for i, item in enumerate(cast("list[object]", items)))


def _tensor(index: int, item: object) -> HeaderTensor:
    where = f"tensors[{index}]"
    if not isinstance(item, dict) or set(cast("dict[str, object]", item)) != _TENSOR_KEYS:
        message = f"{where} must be an object with name, dtype and shape, nothing else."
        raise UsageError(message, field=where)
    entry = cast("dict[str, object]", item)
    name, dtype, shape = entry["name"], entry["dtype"], entry["shape"]
    if not isinstance(name, str) or not isinstance(dtype, str) or dtype not in _BITS:
        message = f"{where}.dtype must be a safetensors dtype such as BF16, with a name."
        raise UsageError(message, field=where)
    dimensions = cast("list[object]", shape) if isinstance(shape, list) else None
    if dimensions is None or len(dimensions) > 16 or not all(map(_is_dimension, dimensions)):
        message = f"{where}.shape must be a list of whole numbers of at least 0."
        raise UsageError(message, field=where)
    sizes = tuple(cast("list[int]", dimensions))
    elements = 1
    for size in sizes:
        elements *= size
    return HeaderTensor(name, dtype, sizes, -(-elements * _BITS[dtype] // 8))


def _is_dimension(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**40
