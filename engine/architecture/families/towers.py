"""Vision and audio towers with their projectors, by the root's ``model_type``.

Source:
    transformers 5.24.0, the modelling file of each type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from engine.architecture.families import gemma4
from engine.architecture.families.tower import Encoder, Tower, encode, grid, patches
from engine.architecture.spec import ModuleClass

if TYPE_CHECKING:
    from engine.architecture.spec import Tensor
    from engine.config.facts import Facts

TowerRule = Callable[["Facts", "Facts"], "list[Tensor]"]
"""(root, text) -> the tensors of towers and projectors."""

_PLAIN = Encoder()
_RMS = Encoder(norm_bias=False)


def _vision(root: Facts) -> Facts:
    """The vision config, with its class's defaults where the model states nothing.

    Raises:
        ConfigError: it is no object.
    """
    found = root.sub("vision_config")
    return found if found is not None else root.empty("vision_config")


def siglip(vision: Facts, path: str = "vision_tower.") -> Tower:
    """A SigLIP encoder; the pooling head only where ``vision_use_head`` says so."""
    tower = Tower(path)
    hidden = vision.integer("hidden_size")
    tower.linear("patch_embedding", hidden, patches(vision))
    positions = vision.count("num_patches") or grid(vision)
    tower.weight("position_embedding.weight", positions, hidden)
    encode(tower, vision, _PLAIN)
    tower.norm("post_layernorm", hidden)
    if vision.flag("vision_use_head"):
        width = vision.integer("intermediate_size")
        tower.weight("head.probe", 1, 1, hidden)
        tower.linear("head.attention.in_proj", 3 * hidden, hidden)
        tower.linear("head.attention.out_proj", hidden, hidden)
        tower.norm("head.layernorm", hidden)
        tower.linear("head.mlp.fc1", width, hidden)
        tower.linear("head.mlp.fc2", hidden, width)
    return tower


def clip(vision: Facts) -> Tower:
    """A CLIP encoder with its class embedding."""
    tower = Tower("vision_tower.")
    hidden = vision.integer("hidden_size")
    tower.weight("class_embedding", hidden)
    tower.linear("patch_embedding", hidden, patches(vision), bias=False)
    tower.weight("position_embedding.weight", grid(vision) + 1, hidden)
    encode(tower, vision, _PLAIN)
    tower.norm("pre_layrnorm", hidden)
    tower.norm("post_layernorm", hidden)
    return tower


def pixtral(vision: Facts) -> Tower:
    """Pixtral's encoder: RMS norms, gated MLP, no bias."""
    tower = Tower("vision_tower.")
    hidden = vision.integer("hidden_size")
    tower.linear("patch_conv", hidden, patches(vision), bias=False)
    tower.norm("ln_pre", hidden, bias=False)
    style = Encoder(gated=True, qkv_bias=False, o_bias=False, mlp_bias=False, norm_bias=False)
    encode(tower, vision, style)
    return tower


_BY_VISION_TYPE: Mapping[str, Callable[[Facts], Tower]] = {
    "siglip_vision_model": siglip,
    "siglip2_vision_model": siglip,
    "clip_vision_model": clip,
    "pixtral": pixtral,
}


class UnknownTowerError(Exception):
    """A tower without a rule: its parameters cannot be counted."""


def _any_tower(root: Facts) -> Tower:
    vision = _vision(root)
    rule = _BY_VISION_TYPE.get(vision.model_type)
    if rule is None:
        raise UnknownTowerError(vision.model_type)
    return rule(vision)


def _two_layers(tower: Tower, width: int, hidden: int, *, bias: bool) -> list[Tensor]:
    tower.path = "multi_modal_projector."
    tower.linear("linear_1", hidden, width, bias=bias)
    tower.linear("linear_2", hidden, hidden, bias=bias)
    return tower.tensors


