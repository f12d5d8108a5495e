"""Gemma 4 and its kin: an encoder for images and a Conformer for sound, or a layer for each.

Source:
    transformers 5.24.0, ``gemma4/modeling_gemma4.py``,
    ``gemma4_unified/modeling_gemma4_unified.py`` and
    ``diffusion_gemma/modeling_diffusion_gemma.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.spec import ModuleClass
from engine.architecture.towers.encoders import encoder, tower_of
from engine.architecture.towers.parts import Tower, vision_of
from engine.architecture.towers.stacks import stack

if TYPE_CHECKING:
    from engine.architecture.spec import Tensor
    from engine.config.facts import Facts


def gemma4(root: Facts, text: Facts) -> list[Tensor]:
    """Gemma 4: the towers that the config has; without a vision config the model sees nothing."""
    tensors: list[Tensor] = []
    if root.has("vision_config"):
        vision = vision_of(root)
        tower = encoder(vision)
        _project(tower, vision, text)
        tensors += tower.tensors
    audio = root.sub("audio_config")
    return tensors + (_audio(audio, text) if audio else [])


def _project(tower: Tower, facts: Facts, text: Facts) -> None:
    width = facts.optional("output_proj_dims", 1) or facts.integer(
        _WIDTHS.get(facts.model_type, "hidden_size")
    )
    is_audio = tower.module is ModuleClass.AUDIO
    tower.path = "model.embed_audio." if is_audio else "model.embed_vision."
    tower.linear("embedding_projection", text.integer("hidden_size"), width, bias=False)


_WIDTHS = {"gemma4_unified_audio": "audio_embed_dim"}
"""Key of what is projected to the text's width, where the config has no ``output_proj_dims``."""


def unified(root: Facts, text: Facts) -> list[Tensor]:
    """Gemma 4 unified: no towers, one linear layer over the pixels or the samples."""
    tensors: list[Tensor] = []
    vision = root.sub("vision_config")
    if vision is not None:
        tower = Tower("model.embed_vision.")
        side = vision.integer("patch_size") * vision.integer("pooling_kernel_size")
        patch, width = 3 * side * side, vision.integer("mm_embed_dim")
        tower.norm("patch_ln1", patch)
        tower.linear("patch_dense", width, patch)
        tower.norm("patch_ln2", width)
        tower.weight("pos_embedding", vision.integer("mm_posemb_size"), 2, width)
        tower.norm("pos_norm", width)
        _project(tower, vision, text)
        tensors += tower.tensors
    audio = root.sub("audio_config")
    if audio is not None:
        heard = Tower("", ModuleClass.AUDIO)
        _project(heard, audio, text)
        tensors += heard.tensors
    return tensors


def diffusion(root: Facts, text: Facts) -> list[Tensor]:
    """DiffusionGemma: a tower, and what the denoising decoder has beside the encoder's weights.

    The decoder shares the encoder's weights, though not their biases; untied, it shares nothing.
    """
    tower = tower_of(root)
    _project(tower, vision_of(root), text)
    hidden, width = text.integer("hidden_size"), text.integer("intermediate_size")
    own = Tower("model.decoder.self_conditioning.", ModuleClass.OTHER)
    own.norm("pre_norm", hidden, bias=False)
    for name, rows, columns in (
        ("gate_proj", width, hidden),
        ("up_proj", width, hidden),
        ("down_proj", hidden, width),
    ):
        own.linear(name, rows, columns, bias=False)
    second = stack(text, "model.decoder.")
    if root.flag("tie_word_embeddings"):
        second = [tensor for tensor in second if tensor.name.endswith(".bias")]
    return [*tower.tensors, *own.tensors, *second]


def _audio(audio: Facts, text: Facts) -> list[Tensor]:
    tower = Tower("model.audio_tower.", ModuleClass.AUDIO)
    hidden, layers = audio.integer("hidden_size"), audio.integer("num_hidden_layers")
    first, second = (audio.integers("subsampling_conv_channels", 1) or (128, 32))[:2]
    tower.weight("subsample.layer0.conv", first, 1, 3, 3)
    tower.norm("subsample.layer0.norm", first, bias=False)
    tower.weight("subsample.layer1.conv", second, first, 3, 3)
    tower.norm("subsample.layer1.norm", second, bias=False)
    tower.linear("subsample.input_proj_linear", hidden, first // 4 * second, bias=False)
    path = "layers.*."
    for block in ("feed_forward1.", "feed_forward2."):
        tower.linear(path + block + "ffw_layer_1", 4 * hidden, hidden, bias=False, copies=layers)
        tower.linear(path + block + "ffw_layer_2", hidden, 4 * hidden, bias=False, copies=layers)
        tower.norm(path + block + "pre_layer_norm", hidden, bias=False, copies=layers)
        tower.norm(path + block + "post_layer_norm", hidden, bias=False, copies=layers)
    for name in ("q_proj", "k_proj", "v_proj", "post", "relative_k_proj"):
        tower.linear(f"{path}self_attn.{name}", hidden, hidden, bias=False, copies=layers)
    head = hidden // audio.integer("num_attention_heads")
    tower.weight(path + "self_attn.per_dim_scale", head, copies=layers)
    tower.linear(path + "lconv1d.linear_start", 2 * hidden, hidden, bias=False, copies=layers)
    tower.linear(path + "lconv1d.linear_end", hidden, hidden, bias=False, copies=layers)
    kernel = audio.integer("conv_kernel_size", 5)
    tower.weight(path + "lconv1d.depthwise_conv1d", hidden, 1, kernel, copies=layers)
    for name in (
        "lconv1d.pre_layer_norm",
        "lconv1d.conv_norm",
        "norm_pre",
        "norm_post",
        "norm_out",
    ):
        tower.norm(path + name, hidden, bias=False, copies=layers)
    out = audio.integer("output_proj_dims")
    tower.linear("output_proj", out, hidden)
    tower.path = "model.embed_audio."
    tower.linear("embedding_projection", text.integer("hidden_size"), out, bias=False)
    return tower.tensors


TOWERS = {"diffusion_gemma": diffusion, "gemma4": gemma4, "gemma4_unified": unified}
