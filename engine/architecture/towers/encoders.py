"""Every vision encoder by the ``model_type`` of its own config: which module it is in.

A root that takes any encoder (LLaVA and its kin, ``vision-encoder-decoder``) looks it up here.

Source:
    transformers 5.24.0, the modelling file of each type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from engine.architecture.lookup import Lookup
from engine.architecture.towers.parts import vision_of
from engine.architecture.towers.registry import UnknownTowerError
from engine.config.facts import MissingFieldError

if TYPE_CHECKING:
    from engine.architecture.spec import Tensor
    from engine.architecture.towers.parts import Tower
    from engine.config.facts import Facts

EncoderRule = Callable[["Facts"], "Tower"]
"""vision config -> the tower that it describes, without a projector."""

_HOMES = {
    "further": "kimi_k25_vision",
    "merging": (
        "cohere_compass_vision ernie4_5_vl_moe_vision exaone4_5_vision gemma4_vision "
        "glm4v_moe_vision glm4v_vision glm5_next_vision glm_ocr_vision granite_docling_vision "
        "hunyuan_vl_vision hy_v4_vl_vision qwen2_5_vl_vision qwen2_vl_vision qwen3_5_moe_vision "
        "qwen3_5_vision qwen3_vl_moe_vision qwen3_vl_vision qwen4_exp_vision"
    ),
    "named": "gemma3n_vision timm_wrapper",
    "sam": "deepseek_ocr2_sam_vision_model got_ocr2_vision pp_chart2table_vision sam_vision_model",
    "stages": "convnext convnextv2 florence_vision swinv2",
    "swin": "donut-swin swin",
    "vits": (
        "aimv2_vision_model beit blip_2_vision_model blip_vision_model "
        "chinese_clip_vision_model clip_vision_model cosmos3_edge_vision data2vec-vision deit "
        "dinov2 dinov2_with_registers dinov3_vit git_vision_model idefics2_vision "
        "idefics3_vision idefics_vision ijepa instructblip_vision_model "
        "instructblipvideo_vision_model intern_vit_6b internvl_vision kosmos_2_vision_model "
        "mlcd mlcd_vision_model paddleocr_vl_vision pixio pixtral qianfan_ocr_vision radio "
        "siglip2_vision_model siglip_vision_model smolvlm_vision tipsv2_vision_model "
        "video_llama_3_vision vit vit_mae vit_msn"
    ),
}
_SAME = {
    "qwen2_5_omni_vision_encoder": "qwen2_5_vl_vision",
    "qwen3_omni_moe_vision_encoder": "qwen3_vl_vision",
}
VISION_ENCODERS: Mapping[str, EncoderRule] = Lookup(
    "engine.architecture.towers", "VISION_ENCODERS", _HOMES, _SAME
)


def encoder(vision: Facts) -> Tower:
    """The tower that ``vision`` describes.

    Raises:
        UnknownTowerError: no rule for its type.
    """
    if vision.model_type not in VISION_ENCODERS:
        raise UnknownTowerError(vision.model_type)
    return VISION_ENCODERS[vision.model_type](vision)


def tower_of(root: Facts) -> Tower:
    """The vision tower of a root that takes any encoder.

    Raises:
        UnknownTowerError: no rule for its type.
    """
    return encoder(vision_of(root))


def encoders_in(root: Facts, keys: Iterable[str]) -> list[Tensor]:
    """The encoders of known types among the sub-configs ``keys`` of a root that has no rule."""
    found: list[Tensor] = []
    for key in keys:
        facts = root.sub(key)
        if facts is None or facts.model_type not in VISION_ENCODERS:
            continue
        with suppress(MissingFieldError, UnknownTowerError):
            found += encoder(facts).tensors
    return found