def llava(root: Facts, text: Facts) -> list[Tensor]:
    """LLaVA: any tower and two linear layers."""
    tower = _any_tower(root)
    width = _vision(root).integer("hidden_size")
    several = isinstance(root.raw("vision_feature_layer"), list)
    times = len(root.items("vision_feature_layer") or (0,)) if several else 1
    bias = root.flag("multimodal_projector_bias", default=True)
    return _two_layers(tower, width * times, text.integer("hidden_size"), bias=bias)


def llava_next(root: Facts, text: Facts) -> list[Tensor]:
    """LLaVA with the learned end of an image row."""
    tensors = llava(root, text)
    newline = Tower("")
    newline.weight("image_newline", text.integer("hidden_size"))
    return tensors + newline.tensors


def gemma3(root: Facts, text: Facts) -> list[Tensor]:
    """Gemma 3: SigLIP, one matrix and one norm."""
    tower = siglip(_vision(root))
    width = _vision(root).integer("hidden_size")
    tower.path = "multi_modal_projector."
    tower.weight("mm_input_projection_weight", width, text.integer("hidden_size"))
    tower.norm("mm_soft_emb_norm", width, bias=False)
    return tower.tensors


def paligemma(root: Facts, text: Facts) -> list[Tensor]:
    """PaliGemma: SigLIP and one linear layer."""
    tower = siglip(_vision(root))
    tower.path = "multi_modal_projector."
    width = _vision(root).integer("hidden_size")
    tower.linear("linear", text.integer("hidden_size"), width)
    return tower.tensors


def mistral3(root: Facts, text: Facts) -> list[Tensor]:
    """Mistral 3: Pixtral, a patch merger and two linear layers."""
    vision = _vision(root)
    tower = _any_tower(root)
    width = vision.integer("hidden_size")
    merged = width * root.integer("spatial_merge_size", 2) ** 2
    tower.path = "multi_modal_projector."
    tower.norm("norm", width, bias=False)
    tower.linear("patch_merger.merging_layer", width, merged, bias=False)
    bias = root.flag("multimodal_projector_bias")
    return _two_layers(tower, width, text.integer("hidden_size"), bias=bias)


def lfm2_vl(root: Facts, text: Facts) -> list[Tensor]:
    """LFM2-VL: SigLIP 2 and two linear layers over unshuffled patches."""
    tower = _any_tower(root)
    width = _vision(root).integer("hidden_size") * root.integer("downsample_factor", 2) ** 2
    inner = root.integer("projector_hidden_size")
    bias = root.flag("projector_bias")
    tower.path = "multi_modal_projector."
    if root.flag("projector_use_layernorm"):
        tower.norm("layer_norm", width)
    tower.linear("linear_1", inner, width, bias=bias)
    tower.linear("linear_2", text.integer("hidden_size"), inner, bias=bias)
    return tower.tensors


def llama4(root: Facts, text: Facts) -> list[Tensor]:
    """Llama 4: a ViT whose patches are shuffled into fewer tokens."""
    vision = _vision(root)
    tower = Tower("vision_model.")
    hidden = vision.integer("hidden_size")
    tower.linear("patch_embedding.linear", hidden, patches(vision), bias=False)
    tower.weight("class_embedding", hidden)
    tower.weight("positional_embedding_vlm", grid(vision) + 1, hidden)
    encode(tower, vision, _PLAIN)
    tower.norm("layernorm_pre", hidden)
    tower.norm("layernorm_post", hidden)
    inner = vision.integer("projector_input_dim")
    outer = vision.integer("projector_output_dim")
    tower.linear("vision_adapter.mlp.fc1", inner, vision.integer("intermediate_size"), bias=False)
    tower.linear("vision_adapter.mlp.fc2", outer, inner, bias=False)
    tower.path = "multi_modal_projector."
    width = vision.integer("vision_output_dim")
    tower.linear("linear_1", text.integer("hidden_size"), width, bias=False)
    return tower.tensors


