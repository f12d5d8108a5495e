"""Encoders in stages, each coarser and wider than the one before: DaViT, Swin 2, ConvNeXt.

Source:
    transformers 5.24.0, ``florence2/modeling_florence2.py``, ``swinv2/modeling_swinv2.py``,
    ``convnext/modeling_convnext.py`` and ``convnextv2/modeling_convnextv2.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.towers.encoders import encoder
from engine.architecture.towers.parts import Encoder, Tower, grid, number, patches, vision_of
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.architecture.spec import Tensor
    from engine.config.facts import Facts


def _stages(vision: Facts, key: str, count: int, low: int = 1) -> tuple[int, ...]:
    found = vision.integers(key, low)
    if found is None or len(found) < count:
        raise vision.bad(
            key, found, tr("an entry for each of the {count} stages is needed").format(count=count)
        )
    return found


def davit(vision: Facts) -> Tower:
    """DaViT: blocks of attention in windows and among channels, with convolutions before both."""
    tower = Tower("vision_tower.")
    widths = _stages(vision, "embed_dim", 1)
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


_INNER = 512
"""Width of the MLP that makes a bias of a distance."""


def swinv2(vision: Facts) -> Tower:
    """Swin 2: norms behind each half, and a bias by distance that an MLP makes."""
    tower = Tower("vision_tower.")
    first, depths = vision.integer("embed_dim"), vision.integers("depths") or ()
    heads = _stages(vision, "num_heads", len(depths))
    tower.linear("embeddings.patch_embeddings.projection", first, patches(vision))
    tower.norm("embeddings.norm", first)
    if vision.flag("use_absolute_embeddings"):
        tower.weight("embeddings.position_embeddings", grid(vision) + 1, first)
    style = Encoder(qkv_bias=vision.flag("qkv_bias"), k_bias=False)
    ratio, last = number(vision, "mlp_ratio", 4.0), len(depths) - 1
    for stage, depth in enumerate(depths[:_MOST]):
        tower.path, width = f"vision_tower.stages.{stage}.", first << stage
        style.add(tower, depth, width, int(width * ratio), (width, width))
        tower.weight("layers.*.logit_scale", heads[stage], 1, 1, copies=depth)
        tower.linear("layers.*.position_mlp.0", _INNER, 2, copies=depth)
        tower.linear("layers.*.position_mlp.2", heads[stage], _INNER, bias=False, copies=depth)
        if stage < last:
            tower.linear("downsample.reduction", 2 * width, 4 * width, bias=False)
            tower.norm("downsample.norm", 2 * width)
    tower.path = "vision_tower."
    tower.norm("layernorm", first << min(max(last, 0), _MOST))
    return tower


_MOST = 16
"""Stages that are built at most; no encoder has more than five."""


def convnext(vision: Facts) -> Tower:
    """ConvNeXt: a convolution for each channel, a norm and an MLP; the second has no scale."""
    tower = Tower("vision_tower.")
    stages = vision.integer("num_stages")
    depths = _stages(vision, "depths", stages, 0)[:stages]
    widths = _stages(vision, "hidden_sizes", stages)
    tower.linear("embeddings.patch_embeddings", widths[0], patches(vision))
    tower.norm("embeddings.layernorm", widths[0])
    is_second, before = vision.model_type == "convnextv2", widths[0]
    scale = vision.raw("layer_scale_init_value")
    scaled = scale is None or (isinstance(scale, int | float) and scale > 0)
    for stage, (depth, width) in enumerate(zip(depths, widths, strict=False)):
        tower.path = f"vision_tower.encoder.stages.{stage}."
        if stage:
            tower.norm("downsampling_layer.0", before)
            tower.linear("downsampling_layer.1", width, 4 * before)
        tower.linear("layers.*.dwconv", width, 49, copies=depth)
        tower.norm("layers.*.layernorm", width, copies=depth)
        tower.linear("layers.*.pwconv1", 4 * width, width, copies=depth)
        tower.linear("layers.*.pwconv2", width, 4 * width, copies=depth)
        if is_second:
            tower.norm("layers.*.grn", 4 * width, copies=depth)
        elif scaled:
            tower.weight("layers.*.layer_scale_parameter", width, copies=depth)
        before = width
    tower.path = "vision_tower."
    tower.norm("layernorm", widths[-1])
    return tower


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
VISION_ENCODERS = {
    "convnext": convnext, "convnextv2": convnext, "florence_vision": davit, "swinv2": swinv2,
}  # fmt: skip
