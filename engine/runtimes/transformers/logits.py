"""Logits of a prompt: of its last token only, or of all of it, as older classes made them.

Source:
    ``models/*/modeling_*.py`` and ``generation/utils.py`` in the wheels of Transformers 4.36.2 to
    5.24.0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.runtimes.transformers import releases

if TYPE_CHECKING:
    from engine.runtimes.transformers.releases import Version

_FLOAT_BYTES = 4
_COPIED = frozenset({
    "chameleon", "cohere", "gemma", "gemma2", "idefics2", "jamba", "jetmoe", "llama", "mamba",
    "mamba2", "mistral", "mixtral", "nemotron", "olmo", "phi", "phi3", "qwen2", "qwen2_moe",
    "recurrent_gemma", "starcoder2",
})  # fmt: skip
"""Types whose classes copied the logits to 32 bits, whole (``logits.float()``)."""
_WHOLE = frozenset({
    "biogpt", "bloom", "codegen", "ctrl", "falcon_mamba", "gpt_bigcode", "gpt_neo",
    "gpt_neox_japanese", "gptj", "granitemoe", "granitemoeshared", "mamba", "mamba2", "mpt",
    "openai-gpt", "opt", "recurrent_gemma", "rwkv", "xglm",
})  # fmt: skip
"""Types that made the logits of every token until 5.0 (``logits_to_keep``)."""
_ALWAYS_WHOLE = frozenset({"qwen", "xlstm"})
"""Types that still do; Qwen 1 by its own code (``modeling_qwen.py``)."""


@dataclass(frozen=True, slots=True)
class Logits:
    """Bytes of a whole prompt's logits; 0 where only those of its last token are made."""

    made_bytes: int = 0
    """At the end of the pass over the prompt."""
    held_bytes: int = 0
    """Still there while the next token is computed."""


def of_prompt(
    model_type: str, version: Version, entries: int, element_bytes: int, chunk: int, prompt: int
) -> Logits:
    """The logits of a prompt beyond its last token's.

    Args:
        model_type: of the model.
        version: of Transformers.
        entries: of the vocabulary, times the sequences at once.
        element_bytes: of the model's dtype.
        chunk: tokens that one pass reads.
        prompt: tokens of the prompt.
    """
    whole = version < releases.LAST_LOGITS or model_type in _ALWAYS_WHOLE
    whole |= version < releases.EVERY_LAST_LOGITS and model_type in _WHOLE
    if not whole or prompt <= 1:
        return Logits()
    copied = model_type in _COPIED and version < releases.LAST_LOGITS
    kept = _FLOAT_BYTES if copied else element_bytes
    made = element_bytes + (_FLOAT_BYTES if copied else 0)
    holds = version < releases.CACHE_OBJECTS
    return Logits(entries * chunk * made, entries * prompt * kept if holds else 0)
