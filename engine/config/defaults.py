"""Class defaults and attribute maps of every model type (``resources/data/class_defaults.json``).

Published configs leave out what equals the class default, so a reader without this guesses wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from resources import data

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, eq=False)
class ClassDefaults:
    """What the class of one model type says when the config is silent."""

    values: Mapping[str, object] = field(default_factory=dict[str, object])
    aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Common name -> this class's own spellings, and back."""
    sub_types: Mapping[str, str] = field(default_factory=dict[str, str])
    """Name of a sub-config -> its model type where the config does not say."""
    absent: Mapping[str, Mapping[str, object]] = field(
        default_factory=dict[str, "Mapping[str, object]"]
    )
    """Name of a sub-config -> what the class puts into it where the config leaves it out."""
    merged: frozenset[str] = frozenset()
    """Sub-configs in which ``absent`` also fills in for what is stated only in part."""
    fixed: frozenset[str] = frozenset()
    """Sub-configs that are of one class, whatever type they state."""
    unset: frozenset[str] = frozenset()
    """Numbers that the class has, and has no default for."""

    def has(self, key: str) -> bool:
        """Whether the class has a field ``key``, under its own name or one that it maps."""
        return key in self.values or key in self.aliases or key in self.unset


NO_DEFAULTS = ClassDefaults()

# Model types published under another name, built by the same class.
SAME_CLASS = {
    "kimi_k2": "deepseek_v3",
    "phi4": "phi3",
    "internlm3": "llama",
    "minimax_m3": "minimax_m3_vl_text",
    "minimax_text_01": "minimax",
    "minimax_m1": "minimax",
    "deepseek_ref": "deepseek_v4",
    "chatgpt-oss": "gpt_oss",
    "mimo_v2": "mimo_v2_flash",
    "musicflamingo_encoder": "audioflamingo3_encoder",
    "qwen3_asr_audio_encoder": "qwen3_asr_encoder",
}

# Names that a class takes for old configs' sake, beside those that its attribute map has; where
# both are stated the old one wins (transformers 5.24.0, the ``__post_init__`` of each).
_OLD_NAMES = {
    "bloom": {"n_embed": "hidden_size"},
    "deepseek_v32": {"num_experts": "n_routed_experts"},
    "falcon": {"n_embed": "hidden_size"},
    "glm_moe_dsa": {"num_experts": "n_routed_experts"},
    "lfm2": {"block_ff_dim": "intermediate_size"},
    "nomic_bert": {
        "n_embd": "hidden_size",
        "n_head": "num_attention_heads",
        "n_inner": "intermediate_size",
        "n_layer": "num_hidden_layers",
        "n_positions": "max_position_embeddings",
    },
    "longcat_flash": {"num_hidden_layers": "num_layers"},
    "mistral_large4_text": {"num_experts": "n_routed_experts"},
}
# A name that a class maps to a field that it sets afterwards, by its default at least.
_OVERWRITTEN = {"step3p5": "num_local_experts"}


@cache
def class_defaults(model_type: str) -> ClassDefaults | None:
    """The defaults of ``model_type``; None where its class is not known."""
    types = data("class_defaults")["types"]
    entry = types.get(model_type) or types.get(SAME_CLASS.get(model_type, ""))
    if entry is None:
        return None
    aliases: dict[str, tuple[str, ...]] = {}
    named = {**entry.get("a", {}), **_OLD_NAMES.get(model_type, {})}
    named.pop(_OVERWRITTEN.get(model_type, ""), None)
    for alias, key in named.items():
        aliases[alias] = (*aliases.get(alias, ()), key)
        aliases[key] = (*aliases.get(key, ()), alias)
    return ClassDefaults(
        entry.get("d", {}),
        aliases,
        entry.get("s", {}),
        entry.get("o", {}),
        frozenset(entry.get("m", ())),
        frozenset(entry.get("f", ())),
        frozenset(entry.get("n", ())),
    )


@cache
def all_fields() -> frozenset[str]:
    """The names of all fields of all config classes of transformers, by any spelling."""
    return frozenset(data("config_fields"))


@cache
def all_classes() -> frozenset[str]:
    """The names of all model classes of transformers."""
    return frozenset(data("model_classes"))
