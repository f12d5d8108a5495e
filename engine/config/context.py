"""The context length a config allows, by the rule the runtimes share.

Source:
    vLLM 0.33.0, ``config/model.py :: _get_and_verify_max_len``: the smallest of the length
    keys, times the rope factor, except for scalings whose ``max_position_embeddings`` is
    already the scaled one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.config.facts import is_mapping
from engine.words import tr

if TYPE_CHECKING:
    from engine.config.facts import Facts

_KEYS = (
    "max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length",
    "max_sequence_length", "max_seq_length", "seq_len", "max_target_positions",
    "max_context_length",
)  # fmt: skip
_ALREADY_SCALED = frozenset(
    {"su", "longrope", "llama3", "yarn", "deepseek_yarn", "mrope", "default"}
)
_LARGEST_FACTOR = 4_096


def context_length(facts: Facts) -> int | None:
    """Tokens that the model was made for; None where the config does not say.

    Raises:
        ConfigError: a length is none, or the scaling is no object.
    """
    stated = (facts.optional(key, low=1) for key in _KEYS if key in facts.stated)
    lengths = [length for length in stated if length is not None]
    if not lengths:
        default = facts.count("max_position_embeddings")
        lengths = [default] if default else []
    if not lengths:
        return None
    return int(min(lengths) * _factor(facts))


def _factor(facts: Facts) -> float:
    scaling = None
    for key in ("rope_parameters", "rope_scaling"):
        value = facts.raw(key)
        if value and not is_mapping(value):
            raise facts.bad(key, value, tr("an object is needed"))
        scaling = value or scaling
    if not is_mapping(scaling) or facts.model_type.startswith("gemma3"):
        return 1
    kind = scaling.get("rope_type") or scaling.get("type")
    if kind is not None and not isinstance(kind, str):
        raise facts.bad("rope_parameters.rope_type", kind, tr("a word is needed"))
    factor = scaling.get("factor")
    if kind in _ALREADY_SCALED or isinstance(factor, bool) or not isinstance(factor, int | float):
        return 1
    return factor if 1 <= factor <= _LARGEST_FACTOR else 1
