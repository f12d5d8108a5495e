"""Swin and Donut's Swin: attention within windows, patches merged between stages.

Source:
    transformers 5.24.0, ``swin/modeling_swin.py``, ``donut/modeling_donut_swin.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.towers.parts import Encoder, Tower, grid, number, pair, patches
from engine.words import tr

if TYPE_CHECKING:
    from engine.config.facts import Facts


def swin(vision: Facts) -> Tower:
    """Swin, with its norm behind the stages."""
    tower = _stages(vision, extra=0)
    last = len(vision.integers("depths") or ()) - 1
    tower.norm("layernorm", vision.integer("embed_dim") << last)
    return tower


def donut_swin(vision: Facts) -> Tower:
    """Donut's: one position more, and no norm behind the stages."""
    return _stages(vision, extra=1)


def _stages(vision: Facts, *, extra: int) -> Tower:
    """Stages of which each halves the sides and doubles the width.

    Raises:
        ConfigError: the lists of depths and of heads are missing or of different lengths.
    """
    tower = Tower("vision_tower.")
    first = vision.integer("embed_dim")
    tower.linear("embeddings.patch_embeddings.projection", first, patches(vision))
    tower.norm("embeddings.norm", first)
    if vision.flag("use_absolute_embeddings"):
        tower.weight("embeddings.position_embeddings", grid(vision) + extra, first)
    depths, heads = vision.integers("depths", 1) or (), vision.integers("num_heads", 1) or ()
    if not 0 < len(depths) == len(heads) <= _MOST:
        wanted = tr("1 to {most} stages are needed, with as many entries in num_heads").format(
            most=_MOST
        )
        raise vision.bad("depths", depths, wanted)
    high, wide = pair(vision, "window_size")
    places, bias = (2 * high - 1) * (2 * wide - 1), vision.flag("qkv_bias", default=True)
    ratio = number(vision, "mlp_ratio", 4.0)
    for index, (depth, own) in enumerate(zip(depths, heads, strict=True)):
        tower.path = f"vision_tower.encoder.layers.{index}."
        width = first << index
        Encoder(qkv_bias=bias).add(tower, depth, width, int(ratio * width), (width, width))
        tower.weight("relative_position_bias_table", places, own, copies=depth)
        if index < len(depths) - 1:
            tower.linear("downsample.reduction", 2 * width, 4 * width, bias=False)
            tower.norm("downsample.norm", 4 * width)
    tower.path = "vision_tower."
    return tower


_MOST = 8
"""Stages at most: each doubles the width."""

VISION_ENCODERS = {"donut-swin": donut_swin, "swin": swin}
