"""Vision and audio towers with their projectors, by the root's ``model_type``.

Source:
    transformers 5.24.0, the modelling file of each type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.towers import flat
from engine.architecture.towers.encoders import encoder, tower_of
from engine.architecture.towers.merging import hunyuan_tower
from engine.architecture.towers.parts import (
    PLAIN,
    Tower,
    grid,
    patches,
    vision_of,
    width_of,
)
from engine.config.defaults import class_defaults
from engine.config.facts import Facts

if TYPE_CHECKING:
    from engine.architecture.spec import Tensor


def _two_layers(tower: Tower, width: int, hidden: int, *, bias: bool) -> list[Tensor]:
    tower.path = "multi_modal_projector."
    tower.linear("linear_1", hidden, width, bias=bias)
    tower.linear("linear_2", hidden, hidden, bias=bias)
    return tower.tensors


def _levels(root: Facts) -> int:
    """Layers of the tower whose features the projector takes side by side."""
    several = isinstance(root.raw("vision_feature_layer"), list)
    return len(root.items("vision_feature_layer") or (0,)) if several else 1


def llava(root: Facts, text: Facts) -> list[Tensor]:
    """LLaVA: any tower and two linear layers."""
    if root.stated.get("mm_vision_tower"):
        return flat.llava(root, text)
    tower = tower_of(root)
    width = width_of(vision_of(root)) * _levels(root)
    bias = root.flag("multimodal_projector_bias", default=True)
    return _two_layers(tower, width, text.integer("hidden_size"), bias=bias)


def llava_next(root: Facts, text: Facts) -> list[Tensor]:
    """LLaVA with the learned end of an image row."""
    tensors = llava(root, text)
    newline = Tower("")
    newline.weight("image_newline", text.integer("hidden_size"))
    return tensors + newline.tensors


def gemma3(root: Facts, text: Facts) -> list[Tensor]:
    """Gemma 3: SigLIP, one matrix and one norm."""
    tower = tower_of(root)
    width = width_of(vision_of(root))
    tower.path = "multi_modal_projector."
    tower.weight("mm_input_projection_weight", width, text.integer("hidden_size"))
    tower.norm("mm_soft_emb_norm", width, bias=False)
    return tower.tensors


def paligemma(root: Facts, text: Facts) -> list[Tensor]:
    """PaliGemma: any tower and one linear layer; its width is the root's ``projection_dim``."""
    del text
    tower = tower_of(root)
    tower.path = "multi_modal_projector."
    tower.linear("linear", root.integer("projection_dim"), width_of(vision_of(root)))
    return tower.tensors


def mistral3(root: Facts, text: Facts) -> list[Tensor]:
    """Mistral 3: Pixtral, a patch merger and two linear layers."""
    vision = vision_of(root)
    tower = tower_of(root)
    width = width_of(vision)
    merged = width * root.integer("spatial_merge_size", 2) ** 2
    tower.path = "multi_modal_projector."
    tower.norm("norm", width, bias=False)
    tower.linear("patch_merger.merging_layer", width, merged, bias=False)
    bias = root.flag("multimodal_projector_bias")
    return _two_layers(tower, width * _levels(root), text.integer("hidden_size"), bias=bias)


def lfm2_vl(root: Facts, text: Facts) -> list[Tensor]:
    """LFM2-VL: SigLIP 2 and two linear layers over unshuffled patches."""
    tower = tower_of(root)
    width = width_of(vision_of(root)) * root.integer("downsample_factor", 2) ** 2
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
    layers, width = vision.integer("num_hidden_layers"), vision.integer("intermediate_size")
    heads = vision.integer("num_attention_heads")
    every = hidden // heads * heads
    PLAIN.add(tower, layers, hidden, width, (every, every))
    tower.norm("layernorm_pre", hidden)
    tower.norm("layernorm_post", hidden)
    inner = vision.integer("projector_input_dim")
    outer = vision.integer("projector_output_dim")
    tower.linear("vision_adapter.mlp.fc1", inner, vision.integer("intermediate_size"), bias=False)
    tower.linear("vision_adapter.mlp.fc2", outer, outer, bias=False)
    tower.path = "multi_modal_projector."
    width = vision.integer("vision_output_dim")
    tower.linear("linear_1", text.integer("hidden_size"), width, bias=False)
    return tower.tensors


