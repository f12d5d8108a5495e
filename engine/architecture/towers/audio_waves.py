"""wav2vec 2.0 and its descendants: what each differs in, over the same convolutions.

Source:
    transformers 5.24.0, the modelling file of each type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.families.speech_encoders import adapted, wave_layers, waves
from engine.config.facts import Facts

if TYPE_CHECKING:
    from engine.architecture.towers.parts import Tower

_LAYER = "encoder.layers.*."
_POSITIONS = "encoder.pos_conv_embed."
_GATE = 8
"""Outputs of the linear layer that gates WavLM's relative positions."""
_BUCKETS = 320
_DEEP = 5
"""Convolutions, one behind the other, that tell data2vec positions."""


def _with(audio: Facts, key: str, value: object) -> Facts:
    return Facts({**audio.stated, key: value}, audio.model_type, audio.defaults, audio.path)


def _drop(tower: Tower, *names: str) -> None:
    whole = tuple(tower.path + name for name in names)
    tower.tensors = [t for t in tower.tensors if not t.name.startswith(whole)]


def _layers(audio: Facts, tower: Tower) -> None:
    wave_layers(tower, audio, "num_hidden_layers", "intermediate_size")


def _unispeech(audio: Facts, tower: Tower) -> None:
    waves(tower, audio)
    _layers(audio, tower)


def _wav2vec2(audio: Facts, tower: Tower) -> None:
    _unispeech(audio, tower)
    adapted(tower, audio)


def _unispeech_sat(audio: Facts, tower: Tower) -> None:
    """Has what stands for masked frames whether any are masked or not."""
    _unispeech(_with(audio, "mask_time_prob", 1.0), tower)


def _hubert(audio: Facts, tower: Tower) -> None:
    _unispeech(audio, tower)
    if not audio.flag("feat_proj_layer_norm", default=True):
        _drop(tower, "feature_projection.layer_norm")
    if audio.flag("conv_pos_batch_norm"):
        _drop(tower, _POSITIONS + "conv.original0")
        tower.norm(_POSITIONS + "batch_norm", audio.integer("hidden_size"))


def _wavlm(audio: Facts, tower: Tower) -> None:
    """Relative positions, gated in every layer, from one table in the first."""
    waves(tower, audio)
    _layers(_with(audio, "adapter_attn_dim", None), tower)
    heads, layers = audio.integer("num_attention_heads"), audio.integer("num_hidden_layers")
    head, path = audio.integer("hidden_size") // heads, _LAYER + "attention."
    tower.weight(path + "gru_rel_pos_const", 1, heads, 1, 1, copies=layers)
    tower.linear(path + "gru_rel_pos_linear", _GATE, head, copies=layers)
    buckets = audio.integer("num_buckets", _BUCKETS)
    tower.weight("encoder.layers.0.attention.rel_attn_embed.weight", buckets, heads)
    adapted(tower, audio)


def _data2vec(audio: Facts, tower: Tower) -> None:
    """Norms in every convolution, and several convolutions for positions."""
    _wav2vec2(_with(audio, "feat_extract_norm", "layer"), tower)
    _drop(tower, _POSITIONS)
    hidden, kernel = audio.integer("hidden_size"), audio.integer("conv_pos_kernel_size")
    reach = hidden // audio.integer("num_conv_pos_embedding_groups")
    count = audio.integer("num_conv_pos_embeddings", _DEEP)
    tower.linear(_POSITIONS + "layers.*.conv", hidden, reach * kernel, copies=count)


def _conformer(audio: Facts, tower: Tower) -> None:
    """wav2vec 2.0's convolutions under a conformer."""
    waves(tower, audio)
    _conformer_layers(audio, tower)
    adapted(tower, audio)