def _qwen_merger(tower: Tower, name: str, width: int, merged: int, out: int, *, rms: bool) -> None:
    tower.norm(f"{name}.norm", width, bias=not rms)
    tower.linear(f"{name}.linear_fc1", merged, merged)
    tower.linear(f"{name}.linear_fc2", out, merged)


def qwen2_5_vl(root: Facts, text: Facts) -> list[Tensor]:
    """Qwen2.5-VL: RMS norms, gated MLP with bias."""
    vision = _vision(root)
    tower = Tower("visual.")
    hidden = vision.integer("hidden_size")
    frames = vision.integer("temporal_patch_size", 2)
    tower.linear("patch_embed.proj", hidden, patches(vision, frames=frames), bias=False)
    encode(tower, vision, Encoder(gated=True, norm_bias=False), layers="depth")
    merged = hidden * vision.integer("spatial_merge_size", 2) ** 2
    out = vision.integer("out_hidden_size", text.integer("hidden_size"))
    _qwen_merger(tower, "merger", hidden, merged, out, rms=True)
    return tower.tensors


def qwen2_vl(root: Facts, text: Facts) -> list[Tensor]:
    """Qwen2-VL: layer norms, plain MLP of ``mlp_ratio`` times the width."""
    vision = _vision(root)
    tower = Tower("visual.")
    hidden = vision.integer("embed_dim")
    frames = vision.integer("temporal_patch_size", 2)
    tower.linear("patch_embed.proj", hidden, patches(vision, frames=frames), bias=False)
    width = hidden * vision.integer("mlp_ratio", 4)
    _PLAIN.add(tower, vision.integer("depth"), hidden, width, (hidden, hidden))
    merged = hidden * vision.integer("spatial_merge_size", 2) ** 2
    out = vision.integer("hidden_size", text.integer("hidden_size"))
    _qwen_merger(tower, "merger", hidden, merged, out, rms=False)
    return tower.tensors


def qwen3_vl(root: Facts, text: Facts) -> list[Tensor]:
    """Qwen3-VL and Qwen3.5: learned positions, plain MLP, and mergers for the deep stack."""
    vision = _vision(root)
    tower = Tower("visual.")
    hidden = vision.integer("hidden_size")
    frames = vision.integer("temporal_patch_size", 2)
    tower.linear("patch_embed.proj", hidden, patches(vision, frames=frames))
    tower.weight("pos_embed.weight", vision.integer("num_position_embeddings"), hidden)
    encode(tower, vision, _PLAIN, layers="depth")
    merged = hidden * vision.integer("spatial_merge_size", 2) ** 2
    out = vision.integer("out_hidden_size", text.integer("hidden_size"))
    _qwen_merger(tower, "merger", hidden, merged, out, rms=False)
    if not root.model_type.startswith("qwen3_5"):
        for index, _ in enumerate(vision.integers("deepstack_visual_indexes") or ()):
            _qwen_merger(tower, f"deepstack_merger_list.{index}", merged, merged, out, rms=False)
    return tower.tensors


def glm4v(root: Facts, _text: Facts) -> list[Tensor]:
    """GLM-4.1V: RMS norms, gated MLP, a convolution that merges patches."""
    vision = _vision(root)
    tower = Tower("visual.")
    hidden = vision.integer("hidden_size")
    out = vision.integer("out_hidden_size")
    frames = vision.integer("temporal_patch_size", 2)
    merge = vision.integer("spatial_merge_size", 2)
    tower.linear("patch_embed.proj", hidden, patches(vision, frames=frames))
    tower.weight("embeddings.position_embedding.weight", grid(vision), hidden)
    tower.norm("post_conv_layernorm", hidden, bias=False)
    tower.norm("post_layernorm", hidden, bias=False)
    bias = vision.flag("attention_bias")
    style = Encoder(gated=True, qkv_bias=bias, o_bias=False, mlp_bias=False, norm_bias=False)
    encode(tower, vision, style, layers="depth", mlp=out)
    tower.linear("downsample", out, hidden * merge * merge)
    inner = vision.integer("intermediate_size")
    tower.linear("merger.proj", out, out, bias=False)
    tower.norm("merger.post_projection_norm", out)
    tower.linear("merger.gate_proj", inner, out, bias=False)
    tower.linear("merger.up_proj", inner, out, bias=False)
    tower.linear("merger.down_proj", out, inner, bias=False)
    return tower.tensors


