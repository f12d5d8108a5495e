"""Every family by ``model_type``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.families import (
    classic,
    deepseek_v4,
    dense,
    encoders,
    gemma3n,
    gemma4,
    generic,
    hybrid,
    nas,
    recurrent,
    selecting,
    sparse,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.architecture.families.base import Family

_OWN: Mapping[str, Family] = {
    **classic.FAMILIES,
    **dense.FAMILIES,
    **sparse.FAMILIES,
    **hybrid.FAMILIES,
    **selecting.FAMILIES,
    **recurrent.FAMILIES,
    **nas.FAMILIES,
    **deepseek_v4.FAMILIES,
    **gemma4.FAMILIES,
    **gemma3n.FAMILIES,
    **encoders.FAMILIES,
}
# Text parts of multimodal models, and other names of the same layers.
_SAME_LAYERS = {
    "qwen2_vl_text": "qwen2",
    "qwen2_5_vl_text": "qwen2",
    "qwen2_5_omni_text": "qwen2",
    "qwen3_vl_text": "qwen3",
    "qwen3_asr_text": "qwen3",
    "qwen3_vl_moe_text": "qwen3_moe",
    "exaone4_5_text": "exaone4",
    "phi4": "phi3",
    "xverse": "llama",
    "mimo": "qwen2",
}
FAMILIES: Mapping[str, Family] = {
    **_OWN,
    **{name: _OWN[other] for name, other in _SAME_LAYERS.items()},
}
GENERIC = generic.GENERIC
"""What an unknown decoder is counted as: a bound, never an answer."""
