"""Kimi K3: a MoonViT whose heads are wider than its layers, and a projector with a last norm.

Source:
    the headers of the published checkpoint; with the text model they add up to its total.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from engine.architecture.towers.parts import Tower

if TYPE_CHECKING:
    from engine.architecture.spec import Tensor
    from engine.config.facts import Facts


def kimi_k3(root: Facts, text: Facts) -> list[Tensor]:
    """The vision tower and what projects its merged patches."""
    vision = root.sub("vision_config") or root.empty("vision_config")
    hidden, layers = vision.integer("vt_hidden_size"), vision.integer("vt_num_hidden_layers")
    heads, width = vision.integer("qkv_hidden_size"), vision.integer("vt_intermediate_size")
    places = vision.integer("init_pos_emb_height") * vision.integer("init_pos_emb_width")
    pixels = 3 * vision.integer("patch_size") ** 2
    merged = hidden * prod(vision.integers("merge_kernel_size", 1) or (2, 2))
    # Positions in time are computed, and the heads share out qkv_hidden_size.
    vision.settle("init_pos_emb_time", "vt_num_attention_heads", "mm_hidden_size")
    vision.settle("text_hidden_size")
    bias, linear_bias = vision.flag("attn_bias"), vision.flag("linear_bias")
    tower = Tower("vision_tower.")
    tower.linear("patch_embed.proj", hidden, pixels, bias=vision.flag("patch_embed_proj_bias"))
    tower.weight("patch_embed.pos_emb.weight", places, hidden)
    path = "encoder.blocks.*."
    tower.linear(path + "wqkv", 3 * heads, hidden, bias=bias, copies=layers)
    tower.linear(path + "wo", hidden, heads, bias=bias, copies=layers)
    tower.linear(path + "mlp.fc0", width, hidden, bias=linear_bias, copies=layers)
    tower.linear(path + "mlp.fc1", hidden, width, bias=linear_bias, copies=layers)
    tower.norm(path + "norm0", hidden, bias=False, copies=layers)
    tower.norm(path + "norm1", hidden, bias=False, copies=layers)
    tower.norm("encoder.final_layernorm", hidden, bias=False)
    tower.path = "mm_projector."
    tower.linear("proj.0", merged, merged, bias=False)
    tower.linear("proj.2", text.integer("hidden_size"), merged, bias=False)
    tower.norm("post_norm", text.integer("hidden_size"), bias=False)
    return tower.tensors


TOWERS = {"kimi_k3": kimi_k3}
