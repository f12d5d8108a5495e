"""Whether an architecture that nobody has seen may keep more than full attention does.

Its sequence state is bounded by the keys and values of every layer only if nothing that its config
states can be another state: each key has to be one that was counted, or one that by its name
shapes weights, positions or training, or lets layers keep less.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

from engine.architecture.unread import is_harmless, says_nothing
from engine.config.facts import ALIASES

if TYPE_CHECKING:
    from engine.config.facts import Facts

_KEEPS_NO_MORE = re.compile(
    # widths of matrices, experts and tables
    r"intermediate|ffn|mlp|feed_forward|inner|vocab|expert|moe|router|dense|first_k"
    # what is computed, trained and initialised, and with which numbers
    r"|act|norm|bias|dropout|tie|init|softcap|scal|(^|_)eps|std|temperature|dtype|loss|z_coef|label"
    r"|cache_implementation|use_cache|output_|return_|finetuning|problem|gradient|_name|path"
    # layers that keep less than all
    r"|^full_attn|num_kv_shared|kv_sharing|yoco|sliding|window|^swa_layers|chunk|global_attn_every"
    r"|interval|no_rope|^layer_types$|attention_(types|layers)$|max_|position"
)
_ATTENDS = frozenset({
    "attention", "full", "full_attention", "global", "global_attention", "local",
    "local_attention", "sliding", "sliding_attention", "chunked_attention", "swa",
})  # fmt: skip
"""Kinds of layers that keep keys and values, or fewer of them."""
_KINDS = re.compile(r"layer_types$|attention_(types|layers)$")
_SWITCHES = re.compile(r"share|cross|mla|kv|cache|recurr|conv|ssm|mamba|linear|sparse|loop|memory")
_CHOOSES = re.compile(r"attn|attention|mixer|layer|block|pattern|state|memory")
"""In the name of a flag or a word: what it switches or chooses may keep a state."""


def keeps_more(text: Facts) -> bool:
    """Whether a config of an unknown type speaks of more than keys and values, or of none."""
    if not text.has("num_attention_heads") or _contradicts_itself(text):
        return True
    return any(
        _may_keep(key, value)
        for key, value in text.stated.items()
        if not text.is_asked(key) and not (is_harmless(key) and "head" not in key)
    )


def _may_keep(key: str, value: object) -> bool:
    if isinstance(value, bool):
        return value and bool(_SWITCHES.search(key)) and not _KEEPS_NO_MORE.search(key)
    if isinstance(value, str):
        return bool(_CHOOSES.search(key)) and value not in _ATTENDS and "implementation" not in key
    if _KINDS.search(key):
        kinds = cast("list[object]", value) if isinstance(value, list) else [value]
        return not all(isinstance(kind, str) and kind in _ATTENDS for kind in kinds)
    if says_nothing(value) or isinstance(value, float):
        return False
    return not _KEEPS_NO_MORE.search(key)


def _contradicts_itself(text: Facts) -> bool:
    """Whether one thing is stated under two names with two values."""
    stated = text.stated
    for name, others in ALIASES.items():
        values = {repr(stated[key]) for key in (name, *others) if stated.get(key) is not None}
        if len(values) > 1:
            return True
    return False
