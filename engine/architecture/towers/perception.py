"""Perception LM: Meta's Perception Encoder as timm builds it, and two linear layers.

Source:
    transformers 5.24.0, ``perception_lm/modeling_perception_lm.py``; timm 1.0.31, ``eva.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.architecture.towers.parts import Encoder, Tower, number, pair, vision_of
from engine.architecture.towers.registry import UnknownTowerError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.architecture.spec import Tensor
    from engine.config.facts import Facts


@dataclass(frozen=True, slots=True)
class _Built:
    """What timm builds under one name where nothing else is asked for."""

    depth: int
    patch: int
    image: int
    ratio: float = 4.0
    token: bool = True
    """A class token."""
    is_bare: bool = False
    """Layer scale, no norm behind the layers and no pooling: made for language models."""


_WIDER = 8960 / 1536
_ARCHITECTURES: Mapping[str, _Built] = {
    "vit_pe_core_tiny_patch16_384": _Built(12, 16, 384),
    "vit_pe_core_small_patch16_384": _Built(12, 16, 384),
    "vit_pe_core_base_patch16_224": _Built(12, 16, 224),
    "vit_pe_core_large_patch14_336": _Built(24, 14, 336),
    "vit_pe_core_gigantic_patch14_448": _Built(50, 14, 448, _WIDER, token=False),
    "vit_pe_lang_large_patch14_448": _Built(23, 14, 448, is_bare=True),
    "vit_pe_lang_gigantic_patch14_448": _Built(47, 14, 448, _WIDER, token=False, is_bare=True),
}
_KNOWN = frozenset({
    "class_token", "depth", "embed_dim", "global_pool", "img_size", "init_values", "mlp_ratio",
    "num_heads", "patch_size", "ref_feat_shape", "use_post_transformer_norm",
})  # fmt: skip


def perception_lm(root: Facts, text: Facts) -> list[Tensor]:
    """The encoder, and two linear layers."""
    vision = vision_of(root)
    args = vision.sub("model_args") or vision.empty("model_args")
    hidden, out = args.integer("embed_dim"), text.integer("hidden_size")
    tower = _encoder(vision.word("architecture"), args, hidden)
    tower.path = "multi_modal_projector."
    tower.linear("linear_1", out, hidden)
    tower.linear("linear_2", out, out)
    return tower.tensors


def _encoder(name: str, args: Facts, hidden: int) -> Tower:
    """The tower that timm builds by ``name`` and ``args``.

    Raises:
        UnknownTowerError: another architecture, an argument that is not known, or a pooling head.
    """
    usual = _ARCHITECTURES.get(name)
    pools = args.word("global_pool", "" if usual and usual.is_bare else "map")
    if usual is None or pools or not args.stated.keys() <= _KNOWN:
        raise UnknownTowerError(name)
    args.settle("num_heads", "ref_feat_shape")
    tower = Tower("vision_tower.timm_model.")
    high, wide = pair(args, "patch_size") if args.has("patch_size") else (usual.patch, usual.patch)
    rows, columns = pair(args, "img_size") if args.has("img_size") else (usual.image, usual.image)
    tower.linear("patch_embed.proj", hidden, 3 * high * wide, bias=False)
    token = args.flag("class_token", default=usual.token)
    tower.weight("pos_embed", (rows // high) * (columns // wide) + token, hidden)
    if token:
        tower.weight("cls_token", hidden)
    tower.norm("norm_pre", hidden)
    scaled = args.raw("init_values") is not None or usual.is_bare
    width = int(hidden * number(args, "mlp_ratio", usual.ratio))
    style = Encoder(scales=2 if scaled else 0)
    style.add(tower, args.integer("depth", usual.depth), hidden, width, (hidden, hidden))
    if args.flag("use_post_transformer_norm", default=not usual.is_bare):
        tower.norm("norm", hidden)
    return tower


TOWERS = {"perception_lm": perception_lm}
