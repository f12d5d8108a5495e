"""One config seen through its class: values typed, bounded, and with their origin.

A config is foreign text. Every value that is used passes one of the readers here, which
either returns a value of the right type within bounds or raises one ``ConfigError`` that
names the field. Nothing is allocated in proportion to a value before it was checked.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, TypeGuard, cast

from engine.config.defaults import NO_DEFAULTS, ClassDefaults, class_defaults
from engine.errors import ConfigError
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Other spellings, tried in this order where the class's own map does not help
# (remote-code and historical configs).
ALIASES: Mapping[str, tuple[str, ...]] = {
    "num_hidden_layers": (
        "n_layer", "n_layers", "num_layers", "decoder_layers", "num_transformer_layers",
    ),
    "hidden_size": ("n_embd", "d_model", "model_dim", "dim"),
    "num_attention_heads": ("n_head", "n_heads", "num_heads", "decoder_attention_heads"),
    "num_key_value_heads": (
        "n_head_kv", "num_kv_heads", "multi_query_group_num", "num_attention_groups", "n_kv_heads",
    ),
    "intermediate_size": (
        "n_inner", "ffn_dim", "d_ff", "ffn_hidden_size", "decoder_ffn_dim", "block_ff_dim",
        "feed_forward_hidden_size",
    ),
    "vocab_size": ("padded_vocab_size", "n_vocab"),
    "head_dim": ("kv_channels", "attention_head_dim", "hidden_size_per_head", "d_head"),
    "num_experts": (
        "num_local_experts", "n_routed_experts", "moe_num_experts", "num_routed_experts",
    ),
    "num_experts_per_tok": (
        "num_experts_per_token", "moe_topk", "moe_k", "top_k_experts", "moe_top_k",
        "experts_per_token",
    ),
    "num_nextn_predict_layers": ("num_mtp_layers", "mtp_num_hidden_layers", "mtp_num_layers"),
}  # fmt: skip

_GROUP = {
    name: group for key, other in ALIASES.items() for group in [(key, *other)] for name in group
}

# Highest plausible value of a field; a hundred times beyond what was ever published.
_CEILING = {
    "num_hidden_layers": 1_024,
    # The two stacks of an encoder-decoder each name their layers in a way of their own.
    "encoder_layers": 4_096,
    "decoder_layers": 4_096,
    "num_layers": 4_096,
    "num_encoder_layers": 4_096,
    "num_decoder_layers": 4_096,
    "encoder_num_hidden_layers": 4_096,
    "decoder_num_hidden_layers": 4_096,
    "hidden_size": 2**20,
    "num_attention_heads": 2**16,
    "num_key_value_heads": 2**16,
    "head_dim": 2**16,
    "v_head_dim": 2**16,
    "intermediate_size": 2**24,
    "moe_intermediate_size": 2**24,
    "vocab_size": 2**27,
    "num_experts": 2**17,
    "num_experts_per_tok": 2**17,
    "num_nextn_predict_layers": 1_024,
    "mtp_num_hidden_layers": 1_024,
}
_DEFAULT_CEILING = 2**40
_LONGEST_LIST = 4_096
_LONGEST_TYPE = 100
"""Characters of a ``model_type``: it is quoted in answers."""


class MissingFieldError(ConfigError):
    """A field that the model cannot be sized without is absent, and its class has no default."""


def is_mapping(value: object) -> TypeGuard[dict[str, object]]:
    """Whether ``value`` is a JSON object."""
    return isinstance(value, dict)


def shown(value: object) -> str:
    """``value`` as it may stand in a sentence."""
    if isinstance(value, dict | list | tuple) and not value:
        return tr("empty")
    if isinstance(value, dict | list | tuple):
        return tr("a list") if not isinstance(value, dict) else tr("an object")
    if isinstance(value, int) and abs(value) >= 10**30:
        return tr("a number of more than 30 digits")
    text = repr(value)
    return text if len(text) <= 40 else text[:39] + "\N{HORIZONTAL ELLIPSIS}"


@cache
def _spellings(own: ClassDefaults, key: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names under which ``key`` may be stated: those of one attribute, and others like it.

    A class reads its own names alone; where it has none, its code may still look for ``key``.
    The others are of classes that are not known.
    """
    if own.has(key):
        mapped = own.aliases.get(key, ())
        more = (name for known in mapped for name in own.aliases[known])
        return tuple(dict.fromkeys((key, *mapped, *more))), ()
    group = _GROUP.get(key, ())
    known = tuple(name for name in group if own.has(name))
    if known or own is not NO_DEFAULTS:
        return (known or (key,))[:1], known[1:]
    return (key,), tuple(name for name in group if name != key)


