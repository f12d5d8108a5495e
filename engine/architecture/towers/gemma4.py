"""Gemma 4: a vision encoder with grouped queries and a Conformer for sound.

Source:
    transformers 5.24.0, ``gemma4/modeling_gemma4.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.spec import ModuleClass
from engine.architecture.towers.parts import Encoder, Tower

if TYPE_CHECKING:
    from engine.architecture.spec import Tensor
    from engine.config.facts import Facts


def towers(root: Facts, text: Facts) -> list[Tensor]:
    """The vision tower and, where the model hears, the audio tower."""
    tensors = _vision(root.sub("vision_config") or root.empty("vision_config"), text)
    audio = root.sub("audio_config")
    return tensors + (_audio(audio, text) if audio else [])


def _vision(vision: Facts, text: Facts) -> list[Tensor]:
    tower = Tower("model.vision_tower.")
    hidden = vision.integer("hidden_size")
    head = vision.integer("head_dim", hidden // vision.integer("num_attention_heads"))
    q = vision.integer("num_attention_heads") * head
    kv = vision.integer("num_key_value_heads", vision.integer("num_attention_heads")) * head
    layers = vision.integer("num_hidden_layers")
    patch = 3 * vision.integer("patch_size") ** 2
    tower.linear("patch_embedder.input_proj", hidden, patch, bias=False)
    places = vision.integer("position_embedding_size")
    tower.weight("patch_embedder.position_embedding_table", 2, places, hidden)
    style = Encoder(
        gated=True, qkv_bias=False, o_bias=False, mlp_bias=False, norm_bias=False, norms=4
    )
    style.add(tower, layers, hidden, vision.integer("intermediate_size"), (q, kv))
    tower.norm("layers.*.q_norm", head, bias=False, copies=layers)
    tower.norm("layers.*.k_norm", head, bias=False, copies=layers)
    tower.path = "model.embed_vision."
    tower.linear("embedding_projection", text.integer("hidden_size"), hidden, bias=False)
    return tower.tensors


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


TOWERS = {"gemma4": towers}
