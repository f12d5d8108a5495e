"""Kosmos 2 and 2.5, and the encoder that the latter shares with Pix2Struct.

Source:
    transformers 5.24.0, ``kosmos2/modeling_kosmos2.py``, ``kosmos2_5/modeling_kosmos2_5.py``,
    ``pix2struct/modeling_pix2struct.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.towers.encoders import tower_of
from engine.architecture.towers.parts import Encoder, Tower, vision_of

if TYPE_CHECKING:
    from engine.architecture.spec import Tensor
    from engine.config.facts import Facts

_FLATTENED = Encoder(gated=True, qkv_bias=False, o_bias=False, mlp_bias=False, norm_bias=False)


def flattened(vision: Facts, places: int, head: int, width: int) -> Tower:
    """An encoder of flattened patches, each with a row and a column of ``places``."""
    tower = Tower("vision_model.")
    hidden = vision.integer("hidden_size")
    patch = vision.integer("patch_embed_hidden_size")
    tower.linear("embeddings.patch_projection", hidden, patch)
    for side in ("row", "column"):
        tower.weight(f"embeddings.{side}_embedder.weight", places, hidden)
    inner = vision.integer("num_attention_heads") * head
    _FLATTENED.add(tower, vision.integer("num_hidden_layers"), hidden, width, (inner, inner))
    tower.norm("layernorm", hidden, bias=False)
    return tower


def pix2struct(root: Facts, _text: Facts) -> list[Tensor]:
    """Pix2Struct: the encoder alone."""
    vision = vision_of(root)
    places, head = vision.integer("seq_len"), vision.integer("d_kv")
    return flattened(vision, places, head, vision.integer("d_ff")).tensors


def kosmos2(root: Facts, text: Facts) -> list[Tensor]:
    """Kosmos 2: CLIP, and learned queries that attend to its patches."""
    return _resampled(root, text, tower_of(root), vision_of(root).integer("hidden_size"))


def kosmos2_5(root: Facts, text: Facts) -> list[Tensor]:
    """Kosmos 2.5: Pix2Struct's encoder and the queries of Kosmos 2."""
    vision = vision_of(root)
    places, head = vision.integer("max_num_patches"), vision.integer("head_dim")
    tower = flattened(vision, places, head, vision.integer("intermediate_size"))
    return _resampled(root, text, tower, vision.integer("hidden_size"))


def _resampled(root: Facts, text: Facts, tower: Tower, width: int) -> list[Tensor]:
    out = text.integer("hidden_size")
    tower.path = "image_to_text_projection."
    tower.weight("latent_query", root.integer("latent_query_num"), out)
    tower.linear("dense", out, width)
    for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
        tower.linear(f"x_attn.{name}", out, out)
    return tower.tensors


TOWERS = {"kosmos-2": kosmos2, "kosmos-2.5": kosmos2_5, "pix2struct": pix2struct}