def exaone4_5(root: Facts, text: Facts) -> list[Tensor]:
    """EXAONE 4.5: as Qwen2.5-VL with grouped-query attention."""
    vision = _vision(root)
    tower = Tower("visual.")
    hidden = vision.integer("hidden_size")
    heads = vision.integer("num_heads")
    kv = hidden // heads * vision.integer("num_key_value_heads", heads)
    frames = vision.integer("temporal_patch_size", 2)
    tower.linear("patch_embed.proj", hidden, patches(vision, frames=frames), bias=False)
    width = vision.integer("intermediate_size")
    style = Encoder(gated=True, norm_bias=False)
    style.add(tower, vision.integer("depth"), hidden, width, (hidden, kv))
    merged = hidden * vision.integer("spatial_merge_size", 2) ** 2
    out = vision.integer("out_hidden_size", text.integer("hidden_size"))
    _qwen_merger(tower, "merger", hidden, merged, out, rms=True)
    return tower.tensors


def kimi_k25(root: Facts, text: Facts) -> list[Tensor]:
    """Kimi K2.5: MoonViT and a patch-merging projector."""
    vision = _vision(root)
    tower = Tower("vision_tower.")
    hidden = vision.integer("vt_hidden_size", vision.integer("hidden_size", 1152))
    width = vision.integer("vt_intermediate_size", vision.integer("intermediate_size", 4304))
    layers = vision.integer("vt_num_hidden_layers", vision.integer("num_hidden_layers", 27))
    tower.linear("patch_embed.proj", hidden, patches(vision))
    height = vision.integer("init_pos_emb_height", 64)
    across = vision.integer("init_pos_emb_width", 64)
    tower.weight("patch_embed.pos_emb.weight", height, across, hidden)
    _PLAIN.add(tower, layers, hidden, width, (hidden, hidden))
    tower.norm("final_layernorm", hidden)
    sides = vision.integers("merge_kernel_size", 1) or (2, 2)
    merged = hidden * sides[0] * sides[-1]
    tower.path = "mm_projector."
    tower.norm("pre_norm", hidden)
    tower.linear("proj.0", merged, merged)
    tower.linear("proj.2", text.integer("hidden_size"), merged)
    return tower.tensors


def minicpmv4_6(root: Facts, text: Facts) -> list[Tensor]:
    """MiniCPM-V 4.6: SigLIP with a merger inside and one behind."""
    vision = _vision(root)
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
    vision = _vision(root)
    tower = Tower("vision_tower.")
    hidden = vision.integer("hidden_size")
    compression = vision.sub("img_token_compression_config")
    source = compression or vision
    frames = source.integer("temporal_patch_size", 2)
    merge = source.integer("spatial_merge_size", 2)
    tower.linear("patch_embedding", hidden, patches(vision, frames=frames), bias=False)
    tower.norm("pre_layrnorm", hidden)
    encode(tower, vision, _PLAIN)
    inner, out = root.integer("projector_hidden_size"), text.integer("hidden_size")
    tower.path = "multi_modal_projector."
    tower.linear("linear_1", inner, hidden)
    tower.linear("linear_2", out, inner)
    tower.linear("merge_linear_1", inner, out * merge * merge)
    tower.linear("merge_linear_2", out, inner)
    return tower.tensors


