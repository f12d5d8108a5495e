"""Every family by ``model_type``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.families import classic, dense, gemma4, hybrid, sparse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.architecture.families.base import Family

FAMILIES: Mapping[str, Family] = {
    **classic.FAMILIES,
    **dense.FAMILIES,
    **sparse.FAMILIES,
    **hybrid.FAMILIES,
    **gemma4.FAMILIES,
}

# Text parts of multimodal models that are built as another type's.
FAMILIES = {
    **FAMILIES,
    "qwen2_vl_text": FAMILIES["qwen2"],
    "qwen2_5_vl_text": FAMILIES["qwen2"],
    "qwen2_5_omni_text": FAMILIES["qwen2"],
    "qwen3_vl_text": FAMILIES["qwen3"],
    "qwen3_vl_moe_text": FAMILIES["qwen3_moe"],
    "exaone4_5_text": FAMILIES["exaone4"],
    "glm4v_text": FAMILIES["glm4"],
    "glm4v_moe_text": FAMILIES["glm4_moe"],
    "phi4": FAMILIES["phi3"],
}

GENERIC = dense.LLAMA
"""What an unknown decoder is counted as: a bound, never an answer."""
