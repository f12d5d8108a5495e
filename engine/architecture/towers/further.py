"""Towers that share little with the others: MoonViT, mergers, tiles.

Source:
    transformers 5.24.0, the modelling file of each type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.heads import first_class
from engine.architecture.towers.parts import (
    PLAIN,
    Encoder,
    Tower,
    encode,
    grid,
    number,
    pair,
    patches,
    vision_of,
)
from engine.architecture.towers.vits import siglip

if TYPE_CHECKING:
    from engine.architecture.spec import Tensor
    from engine.config.facts import Facts


def kimi_k25(root: Facts, text: Facts) -> list[Tensor]:
    """Kimi K2.5: MoonViT and a patch-merging projector, in the names of both releases."""
    vision = vision_of(root)
    tower, merged = moonvit(vision)
    hidden = _either(vision, "vt_hidden_size", "hidden_size")
    tower.path = "mm_projector."
    stated = vision.integer("mm_hidden_size", root.integer("projection_hidden_size", hidden))
    tower.norm("pre_norm", stated)
    tower.linear("proj.0", merged, merged)
    tower.linear("proj.2", text.integer("hidden_size"), merged)
    return tower.tensors


def moonvit(vision: Facts) -> tuple[Tower, int]:
    """MoonViT, and the width of its patches where those of a square are merged."""
    tower = Tower("vision_tower.")
    hidden = _either(vision, "vt_hidden_size", "hidden_size")
    width = _either(vision, "vt_intermediate_size", "intermediate_size")
    layers = _either(vision, "vt_num_hidden_layers", "num_hidden_layers")
    height, across = pair(vision, "patch_size")
    tower.linear("patch_embed.proj", hidden, 3 * height * across)
    rows = _either(vision, "init_pos_emb_height", "pos_emb_height")
    columns = _either(vision, "init_pos_emb_width", "pos_emb_width")
    tower.weight("patch_embed.pos_emb.weight", rows, columns, hidden)
    PLAIN.add(tower, layers, hidden, width, (hidden, hidden))
    tower.norm("final_layernorm", hidden)
    sides = vision.integers("merge_kernel_size", 1) or (2, 2)
    return tower, hidden * sides[0] * sides[-1]


def _either(facts: Facts, published: str, own: str) -> int:
    """The whole number under its name in published files, else under its class's own."""
    stated = facts.optional(published, 1)
    return facts.integer(own) if stated is None else stated


def minicpmv4_6(root: Facts, text: Facts) -> list[Tensor]:
    """MiniCPM-V 4.6: SigLIP with a merger inside and one behind."""
    vision = vision_of(root)
    tower = siglip(vision)
    hidden, width = vision.integer("hidden_size"), vision.integer("intermediate_size")
    sides = vision.integers("window_kernel_size", 1) or (2, 2)
    window = hidden * sides[0] * sides[-1]
    tower.path = "vision_tower.vit_merger."
    tower.norm("layer_norm1", hidden)
    for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
        tower.linear(f"self_attn.{name}", hidden, hidden)
    inner = width * sides[0] * sides[-1]
    tower.norm("pre_norm", window)
    tower.linear("linear_1", inner, window)
    tower.linear("linear_2", hidden, inner)
    tower.path = "merger.mlp."
    times = root.integer("merger_times", 1)
    merged = hidden * 4
    for index in range(min(times, 16)):
        out = text.integer("hidden_size") if index == times - 1 else hidden
        tower.norm(f"{index}.pre_norm", merged)
        tower.linear(f"{index}.linear_1", merged, merged)
        tower.linear(f"{index}.linear_2", out, merged)
    return tower.tensors


def minimax_m3(root: Facts, text: Facts) -> list[Tensor]:
    """MiniMax-M3: a ViT with rotary positions; patches are merged after projection."""
    vision = vision_of(root)
    tower = Tower("vision_tower.")
    hidden = vision.integer("hidden_size")
    compression = vision.sub("img_token_compression_config")
    source = compression or vision
    frames = source.integer("temporal_patch_size", 2)
    merge = source.integer("spatial_merge_size", 2)
    tower.linear("patch_embedding", hidden, patches(vision, frames=frames), bias=False)
    tower.norm("pre_layrnorm", hidden)
    encode(tower, vision, PLAIN)
    inner, out = root.integer("projector_hidden_size"), text.integer("hidden_size")
    root.settle("merged_hidden_size")  # its class computes it
    vision.settle("vision_segment_max_frames")
    tower.path = "multi_modal_projector."
    tower.linear("linear_1", inner, hidden)
    tower.linear("linear_2", out, inner)
    tower.linear("merge_linear_1", inner, out * merge * merge)
    tower.linear("merge_linear_2", out, inner)
    return tower.tensors


