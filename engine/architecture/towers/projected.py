"""Roots that project an encoder's patches with a norm and two linear layers, at most.

Source:
    transformers 5.24.0, the modelling file of each type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.towers.encoders import encoder, tower_of
from engine.architecture.towers.parts import number, vision_of, width_of
from engine.architecture.towers.vision import gemma3, llava_next, mistral3, own

if TYPE_CHECKING:
    from engine.architecture.spec import Tensor
    from engine.architecture.towers.parts import Tower
    from engine.config.facts import Facts


def _project(
    tower: Tower, width: int, inner: int, out: int, *, norm: int = 0, bias: bool = True
) -> list[Tensor]:
    """Add two linear layers, behind a norm ``norm`` wide where there is one."""
    tower.path = "multi_modal_projector."
    if norm:
        tower.norm("layer_norm", norm)
    tower.linear("linear_1", inner, width, bias=bias)
    tower.linear("linear_2", out, inner, bias=bias)
    return tower.tensors


def _times(root: Facts) -> int:
    """Layers of the encoder whose output is projected, side by side."""
    chosen = root.raw("vision_feature_layer")
    return len(root.items("vision_feature_layer") or (0,)) if isinstance(chosen, list) else 1


def internvl(root: Facts, text: Facts, vision: Facts | None = None) -> list[Tensor]:
    """InternVL and Qianfan-OCR: patches of a square become one token."""
    out = text.integer("hidden_size")
    vision = vision or vision_of(root)
    together = int(1 / number(root, "downsample_ratio", 0.5)) ** 2
    width = width_of(vision) * together
    return _project(encoder(vision), width, out, out, norm=width)


def lighton_ocr(root: Facts, text: Facts) -> list[Tensor]:
    """LightOnOCR: patches are merged behind a norm, and two linear layers without bias."""
    tower, out = tower_of(root), text.integer("hidden_size")
    width = width_of(vision_of(root))
    tower.path = "vision_projection."
    tower.norm("norm", width, bias=False)
    merged = width * root.integer("spatial_merge_size") ** 2
    tower.linear("patch_merger.merging_layer", width, merged, bias=False)
    return _project(tower, width, out, out, bias=False)


def paddleocr_vl(root: Facts, text: Facts) -> list[Tensor]:
    """PaddleOCR-VL: patches are merged behind the norm."""
    vision = vision_of(root)
    hidden = width_of(vision)
    width = hidden * vision.integer("spatial_merge_size") ** 2
    return _project(tower_of(root), width, width, text.integer("hidden_size"), norm=hidden)


def video_llama_3(root: Facts, text: Facts) -> list[Tensor]:
    """VideoLLaMA 3: two linear layers over each patch."""
    out = text.integer("hidden_size")
    return _project(tower_of(root), width_of(vision_of(root)), out, out)


def video_llava(root: Facts, text: Facts) -> list[Tensor]:
    """Video-LLaVA: one encoder for images and another of the same kind for videos."""
    tower, out = tower_of(root), text.integer("hidden_size")
    tower.tensors += tower_of(root).tensors
    width = width_of(vision_of(root)) * _times(root)
    bias = root.flag("multimodal_projector_bias", default=True)
    return _project(tower, width, out, out, bias=bias)


def vipllava(root: Facts, text: Facts) -> list[Tensor]:
    """ViP-LLaVA: several layers' outputs side by side, behind a norm."""
    out = text.integer("hidden_size")
    width = width_of(vision_of(root)) * _times(root)
    return _project(tower_of(root), width, out, out, norm=width)


TOWERS = {
    "internvl": internvl, "lighton_ocr": lighton_ocr, "llava_onevision": llava_next,
    "mistral_large4": mistral3, "paddleocr_vl": paddleocr_vl, "qianfan_ocr": internvl,
    "qwen4_exp": own, "shieldgemma2": gemma3, "video_llama_3": video_llama_3,
    "video_llava": video_llava, "vipllava": vipllava,
}  # fmt: skip
