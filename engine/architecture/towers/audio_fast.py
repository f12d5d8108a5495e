"""FastConformers: conformers over frames that convolutions make fewer before the layers.

Source:
    transformers 5.24.0, ``parakeet/modeling_parakeet.py``, ``lasr/modeling_lasr.py``,
    ``nemotron_asr_streaming/modeling_nemotron_asr_streaming.py``,
    ``granite_speech5/modeling_granite_speech5.py``.
"""

from __future__ import annotations

from math import log2
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.architecture.towers.parts import Tower
    from engine.config.facts import Facts

_LAYER = "layers.*."


def _halves(audio: Facts, tower: Tower, *, norm_bias: bool = True) -> None:
    """The two halves of the MLP, and the five norms of a layer."""
    hidden, layers = audio.integer("hidden_size"), audio.integer("num_hidden_layers")
    width, bias = audio.integer("intermediate_size"), audio.flag("attention_bias")
    for half in ("feed_forward1", "feed_forward2"):
        tower.linear(f"{_LAYER}{half}.linear1", width, hidden, bias=bias, copies=layers)
        tower.linear(f"{_LAYER}{half}.linear2", hidden, width, bias=bias, copies=layers)
    for name in ("feed_forward1", "self_att", "conv", "feed_forward2", "out"):
        tower.norm(f"{_LAYER}norm_{name}", hidden, bias=norm_bias, copies=layers)


def _between(audio: Facts, tower: Tower) -> None:
    """Attention and convolution of a layer, without positions."""
    hidden, layers = audio.integer("hidden_size"), audio.integer("num_hidden_layers")
    bias, loud = audio.flag("attention_bias"), audio.flag("convolution_bias")
    for name, rows, columns in (
        ("pointwise_conv1", 2 * hidden, hidden),
        ("depthwise_conv", hidden, audio.integer("conv_kernel_size")),
        ("pointwise_conv2", hidden, hidden),
    ):
        tower.linear(f"{_LAYER}conv.{name}", rows, columns, bias=loud, copies=layers)
    tower.norm(_LAYER + "conv.norm", hidden, copies=layers)
    heads, head, keys = _heads(audio)
    for name, count in (("q_proj", heads), ("k_proj", keys), ("v_proj", keys)):
        tower.linear(f"{_LAYER}self_attn.{name}", count * head, hidden, bias=bias, copies=layers)
    tower.linear(f"{_LAYER}self_attn.o_proj", hidden, heads * head, bias=bias, copies=layers)


def _heads(audio: Facts) -> tuple[int, int, int]:
    """Query heads, their width, and heads of keys and values."""
    heads = audio.integer("num_attention_heads")
    head = audio.integer("head_dim", audio.integer("hidden_size") // heads)
    return heads, head, audio.integer("num_key_value_heads", heads)


def _relative(audio: Facts, tower: Tower) -> None:
    """Transformer-XL's positions."""
    layers, path = audio.integer("num_hidden_layers"), _LAYER + "self_attn."
    heads, head, _ = _heads(audio)
    hidden = audio.integer("hidden_size")
    tower.linear(path + "relative_k_proj", heads * head, hidden, bias=False, copies=layers)
    tower.weight(path + "bias_u", heads, head, copies=layers)
    tower.weight(path + "bias_v", heads, head, copies=layers)


def _planes(audio: Facts, tower: Tower, bins: int, steps: int) -> None:
    """Convolutions over time and pitch, all but the first one for each channel."""
    channels = audio.integer("subsampling_conv_channels")
    area = audio.integer("subsampling_conv_kernel_size") ** 2
    tower.linear("subsampling.conv_in", channels, area)
    if steps > 1:
        tower.linear("subsampling.layers.*.depth", channels, area, copies=steps - 1)
        tower.linear("subsampling.layers.*.point", channels, channels, copies=steps - 1)
    tower.linear("subsampling.linear", audio.integer("hidden_size"), channels * bins)


def _steps(audio: Facts) -> int:
    return int(log2(audio.integer("subsampling_factor")))


def _parakeet(audio: Facts, tower: Tower) -> None:
    steps = _steps(audio)
    bins = audio.integer("num_mel_bins") // audio.integer("subsampling_conv_stride") ** steps
    _planes(audio, tower, bins, steps)
    _halves(audio, tower)
    _between(audio, tower)
    _relative(audio, tower)


def _streaming(audio: Facts, tower: Tower) -> None:
    """Parakeet for a stream: all of the margin lies before a frame, so more pitches are left."""
    bins, stride = audio.integer("num_mel_bins"), audio.integer("subsampling_conv_stride")
    for _ in range(_steps(audio)):
        bins = (bins + stride - 2) // stride + 1
    _planes(audio, tower, bins, _steps(audio))
    _halves(audio, tower)
    _between(audio, tower)
    _relative(audio, tower)


def _lasr(audio: Facts, tower: Tower) -> None:
    """Convolutions over time alone, rotary positions, norms without a bias."""
    hidden, kernel = audio.integer("hidden_size"), audio.integer("subsampling_conv_kernel_size")
    channels = audio.integer("subsampling_conv_channels")
    tower.linear("subsampler.dense_0", hidden, audio.integer("num_mel_bins"))
    tower.linear("subsampler.conv_0", hidden, hidden * kernel)
    tower.linear("subsampler.conv_1", channels, hidden * kernel)
    tower.linear("subsampler.dense_1", hidden, channels)
    _halves(audio, tower, norm_bias=False)
    _between(audio, tower)
    tower.norm("out_norm", hidden, bias=False)


def _granite5(audio: Facts, tower: Tower) -> None:
    """Stacked frames, a wider convolution, and a CTC head half way up."""
    hidden, layers = audio.integer("hidden_size"), audio.integer("num_hidden_layers")
    tower.linear("input_linear", hidden, _STACKED * audio.integer("num_mel_bins"))
    _halves(audio, tower)
    heads, head, _ = _heads(audio)
    for name in ("q_proj", "k_proj", "v_proj"):
        tower.linear(f"{_LAYER}self_attn.{name}", heads * head, hidden, bias=False, copies=layers)
    tower.linear(_LAYER + "self_attn.o_proj", hidden, heads * head, copies=layers)
    places = 2 * audio.integer("max_position_embeddings") + 1
    tower.weight(_LAYER + "self_attn.rel_pos_emb.weight", places, head, copies=layers)
    inner = hidden * audio.integer("conv_expansion_factor")
    tower.linear(_LAYER + "conv.pointwise_lin1", 2 * inner, hidden, copies=layers)
    kernel = audio.integer("conv_kernel_size")
    tower.linear(_LAYER + "conv.depthwise_conv", inner, kernel, bias=False, copies=layers)
    tower.norm(_LAYER + "conv.norm", inner, copies=layers)
    tower.linear(_LAYER + "conv.pointwise_lin2", hidden, inner, copies=layers)
    words = audio.integer("vocab_size")
    tower.linear("out", words, hidden)
    tower.linear("out_mid", hidden, words)


_STACKED = 4
"""Frames that Granite Speech 5 reads as one."""
ENCODERS = {
    "parakeet_encoder": _parakeet,
    "nemotron_asr_streaming_encoder": _streaming,
    "lasr_encoder": _lasr,
    "granite_speech5_encoder": _granite5,
}
