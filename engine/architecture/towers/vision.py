"""Vision and audio towers with their projectors, by the root's ``model_type``.

Source:
    transformers 5.24.0, the modelling file of each type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.towers.parts import (
    PLAIN,
    Encoder,
    Tower,
    UnknownTowerError,
    encode,
    grid,
    patches,
    siglip,
    vision_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engine.architecture.spec import Tensor
    from engine.config.facts import Facts


def clip(vision: Facts) -> Tower:
    """A CLIP encoder with its class embedding."""
    tower = Tower("vision_tower.")
    hidden = vision.integer("hidden_size")
    tower.weight("class_embedding", hidden)
    tower.linear("patch_embedding", hidden, patches(vision), bias=False)
    tower.weight("position_embedding.weight", grid(vision) + 1, hidden)
    encode(tower, vision, PLAIN)
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


def _any_tower(root: Facts) -> Tower:
    vision = vision_of(root)
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
    width = vision_of(root).integer("hidden_size")
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
    tower = siglip(vision_of(root))
    width = vision_of(root).integer("hidden_size")
    tower.path = "multi_modal_projector."
    tower.weight("mm_input_projection_weight", width, text.integer("hidden_size"))
    tower.norm("mm_soft_emb_norm", width, bias=False)
    return tower.tensors


def paligemma(root: Facts, text: Facts) -> list[Tensor]:
    """PaliGemma: SigLIP and one linear layer."""
    tower = siglip(vision_of(root))
    tower.path = "multi_modal_projector."
    width = vision_of(root).integer("hidden_size")
    tower.linear("linear", text.integer("hidden_size"), width)
    return tower.tensors


def mistral3(root: Facts, text: Facts) -> list[Tensor]:
    """Mistral 3: Pixtral, a patch merger and two linear layers."""
    vision = vision_of(root)
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
    width = vision_of(root).integer("hidden_size") * root.integer("downsample_factor", 2) ** 2
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
    vision = vision_of(root)
    tower = Tower("vision_model.")
    hidden = vision.integer("hidden_size")
    tower.linear("patch_embedding.linear", hidden, patches(vision), bias=False)
    tower.weight("class_embedding", hidden)
    tower.weight("positional_embedding_vlm", grid(vision) + 1, hidden)
    encode(tower, vision, PLAIN)
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
    vision = vision_of(root)
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
    vision = vision_of(root)
    tower = Tower("visual.")
    hidden = vision.integer("embed_dim")
    frames = vision.integer("temporal_patch_size", 2)
    tower.linear("patch_embed.proj", hidden, patches(vision, frames=frames), bias=False)
    width = hidden * vision.integer("mlp_ratio", 4)
    PLAIN.add(tower, vision.integer("depth"), hidden, width, (hidden, hidden))
    merged = hidden * vision.integer("spatial_merge_size", 2) ** 2
    out = vision.integer("hidden_size", text.integer("hidden_size"))
    _qwen_merger(tower, "merger", hidden, merged, out, rms=False)
    return tower.tensors


def qwen3_vl(root: Facts, text: Facts) -> list[Tensor]:
    """Qwen3-VL and Qwen3.5: learned positions, plain MLP, and mergers for the deep stack."""
    vision = vision_of(root)
    tower = Tower("visual.")
    hidden = vision.integer("hidden_size")
    frames = vision.integer("temporal_patch_size", 2)
    tower.linear("patch_embed.proj", hidden, patches(vision, frames=frames))
    tower.weight("pos_embed.weight", vision.integer("num_position_embeddings"), hidden)
    encode(tower, vision, PLAIN, layers="depth")
    merged = hidden * vision.integer("spatial_merge_size", 2) ** 2
    out = vision.integer("out_hidden_size", text.integer("hidden_size"))
    _qwen_merger(tower, "merger", hidden, merged, out, rms=False)
    if not root.model_type.startswith("qwen3_5"):
        for index, _ in enumerate(vision.integers("deepstack_visual_indexes") or ()):
            _qwen_merger(tower, f"deepstack_merger_list.{index}", merged, merged, out, rms=False)
    return tower.tensors


def glm4v(root: Facts, _text: Facts) -> list[Tensor]:
    """GLM-4.1V: RMS norms, gated MLP, a convolution that merges patches."""
    vision = vision_of(root)
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
    vision = vision_of(root)
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


TOWERS = {
    "llava": llava, "llava_next": llava_next, "llava_next_video": llava_next,
    "gemma3": gemma3, "paligemma": paligemma, "mistral3": mistral3, "lfm2_vl": lfm2_vl,
    "llama4": llama4, "qwen2_vl": qwen2_vl, "qwen2_5_vl": qwen2_5_vl, "qwen3_vl": qwen3_vl,
    "qwen3_vl_moe": qwen3_vl, "qwen3_5": qwen3_vl, "qwen3_5_moe": qwen3_vl, "glm4v": glm4v,
    "glm4v_moe": glm4v, "exaone4_5": exaone4_5,
}  # fmt: skip
