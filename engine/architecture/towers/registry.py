"""Every tower by the ``model_type`` of the whole model: which module it is in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from engine.architecture.lookup import Lookup

if TYPE_CHECKING:
    from engine.architecture.spec import Tensor
    from engine.config.facts import Facts

TowerRule = Callable[["Facts", "Facts"], "list[Tensor]"]
"""(root, text) -> the tensors of towers and projectors."""

_HOMES = {
    "further": (
        "kimi_k25 minicpm_ocr minicpmv4_6 minicpmv4_7 minimax_m3_vl mllama muse_glimmer voxtral "
        "step3p7"
    ),
    "gemma4": "gemma4",
    "vision": (
        "llava llava_next llava_next_video gemma3 paligemma mistral3 lfm2_vl llama4 qwen2_vl "
        "qwen2_5_vl qwen3_vl qwen3_vl_moe qwen3_5 qwen3_5_moe glm4v glm4v_moe exaone4_5"
    ),
}
TOWERS: Mapping[str, TowerRule] = Lookup("engine.architecture.towers", "TOWERS", _HOMES)