def _bert(audio: Facts, tower: Tower) -> None:
    """A conformer over stacked filter banks; its adapter has layers of its own."""
    hidden, bands = audio.integer("hidden_size"), audio.integer("feature_projection_input_dim")
    masks = (audio.raw("mask_time_prob"), audio.raw("mask_feature_prob"))
    if masks[0] is None or any(isinstance(p, int | float) and p > 0 for p in masks):
        tower.weight("masked_spec_embed", hidden)
    tower.norm("feature_projection.layer_norm", bands)
    tower.linear("feature_projection.projection", hidden, bands)
    _conformer_layers(audio, tower)
    width, out = audio.integer("intermediate_size"), audio.integer("output_hidden_size", hidden)
    if audio.flag("use_intermediate_ffn_before_adapter"):
        _feed(tower, "intermediate_ffn.", hidden, width)
    if not audio.flag("add_adapter"):
        return
    if out != hidden:
        tower.linear("adapter.proj", out, hidden)
        tower.norm("adapter.proj_layer_norm", out)
    layers, kernel = audio.integer("num_adapter_layers"), audio.integer("adapter_kernel_size")
    path = "adapter.layers.*."
    for name in ("residual_conv", "self_attn_conv"):
        tower.linear(path + name, 2 * out, out * kernel, copies=layers)
    for name in ("residual_layer_norm", "self_attn_layer_norm", "ffn_layer_norm"):
        tower.norm(path + name, out, copies=layers)
    _attend(tower, path + "self_attn.", out, layers)
    _feed(tower, path + "ffn.", out, width, layers)


def _feed(tower: Tower, path: str, hidden: int, width: int, layers: int = 1) -> None:
    tower.linear(path + "intermediate_dense", width, hidden, copies=layers)
    tower.linear(path + "output_dense", hidden, width, copies=layers)


def _attend(tower: Tower, path: str, hidden: int, layers: int) -> None:
    for name in ("linear_q", "linear_k", "linear_v", "linear_out"):
        tower.linear(path + name, hidden, hidden, copies=layers)


def _conformer_layers(audio: Facts, tower: Tower) -> None:
    hidden, layers = audio.integer("hidden_size"), audio.integer("num_hidden_layers")
    for half in ("ffn1.", "ffn2."):
        _feed(tower, _LAYER + half, hidden, audio.integer("intermediate_size"), layers)
    for name in (
        "ffn1_layer_norm", "self_attn_layer_norm", "conv_module.layer_norm", "conv_module.norm",
        "ffn2_layer_norm", "final_layer_norm",
    ):  # fmt: skip
        tower.norm(_LAYER + name, hidden, copies=layers)
    kernel, path = audio.integer("conv_depthwise_kernel_size"), _LAYER + "conv_module."
    tower.linear(path + "pointwise_conv1", 2 * hidden, hidden, bias=False, copies=layers)
    tower.linear(path + "depthwise_conv", hidden, kernel, bias=False, copies=layers)
    tower.linear(path + "pointwise_conv2", hidden, hidden, bias=False, copies=layers)
    path = _LAYER + "self_attn."
    _attend(tower, path, hidden, layers)
    heads = audio.integer("num_attention_heads")
    kind = audio.word("position_embeddings_type")
    if kind == "relative":
        tower.linear(path + "linear_pos", hidden, hidden, bias=False, copies=layers)
        for name in ("pos_bias_u", "pos_bias_v"):
            tower.weight(path + name, heads, hidden // heads, copies=layers)
    if kind == "relative_key" and audio.has("left_max_position_embeddings"):
        before = audio.integer("left_max_position_embeddings", low=0)
        rows = before + audio.integer("right_max_position_embeddings", low=0) + 1
        tower.weight(path + "distance_embedding.weight", rows, hidden // heads, copies=layers)


ENCODERS = {
    "wav2vec2": _wav2vec2,
    "hubert": _hubert,
    "unispeech": _unispeech,
    "unispeech-sat": _unispeech_sat,
    "wavlm": _wavlm,
    "data2vec-audio": _data2vec,
    "wav2vec2-conformer": _conformer,
    "wav2vec2-bert": _bert,
}