def aya_vision(root: Facts, text: Facts) -> list[Tensor]:
    """Aya Vision: unshuffled patches, a norm and a gated pair of linear layers."""
    tower = tower_of(root)
    width, hidden = _unshuffled(root, "downsample_factor"), text.integer("hidden_size")
    inner = root.integer("alignment_intermediate_size", hidden)
    tower.path = "multi_modal_projector."
    tower.norm("layernorm", width)
    tower.linear("linear_1", inner, width)
    tower.linear("linear_2", hidden, inner // 2)
    return tower.tensors


def cohere2_vision(root: Facts, text: Facts) -> list[Tensor]:
    """Command A Vision: as Aya Vision, without the norm."""
    tower = tower_of(root)
    inner = root.integer("alignment_intermediate_size")
    tower.path = "multi_modal_projector."
    tower.linear("linear_1", inner, _unshuffled(root, "downsample_factor"))
    tower.linear("linear_2", text.integer("hidden_size"), inner // 2)
    return tower.tensors


def _unshuffled(root: Facts, key: str) -> int:
    """Width of ``key`` by ``key`` patches side by side."""
    return width_of(vision_of(root)) * root.integer(key, 2) ** 2


def idefics3(root: Facts, text: Facts) -> list[Tensor]:
    """Idefics 3 and SmolVLM: one linear layer over unshuffled patches."""
    vision = vision_of(root)
    tower = encoder(vision)
    width = vision.integer("hidden_size") * root.integer("scale_factor", 2) ** 2
    tower.path = "connector."
    tower.linear("modality_projection.proj", text.integer("hidden_size"), width, bias=False)
    return tower.tensors


def deepseek_vl(root: Facts, text: Facts) -> list[Tensor]:
    """DeepSeek-VL: any tower and two linear layers."""
    width = width_of(vision_of(root))
    return _two_layers(tower_of(root), width, text.integer("hidden_size"), bias=True)


def cosmos3_edge(root: Facts, text: Facts) -> list[Tensor]:
    """Cosmos 3 Edge: SigLIP 2 without a head, and a merger of the patches behind it."""
    vision = vision_of(root)
    tower = encoder(vision)
    hidden, inner = vision.integer("hidden_size"), root.integer("projector_hidden_size")
    tower.path = "projector."
    tower.norm("norm", hidden)
    tower.linear("linear_fc1", inner, hidden * vision.integer("spatial_merge_size", 2) ** 2)
    tower.linear("linear_fc2", text.integer("hidden_size"), inner)
    return tower.tensors


def _named(vision: Facts, kind: str) -> Facts:
    """``vision`` read as a ``kind``, whatever type it states."""
    if vision.model_type == kind:
        return vision
    return Facts(vision.stated, kind, class_defaults(kind), vision.path)


def cosmos3_omni(root: Facts, _text: Facts) -> list[Tensor]:
    """Cosmos 3 Omni: Qwen3-VL's encoder; older files state another type for it."""
    return encoder(_named(vision_of(root), "qwen3_vl_vision")).tensors


def hyperclovax(root: Facts, text: Facts) -> list[Tensor]:
    """HyperCLOVA X Vision: an encoder that merges patches, and one linear layer."""
    vision = vision_of(root)
    if vision.model_type == "qwen2_5_vl":
        vision = _named(vision, "qwen2_5_vl_vision")
    tower = encoder(vision)
    tower.path = ""
    tower.linear("projector", text.integer("hidden_size"), vision.integer("out_hidden_size"))
    return tower.tensors


def fuyu(root: Facts, text: Facts) -> list[Tensor]:
    """Fuyu: no encoder, one linear layer over the pixels of a patch."""
    tower = Tower("")
    tower.linear("vision_embed_tokens", text.integer("hidden_size"), patches(root))
    return tower.tensors


def ernie4_5_vl(root: Facts, text: Facts) -> list[Tensor]:
    """ERNIE 4.5 VL: an encoder, and a resampler that merges patches in space and in time."""
    vision = vision_of(root)
    tower = encoder(vision)
    space = vision.integer("hidden_size") * vision.integer("spatial_merge_size", 2) ** 2
    frames = vision.integer("temporal_merge_size", 2)
    tower.path = "resampler_model."
    for name, width in (("spatial_linear", space), ("temporal_linear", space * frames)):
        tower.linear(f"{name}.fc1", space, width)
        tower.linear(f"{name}.fc2", space, space)
        tower.norm(f"{name}.ln", space)
    tower.linear("mlp", text.integer("hidden_size"), space)
    tower.norm("after_norm", text.integer("hidden_size"), bias=False)
    return tower.tensors


def hunyuan_vl(root: Facts, text: Facts) -> list[Tensor]:
    """HunyuanOCR: its encoder's merger ends in the text's width, whatever the config states."""
    return hunyuan_tower(vision_of(root), text.integer("hidden_size")).tensors


def granite_docling(root: Facts, _text: Facts) -> list[Tensor]:
    """Granite Docling: an encoder that merges patches, and a router between its two ways."""
    vision = vision_of(root)
    tower = encoder(vision)
    routed = root.optional("density_router_hidden_size", 1)
    if routed:
        hidden = vision.integer("hidden_size")
        tower.path = "density_router."
        tower.linear("att", 1, hidden)
        tower.norm("norm", hidden)
        tower.linear("fc1", routed, hidden)
        tower.linear("fc2", 1, routed)
    return tower.tensors


def own(root: Facts, _text: Facts) -> list[Tensor]:
    """Models whose vision encoder merges patches itself and projects them to the text's width."""
    return tower_of(root).tensors


TOWERS = {
    "aya_vision": aya_vision, "cohere2_vision": cohere2_vision, "cohere_compass": own,
    "cosmos3_edge": cosmos3_edge, "cosmos3_omni": cosmos3_omni, "deepseek_vl": deepseek_vl,
    "ernie4_5_vl_moe": ernie4_5_vl, "exaone4_5": own, "fuyu": fuyu, "gemma3": gemma3,
    "glm46v": own, "glm4v": own, "glm4v_moe": own, "glm5_next": own, "glm_ocr": own,
    "glmga": own, "granite_docling": granite_docling, "hunyuan_vl": hunyuan_vl, "hy_v4_vl": own,
    "hyperclovax_vision_v2": hyperclovax, "idefics3": idefics3, "lfm2_vl": lfm2_vl,
    "llama4": llama4, "llava": llava, "llava_next": llava_next, "llava_next_video": llava_next,
    "mistral3": mistral3, "paligemma": paligemma, "qwen2_5_vl": own, "qwen2_vl": own,
    "qwen3_5": own, "qwen3_5_moe": own, "qwen3_vl": own, "qwen3_vl_moe": own,
    "smolvlm": idefics3,
}  # fmt: skip