class Facts:
    """A config mapping with the defaults of its class.

    ``asked`` collects every key that was looked up: what is stated and was never asked for
    is what the reader does not understand.
    """

    __slots__ = (
        "above", "asked", "below", "defaults", "model_type", "origins", "path", "stated",
    )  # fmt: skip

    def __init__(
        self,
        stated: Mapping[str, object],
        model_type: str = "",
        defaults: ClassDefaults | None = None,
        path: str = "",
    ) -> None:
        self.stated = stated
        self.model_type = model_type
        self.defaults = defaults or NO_DEFAULTS
        self.path = path
        self.origins: dict[str, str] = {}
        self.asked: set[str] = set()
        self.above: Facts | None = None
        """The config in which a text model's own lies."""
        self.below: dict[str, Facts] = {}
        """Sub-configs that were looked into; what is asked of one counts for all who look."""

    def name(self, key: str) -> str:
        """The field as the user would find it."""
        return f"{self.path}.{key}" if self.path else key

    def bad(self, key: str, value: object, wanted: str) -> ConfigError:
        """The error for a value that cannot be."""
        field = self.name(key)
        return ConfigError(
            tr("{field} is {shown}; {wanted}.").format(
                field=field, shown=shown(value), wanted=wanted
            ),
            field=field,
        )

    def raw(self, key: str) -> object:
        """The value as it stands: stated, else the class default, else None.

        A stated null is None: it overrides the default.
        """
        stated = self.stated
        same, others = _spellings(self.defaults, key)
        if same[0] in stated or len(same) > 1:
            name = self._decisive(same)
            if name:
                self.asked.update((same[0], name))
                self.origins[key] = "stated"
                return stated[name]
        self.asked.update(same)
        self.asked.update(others)
        for name in others:
            if stated.get(name) is not None:
                self.origins[key] = "stated"
                return stated[name]
        values = self.defaults.values
        for name in (*same, *others):
            if name in values:
                self.origins[key] = "class default"
                return values[name]
        return None

    def declared(self, key: str) -> int | None:
        """The whole number that stands in the field ``key`` itself, or its default.

        It is what a class has before it takes the other names that it maps to the field.
        """
        value = self.stated.get(key, self.defaults.values.get(key))
        return None if value is None else self.checked(key, value, 1)

    def _decisive(self, names: tuple[str, ...]) -> str:
        """The one of an attribute's ``names`` that decides; empty where none is stated.

        A class takes its fields first and then what else it is given, in the order of the config:
        of two names the one that is no field wins, and the last of several.
        """
        stated, own = self.stated, self.defaults
        present = [n for n in names if stated.get(n) is not None]
        if len(present) < 2:
            return present[0] if present else names[0] if names[0] in stated else ""
        free = [n for n in present if n not in own.values and n not in own.unset]
        return max(free, key=list(stated).index) if free else present[0]

    def is_asked(self, key: str) -> bool:
        """Whether ``key``, or the same under another spelling, was looked up.

        A spelling that the class does not have counts as such where the class's own one is
        stated, or says the same by default.
        """
        if key in self.asked:
            return True
        same, others = _spellings(self.defaults, key)
        spellings = (*same, *others)
        if not any(name in self.asked for name in spellings):
            return False
        if key in spellings:
            return True
        own = [self.stated.get(name, self.defaults.values.get(name)) for name in spellings]
        return any(name in self.stated for name in spellings) or self.stated[key] in own

    def settle(self, *keys: str) -> None:
        """Mark ``keys`` as understood although their values do not matter here."""
        self.asked.update(keys)

    def has(self, key: str) -> bool:
        """Whether the config or its class gives ``key`` a value other than null."""
        return self.raw(key) is not None

    def checked(self, key: str, value: object, low: int) -> int:
        """``value`` as an int within the bounds of ``key``.

        Raises:
            ConfigError: it is none.
        """
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.bad(key, value, tr("a whole number is needed"))
        if isinstance(value, float):
            if not value.is_integer():
                raise self.bad(key, value, tr("a whole number is needed"))
            value = int(value)
        high = _CEILING.get(key, _DEFAULT_CEILING)
        if not low <= value <= high:
            raise self.bad(
                key, value, tr("a value from {low} to {high} is needed").format(low=low, high=high)
            )
        return value

    def integer(self, key: str, default: int | None = None, low: int = 1) -> int:
        """The whole number ``key``, at least ``low``; ``default`` where it is absent or null.

        Raises:
            ConfigError: it is missing, of another type, or out of bounds.
        """
        value = self.raw(key)
        if value is None:
            if default is None:
                field = self.name(key)
                message = tr("{field} is missing; without it the model cannot be sized.").format(
                    field=field
                )
                raise MissingFieldError(message, field=field)
            self.origins[key] = "derived"
            return default
        return self.checked(key, value, low)

    def optional(self, key: str, low: int = 0) -> int | None:
        """The whole number ``key``, or None where it is absent or null.

        Raises:
            ConfigError: another type, or out of bounds.
        """
        value = self.raw(key)
        return None if value is None else self.checked(key, value, low)

    def count(self, key: str) -> int:
        """The whole number ``key``; 0 where it is absent, null or false."""
        value = self.raw(key)
        return 0 if value is None or value is False else self.checked(key, value, 0)

    def flag(self, key: str, *, default: bool = False) -> bool:
        """The truth value ``key``; ``default`` where it is absent or null.

        Raises:
            ConfigError: it is neither true nor false (nor 0 or 1).
        """
        value = self.raw(key)
        if value is None:
            return default
        if value is True or value is False:
            return value
        if value in (0, 1):
            return bool(value)
        raise self.bad(key, value, tr("true or false is needed"))

    def says(self, flag: bool | str) -> bool:  # noqa: FBT001 - a constant or the key that decides
        """``flag`` itself, or the truth value of the key it names (``!key``: its opposite)."""
        if isinstance(flag, bool):
            return flag
        if flag.startswith("!"):
            return not self.flag(flag[1:])
        return self.flag(flag)

    def word(self, key: str, default: str = "") -> str:
        """The text ``key``; ``default`` where it is absent or null.

        Raises:
            ConfigError: it is no text.
        """
        value = self.raw(key)
        if value is None:
            return default
        if not isinstance(value, str):
            raise self.bad(key, value, tr("a word is needed"))
        return value

    def items(self, key: str) -> Sequence[object] | None:
        """The list ``key``, or None where it is absent or null.

        Raises:
            ConfigError: it is no list, or too long.
        """
        value = self.raw(key)
        if value is None:
            return None
        if not isinstance(value, list | tuple):
            raise self.bad(key, value, tr("a list is needed"))
        entries = cast("Sequence[object]", value)
        if len(entries) > _LONGEST_LIST:
            raise self.bad(
                key,
                entries,
                tr("at most {longest_list} entries are possible").format(
                    longest_list=_LONGEST_LIST
                ),
            )
        return entries

    def integers(self, key: str, low: int = 0) -> tuple[int, ...] | None:
        """The list of whole numbers ``key``, or None.

        Raises:
            ConfigError: an entry is none, or out of bounds.
        """
        entries = self.items(key)
        return None if entries is None else tuple(self.checked(key, e, low) for e in entries)

    def words(self, key: str) -> tuple[str, ...] | None:
        """The list of words ``key``, or None.

        Raises:
            ConfigError: an entry is no text.
        """
        entries = self.items(key)
        if entries is None:
            return None
        found = tuple(e for e in entries if isinstance(e, str))
        if len(found) != len(entries):
            raise self.bad(key, entries, tr("a list of words is needed"))
        return found

    def sub(self, key: str) -> Facts | None:
        """The sub-config ``key`` with the defaults of its own class; None where it is absent.

        Raises:
            ConfigError: it is no object.
        """
        value = self.raw(key)
        if value is None:
            return None
        if not is_mapping(value):
            raise self.bad(key, value, tr("an object is needed"))
        own = self.defaults
        sub_type = own.sub_types.get(key, "")
        found = facts_for(value, sub_type, self.name(key), fixed=key in own.fixed)
        found.asked = self.below.setdefault(key, found).asked
        if key in own.merged:
            found.defaults = _filled(found.defaults, own.absent.get(key, {}))
        return found

    def empty(self, key: str) -> Facts:
        """The sub-config ``key`` as its class has it, where the config leaves it out."""
        sub_type = self.defaults.sub_types.get(key, "")
        given = self.defaults.absent.get(key, {})
        own = _filled(class_defaults(sub_type) or NO_DEFAULTS, given)
        return Facts({}, sub_type, own, self.name(key))