def mllama(root: Facts, text: Facts) -> list[Tensor]:
    """Llama 3.2 Vision: tiles with gated positions, a local and a gated global encoder."""
    vision = _vision(root)
    tower = Tower("vision_model.")
    hidden, width = vision.integer("hidden_size"), vision.integer("intermediate_size")
    tiles = vision.integer("max_num_tiles", 4)
    ratios = len(vision.items("supported_aspect_ratios") or ()) + 1
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
    for count in (vision.integer("num_hidden_layers"), around):
        style.add(tower, count, hidden, width, (hidden, hidden))
    tower.weight("global_transformer.layers.*.gate_attn", 1, copies=around)
    tower.weight("global_transformer.layers.*.gate_ffn", 1, copies=around)
    tower.path = "multi_modal_projector."
    output = vision.integer("vision_output_dim", hidden)
    tower.path = ""
    tower.linear("multi_modal_projector", text.integer("hidden_size"), output)
    return tower.tensors


def voxtral(root: Facts, text: Facts) -> list[Tensor]:
    """Voxtral: a Whisper encoder and two linear layers over grouped frames."""
    audio = root.sub("audio_config") or root.empty("audio_config")
    tower = whisper(audio)
    hidden = text.integer("hidden_size")
    tower.path, tower.module = "multi_modal_projector.", ModuleClass.AUDIO
    tower.linear("linear_1", hidden, audio.integer("intermediate_size"), bias=False)
    tower.linear("linear_2", hidden, hidden, bias=False)
    return tower.tensors


def whisper(audio: Facts) -> Tower:
    """The encoder of Whisper."""
    tower = Tower("audio_tower.", ModuleClass.AUDIO)
    hidden = audio.integer("hidden_size")
    layers = audio.integer("num_hidden_layers", audio.count("encoder_layers") or None)
    width = audio.integer("encoder_ffn_dim", audio.count("intermediate_size") or None)
    tower.linear("conv1", hidden, 3 * audio.integer("num_mel_bins"))
    tower.linear("conv2", hidden, 3 * hidden)
    tower.weight("embed_positions.weight", audio.integer("max_source_positions"), hidden)
    Encoder(k_bias=False).add(tower, layers, hidden, width, (hidden, hidden))
    tower.norm("layer_norm", hidden)
    return tower


def step3p7(root: Facts, text: Facts) -> list[Tensor]:
    """Step 3.7: a ViT with layer scale and two strided convolutions."""
    vision = _vision(root)
    tower = Tower("vision_model.")
    hidden = vision.integer("hidden_size")
    tower.linear("conv1", hidden, patches(vision), bias=False)
    tower.weight("positional_embedding", grid(vision), hidden)
    tower.norm("ln_pre", hidden)
    encode(tower, vision, Encoder(scales=2))
    tower.linear("vit_downsampler1", 2 * hidden, 9 * hidden)
    tower.linear("vit_downsampler2", 4 * hidden, 9 * 2 * hidden)
    tower.path = ""
    bias = root.flag("projector_bias")
    tower.linear("vit_large_projector", text.integer("hidden_size"), 4 * hidden, bias=bias)
    return tower.tensors


TOWERS: Mapping[str, TowerRule] = {
    "gemma4": gemma4.towers, "llava": llava, "llava_next": llava_next,
    "llava_next_video": llava_next,
    "gemma3": gemma3, "paligemma": paligemma, "mistral3": mistral3, "lfm2_vl": lfm2_vl,
    "llama4": llama4, "qwen2_vl": qwen2_vl, "qwen2_5_vl": qwen2_5_vl, "qwen3_vl": qwen3_vl,
    "qwen3_vl_moe": qwen3_vl, "qwen3_5": qwen3_vl, "qwen3_5_moe": qwen3_vl, "glm4v": glm4v,
    "glm4v_moe": glm4v, "exaone4_5": exaone4_5, "kimi_k25": kimi_k25, "minicpmv4_6": minicpmv4_6,
    "minimax_m3_vl": minimax_m3, "mllama": mllama, "voxtral": voxtral, "step3p7": step3p7,
}  # fmt: skip