_RATIOS = 8
"""Aspect ratios of four tiles that Llama 3.2 Vision takes where its config lists none."""
_MLLAMA_OUTPUT = 7680


def mllama(root: Facts, text: Facts) -> list[Tensor]:
    """Llama 3.2 Vision: tiles with gated positions, a local and a gated global encoder.

    ``MllamaForCausalLM`` is the text model alone.
    """
    if first_class(root.stated) == "MllamaForCausalLM":
        return []
    vision = vision_of(root)
    tower = Tower("vision_model.")
    hidden, width = vision.integer("hidden_size"), vision.integer("intermediate_size")
    tiles = vision.integer("max_num_tiles", 4)
    ratios = len(vision.items("supported_aspect_ratios") or range(_RATIOS)) + 1
    tokens = grid(vision) + 1
    tower.linear("patch_embedding", hidden, patches(vision), bias=False)
    tower.weight("class_embedding", hidden)
    tower.weight("gated_positional_embedding.embedding", tokens, hidden)
    tower.weight(
        "gated_positional_embedding.tile_embedding.weight", ratios, tiles * tokens * hidden
    )
    tower.weight("gated_positional_embedding.gate", 1)
    for name in ("pre", "post"):
        tower.weight(f"{name}_tile_positional_embedding.embedding.weight", ratios, tiles * hidden)
        tower.weight(f"{name}_tile_positional_embedding.gate", 1)
        tower.norm(f"layernorm_{name}", hidden)
    style = Encoder(qkv_bias=False, o_bias=False)
    around = vision.integer("num_global_layers")
    heads = vision.integer("attention_heads")
    every = hidden // heads * heads
    for count in (vision.integer("num_hidden_layers"), around):
        style.add(tower, count, hidden, width, (every, every))
    tower.weight("global_transformer.layers.*.gate_attn", 1, copies=around)
    tower.weight("global_transformer.layers.*.gate_ffn", 1, copies=around)
    output = vision.integer("vision_output_dim", _MLLAMA_OUTPUT)
    tower.path = ""
    tower.linear("multi_modal_projector", text.integer("hidden_size"), output)
    return tower.tensors


def step3p7(root: Facts, text: Facts) -> list[Tensor]:
    """Step 3.7: a ViT with layer scale and two strided convolutions.

    The width of its MLP is ``mlp_ratio`` times the hidden size, whatever ``intermediate_size``
    says.
    """
    vision = vision_of(root)
    tower = Tower("vision_model.")
    hidden = _either(vision, "width", "hidden_size")
    layers = _either(vision, "layers", "num_hidden_layers")
    width = int(hidden * number(vision, "mlp_ratio", 8960 / 1536))
    vision.settle("intermediate_size")
    tower.linear("conv1", hidden, patches(vision), bias=False)
    tower.weight("positional_embedding", grid(vision), hidden)
    tower.norm("ln_pre", hidden)
    Encoder(scales=2).add(tower, layers, hidden, width, (hidden, hidden))
    tower.linear("vit_downsampler1", 2 * hidden, 9 * hidden)
    tower.linear("vit_downsampler2", 4 * hidden, 9 * 2 * hidden)
    tower.path = ""
    bias = root.flag("projector_bias")
    tower.linear("vit_large_projector", text.integer("hidden_size"), 4 * hidden, bias=bias)
    return tower.tensors


def _moonvit(vision: Facts) -> Tower:
    return moonvit(vision)[0]


TOWERS = {
    "kimi_k25": kimi_k25, "minicpm_ocr": minicpmv4_6, "minicpmv4_6": minicpmv4_6,
    "minicpmv4_7": minicpmv4_6, "minimax_m3_vl": minimax_m3, "mllama": mllama,
    "step3p7": step3p7,
}  # fmt: skip
VISION_ENCODERS = {"kimi_k25_vision": _moonvit}
