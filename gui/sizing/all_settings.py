"""Every setting of a runtime, also beyond the strip: what it is, how it is read. No Qt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from engine.contract.fields import FIELDS, Field, Group, Kind
from engine.contract.request import parse
from engine.errors import UsageError
from engine.runtimes import foreign
from engine.units import parse_bytes, parse_tokens
from engine.words import tr, tr_later

if TYPE_CHECKING:
    from engine.deployment.spec import Deployment

_ON_THE_STRIP = frozenset(
    {
        "runtime", "runtime_version", "weight_format", "kv_cache_dtype", "max_model_len",
    }
)  # fmt: skip
ON_BOTH = frozenset({"concurrency", "tensor_parallel_size", "pipeline_parallel_size"})
"""Here too, with the sliders that the strip has room for only where it is wide."""
_DEFAULT = "default"
_ON, _OFF = "on", "off"
_WORDS = {_DEFAULT: tr_later("default"), _ON: tr_later("on"), _OFF: tr_later("off")}


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the panel."""

    field: Field
    choices: tuple[str, ...] = ()
    """Words to choose among, the default first; empty where a text is typed."""

    @property
    def name(self) -> str:
        """The runtime's own name."""
        return self.field.name


def settings_of(runtime: str) -> tuple[Setting, ...]:
    """The settings that ``runtime`` has, in the order of the table."""
    own = ON_BOTH | foreign.settings_of(runtime)
    return tuple(
        Setting(field, _choices(field))
        for field in FIELDS
        if field.name in own
        and field.name not in _ON_THE_STRIP
        and field.group not in (Group.MODEL, Group.DEVICE, Group.TRAFFIC)
        and field.name != "draft_model"
    )


def in_words(choice: str) -> str:
    """One of a setting's choices as it is shown: the runtime's own words stay as they are."""
    return tr(_WORDS[choice]) if choice in _WORDS else choice


def _choices(field: Field) -> tuple[str, ...]:
    if field.choices:
        return (_DEFAULT, *field.choices)
    if field.kind is Kind.BOOLEAN:
        return (_DEFAULT, _ON, _OFF)
    return (_DEFAULT, _ON, _OFF, "auto") if field.kind is Kind.SWITCH else ()


def read(setting: Setting, text: str, plain: Deployment) -> object:
    """The value that ``text`` means; empty and ``default`` mean the runtime's own.

    Args:
        setting: which.
        text: as typed or chosen.
        plain: a deployment that states nothing.

    Raises:
        UsageError: one sentence why it can't be taken.
    """
    typed = text.strip()
    if typed in ("", _DEFAULT):
        return getattr(plain, setting.name)
    given = _parsed(setting.field, typed)
    request = parse({"model": "-", setting.name: given})
    return getattr(request.deployment, setting.name)


def _parsed(field: Field, text: str) -> object:
    try:
        return _READERS.get(field.kind, str)(field, text)
    except ValueError:
        message = tr("{name}: “{typed}” is not {wanted}.").format(
            name=field.name, typed=text[:40], wanted=tr(_WANTED[field.kind])
        )
        raise UsageError(message, field=field.name) from None


def _integer(field: Field, text: str) -> int:
    if field.name.endswith("_bytes"):
        return parse_bytes(text)
    return int(text) if text.startswith("-") else parse_tokens(text)


def _boolean(_: Field, text: str) -> bool:
    return text == _ON


def _numbers(_: Field, text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


def _integers(_: Field, text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def _number(_: Field, text: str) -> float:
    return float(text.replace(",", "."))


def _text(_: Field, text: str) -> str:
    return text


_READERS: dict[Kind, Any] = {
    Kind.INTEGER: _integer,
    Kind.NUMBER: _number,
    Kind.BOOLEAN: _boolean,
    Kind.NUMBERS: _numbers,
    Kind.INTEGERS: _integers,
    Kind.TEXT: _text,
    Kind.SWITCH: _text,
}
_WANTED = {
    Kind.INTEGER: tr_later("a whole number such as 4096 or 32k"),
    Kind.NUMBER: tr_later("a number such as 0.9"),
    Kind.NUMBERS: tr_later("numbers such as 3,1"),
    Kind.INTEGERS: tr_later("whole numbers such as 16,32"),
}


def shown(setting: Setting, value: object, default: object) -> str:
    """``value`` as it is typed; empty (or ``default``) where it is the runtime's own."""
    if value == default and type(value) is type(default):
        return _DEFAULT if setting.choices else ""
    if isinstance(value, bool):
        return _ON if value else _OFF
    if isinstance(value, tuple):
        return ",".join(f"{part:g}" for part in cast("tuple[float, ...]", value))
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)
