"""InternVL and what was built after it: a ViT with layer scale, patches unshuffled behind it.

Source:
    transformers 5.24.0, ``internvl/modeling_internvl.py``, ``qianfan_ocr/modeling_qianfan_ocr.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.towers.parts import (
    Encoder,
    Tower,
    encode,
    grid,
    number,
    patches,
    vision_of,
)

if TYPE_CHECKING:
    from engine.architecture.spec import Tensor
    from engine.config.facts import Facts


def vit(vision: Facts) -> Tower:
    """InternVL's encoder."""
    tower = Tower("vision_tower.")
    hidden = vision.integer("hidden_size")
    tower.weight("embeddings.cls_token", hidden)
    tower.linear("embeddings.patch_embeddings.projection", hidden, patches(vision))
    if vision.flag("use_mask_token"):
        tower.weight("embeddings.mask_token", hidden)
    if vision.flag("use_absolute_position_embeddings", default=True):
        tower.weight("embeddings.position_embeddings", grid(vision) + 1, hidden)
    style = Encoder(
        qkv_bias=vision.flag("attention_bias"),
        norm_bias=vision.word("norm_type", "layer_norm") != "rms_norm",
        scales=2,
    )
    encode(tower, vision, style)
    if vision.flag("use_qk_norm"):
        layers = vision.integer("num_hidden_layers")
        for name in ("q_norm", "k_norm"):
            tower.norm(f"layers.*.attention.{name}", hidden, bias=False, copies=layers)
    if not vision.flag("use_mean_pooling", default=True):
        tower.norm("layernorm", hidden)
    return tower


def times(ratio: float) -> int:
    """Patches that become one token where each side shrinks to ``ratio`` of itself."""
    return int(1 / ratio) ** 2


def internvl(root: Facts, text: Facts) -> list[Tensor]:
    """InternVL: a norm and two linear layers over unshuffled patches."""
    vision = vision_of(root)
    tower = vit(vision)
    out = text.integer("hidden_size")
    width = vision.integer("hidden_size") * times(number(root, "downsample_ratio", 0.5))
    tower.path = "multi_modal_projector."
    tower.norm("layer_norm", width)
    tower.linear("linear_1", out, width)
    tower.linear("linear_2", out, out)
    return tower.tensors


TOWERS = {"internvl": internvl, "qianfan_ocr": internvl}
