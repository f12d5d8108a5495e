"""Encoders in stages, each coarser and wider than the one before: Florence 2's DaViT.

Source:
    transformers 5.24.0, ``florence2/modeling_florence2.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.towers.encoders import encoder
from engine.architecture.towers.parts import Encoder, Tower, number, vision_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.architecture.spec import Tensor
    from engine.config.facts import Facts


def _stages(vision: Facts, key: str, count: int, low: int = 1) -> tuple[int, ...]:
    found = vision.integers(key, low)
    if found is None or len(found) < count:
        raise vision.bad(key, found, f"an entry for each of the {count} stages is needed")
    return found


def davit(vision: Facts) -> Tower:
    """DaViT: blocks of attention in windows and among channels, with convolutions before both."""
    tower = Tower("vision_tower.")
    widths = vision.integers("embed_dim", 1) or ()
    stages = len(widths)
    depths = _stages(vision, "depths", stages, 0)
    kernels = _stages(vision, "patch_size", stages)
    before_norm = _flags(vision.items("patch_prenorm") or (), stages)
    vision.settle("num_heads", "num_groups", "patch_stride", "patch_padding")
    ratio, style = number(vision, "mlp_ratio", 4.0), Encoder(qkv_bias=vision.flag("qkv_bias"))
    before = vision.integer("in_channels", 3)
    for stage, width in enumerate(widths):
        tower.path = f"vision_tower.convs.{stage}."
        tower.linear("conv", width, before * kernels[stage] ** 2)
        tower.norm("norm", before if before_norm[stage] else width)
        tower.path = f"vision_tower.blocks.{stage}."
        count, mlp = 2 * depths[stage], int(width * ratio)
        style.add(tower, count, width, mlp, (width, width))
        for name in ("conv1", "conv2"):
            tower.linear(f"layers.*.{name}", width, 9, copies=count)
        before = width
    return tower


def _flags(stated: Sequence[object], stages: int) -> list[bool]:
    """Whether each stage's norm stands in front of its convolution; the first's does not."""
    if len(stated) >= stages:
        return [bool(entry) for entry in stated]
    return [stage > 0 for stage in range(stages)]


def florence2(root: Facts, _text: Facts) -> list[Tensor]:
    """Florence 2: DaViT, one linear layer, and positions by row and by column."""
    vision = vision_of(root)
    tower = encoder(vision)
    widths = vision.integers("embed_dim", 1) or (1,)
    last, out = widths[-1], vision.integer("projection_dim")
    places = vision.integer("max_position_embeddings")
    tower.path = "multi_modal_projector."
    tower.linear("image_projection", out, last, bias=False)
    tower.norm("image_proj_norm", out)
    tower.weight("image_position_embed.row_embeddings.weight", places, last // 2)
    tower.weight("image_position_embed.column_embeddings.weight", places, last - last // 2)
    return tower.tensors


TOWERS = {"florence2": florence2}
VISION_ENCODERS = {"florence_vision": davit}
