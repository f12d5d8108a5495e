"""LFM3-VL: convolutions over the grid of patches between layers of attention.

Source:
    transformers 5.24.0, ``lfm3_vl/modeling_lfm3_vl.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.towers.parts import Tower, pair, patches, vision_of
from engine.words import tr

if TYPE_CHECKING:
    from engine.architecture.spec import Tensor
    from engine.config.facts import Facts

_CONV = "conv"


def lfm3_vl(root: Facts, text: Facts) -> list[Tensor]:
    """The encoder, and two linear layers over merged patches."""
    vision = vision_of(root)
    tower = Tower("vision_tower.")
    hidden, layers = vision.integer("hidden_size"), vision.integer("num_hidden_layers")
    frames, _ = pair(vision, "temporal_patch_size")
    tower.linear("patch_embed", hidden, patches(vision, frames=frames), bias=False)
    tower.norm("embedding_norm", hidden, bias=False)
    for name in ("operator_norm", "ffn_norm"):
        tower.norm(f"layers.*.{name}", hidden, bias=False, copies=layers)
    width = vision.integer("intermediate_size")
    for name in ("w1", "w3"):
        tower.linear(f"layers.*.feed_forward.{name}", width, hidden, bias=False, copies=layers)
    tower.linear("layers.*.feed_forward.w2", hidden, width, bias=False, copies=layers)
    convolving = _kinds(vision, layers).count(_CONV)
    _convolution(tower, vision, hidden, convolving)
    _attention(tower, vision, hidden, layers - convolving)
    inner, out = root.integer("projector_hidden_size"), text.integer("hidden_size")
    bias = root.flag("projector_bias", default=True)
    tower.path = "multi_modal_projector."
    tower.norm("layer_norm", hidden)
    merged = hidden * vision.integer("spatial_merge_size") ** 2
    tower.linear("linear_1", inner, merged, bias=bias)
    tower.linear("linear_2", out, inner, bias=bias)
    return tower.tensors


def _kinds(vision: Facts, layers: int) -> tuple[str, ...]:
    stated = vision.words("layer_types")
    if stated is None:
        return tuple(
            _CONV if index < 2 or index % 2 else "full_attention" for index in range(layers)
        )
    if len(stated) != layers:
        raise vision.bad(
            "layer_types",
            stated,
            tr("one entry for each of {layers} layers is needed").format(layers=layers),
        )
    return stated


def _convolution(tower: Tower, vision: Facts, hidden: int, layers: int) -> None:
    if not layers:
        return
    path, side = "layers.*.conv.", vision.integer("conv_kernel_size")
    tower.linear(path + "in_proj", 3 * hidden, hidden, bias=False, copies=layers)
    tower.weight(path + "spatial_conv.weight", hidden, 1, side, side, copies=layers)
    tower.linear(path + "out_proj", hidden, hidden, bias=False, copies=layers)


def _attention(tower: Tower, vision: Facts, hidden: int, layers: int) -> None:
    if not layers:
        return
    heads = vision.integer("num_attention_heads")
    head, path = hidden // heads, "layers.*.self_attn."
    q, kv = heads * head, vision.integer("num_key_value_heads") * head
    for name, rows in (("q_proj", q), ("k_proj", kv), ("v_proj", kv)):
        tower.linear(path + name, rows, hidden, bias=False, copies=layers)
    tower.linear(path + "out_proj", hidden, q, bias=False, copies=layers)
    for name in ("q_norm", "k_norm"):
        tower.norm(path + name, head, bias=False, copies=layers)


TOWERS = {"lfm3_vl": lfm3_vl}