def _filled(own: ClassDefaults, given: Mapping[str, object]) -> ClassDefaults:
    return replace(own, values={**own.values, **given}) if given else own


def facts_for(
    mapping: Mapping[str, object], assumed_type: str = "", path: str = "", *, fixed: bool = False
) -> Facts:
    """``mapping`` with the defaults of the ``model_type`` it states (else ``assumed_type``).

    Where the class is ``fixed``, what type is stated does not matter.

    Raises:
        ConfigError: ``model_type`` is no word.
    """
    stated = mapping.get("model_type")
    if stated is not None and not isinstance(stated, str):
        field = f"{path}.model_type" if path else "model_type"
        raise ConfigError(
            tr("{field} is {shown}; a word is needed.").format(field=field, shown=shown(stated)),
            field=field,
        )
    model_type = assumed_type if fixed else stated or assumed_type
    if len(model_type) > _LONGEST_TYPE:
        field = f"{path}.model_type" if path else "model_type"
        why = tr("a word of at most {longest_type} characters is needed").format(
            longest_type=_LONGEST_TYPE
        )
        raise ConfigError(
            tr("{field} is {shown}; {why}.").format(field=field, shown=shown(model_type), why=why),
            field=field,
        )
    return Facts(mapping, model_type, class_defaults(model_type), path)
