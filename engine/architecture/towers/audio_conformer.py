"""Conformers: audio encoders whose layers hold a convolution between two halves of an MLP.

Source:
    transformers 5.24.0, the modelling file of each type.
"""

from __future__ import annotations

from math import log2
from typing import TYPE_CHECKING, cast

from engine.architecture.towers.audio import audio_of, listen
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.architecture.spec import Tensor
    from engine.architecture.towers.parts import Tower
    from engine.config.facts import Facts

_LAYER = "layers.*."


def _steps(audio: Facts, key: str) -> int:
    """How often the frames are halved to make them fewer by the factor ``key``."""
    return int(log2(audio.integer(key)))


def _halved(bins: int, times: int) -> int:
    """Pitches that are left when a convolution with a margin of one halves them ``times``."""
    for _ in range(times):
        bins = (bins - 1) // 2 + 1
    return bins


def _granite(audio: Facts, tower: Tower) -> None:
    """Granite Speech: relative positions in each layer, and a CTC head half way up."""
    hidden, layers = audio.integer("hidden_size"), audio.integer("num_hidden_layers")
    head = audio.integer("dim_head", hidden // audio.integer("num_attention_heads"))
    heads = audio.integer("num_attention_heads") * head
    wide = hidden * audio.integer("feedforward_mult")
    inner = hidden * audio.integer("conv_expansion_factor")
    tower.linear("input_linear", hidden, audio.integer("num_mel_bins"))
    for half in ("ff1", "ff2"):
        tower.norm(f"{_LAYER}{half}.pre_norm", hidden, copies=layers)
        tower.linear(f"{_LAYER}{half}.up_proj", wide, hidden, copies=layers)
        tower.linear(f"{_LAYER}{half}.down_proj", hidden, wide, copies=layers)
    for name in ("attn.pre_norm", "conv.norm", "post_norm"):
        tower.norm(_LAYER + name, hidden, copies=layers)
    tower.linear(_LAYER + "attn.to_q", heads, hidden, bias=False, copies=layers)
    tower.linear(_LAYER + "attn.to_kv", 2 * heads, hidden, bias=False, copies=layers)
    tower.linear(_LAYER + "attn.to_out", hidden, heads, copies=layers)
    places = 2 * audio.integer("max_pos_emb") + 1
    tower.weight(_LAYER + "attn.rel_pos_emb.weight", places, head, copies=layers)
    tower.linear(_LAYER + "conv.up_conv", 2 * inner, hidden, copies=layers)
    kernel = audio.integer("conv_kernel_size")
    tower.weight(_LAYER + "conv.depth_conv.conv.weight", inner, 1, kernel, copies=layers)
    tower.norm(_LAYER + "conv.batch_norm", inner, copies=layers)
    tower.linear(_LAYER + "conv.down_conv", hidden, inner, copies=layers)
    out = audio.integer("output_dim")
    tower.linear("out", out, hidden)
    tower.linear("out_mid", hidden, out)


def _granite_root(root: Facts, text: Facts) -> list[Tensor]:
    """Granite Speech: a conformer, and a Q-Former that reads it window by window."""
    tower = listen(audio_of(root, "encoder_config"), "encoder.")
    former = audio_of(root, "projector_config")
    hidden = former.integer("hidden_size")
    tower.path = "projector."
    queries = root.integer("window_size") // root.integer("downsample_rate")
    tower.weight("query", 1, queries, hidden)
    tower.linear("linear", text.integer("hidden_size"), hidden)
    tower.path = "projector.qformer."
    _qformer(former, tower)
    return tower.tensors


def _qformer(former: Facts, tower: Tower) -> None:
    """BLIP-2's Q-Former: every so many layers look at the encoder."""
    hidden, layers = former.integer("hidden_size"), former.integer("num_hidden_layers")
    width, beside = former.integer("intermediate_size"), former.integer("encoder_hidden_size")
    looking = len(range(0, layers, former.integer("cross_attention_frequency")))
    tower.norm("layernorm", hidden)
    for name, source, copies in (
        ("attention", hidden, layers),
        ("crossattention", beside, looking),
    ):
        path = f"encoder.layer.*.{name}."
        tower.linear(path + "attention.query", hidden, hidden, copies=copies)
        tower.linear(path + "attention.key", hidden, source, copies=copies)
        tower.linear(path + "attention.value", hidden, source, copies=copies)
        tower.linear(path + "output.dense", hidden, hidden, copies=copies)
        tower.norm(path + "output.LayerNorm", hidden, copies=copies)
    for end in ("_query", "")[: 2 if former.flag("use_qformer_text_input") else 1]:
        tower.linear(f"encoder.layer.*.intermediate{end}.dense", width, hidden, copies=layers)
        tower.linear(f"encoder.layer.*.output{end}.dense", hidden, width, copies=layers)
        tower.norm(f"encoder.layer.*.output{end}.LayerNorm", hidden, copies=layers)


def _phi4(audio: Facts, tower: Tower) -> None:
    """Phi-4 multimodal: gated halves and convolutions, one table of relative positions."""
    hidden, layers = audio.integer("hidden_size"), audio.integer("num_blocks")
    channels, steps = audio.integer("nemo_conv_channels"), _steps(audio, "time_reduction")
    tower.linear("embed.conv.0", channels, 9)
    if steps > 1:
        tower.linear("embed.conv.*.depth", channels, 9, copies=steps - 1)
        tower.linear("embed.conv.*.point", channels, channels, copies=steps - 1)
    bins = audio.integer("nemo_final_size", _halved(audio.integer("input_size"), steps))
    tower.linear("embed.out", hidden, channels * bins)
    heads = audio.integer("num_attention_heads")
    places = audio.integer("bias_max_distance") * (1 if audio.flag("bias_symmetric") else 2)
    tower.weight("relative_attention_bias_layer.bias_values.weight", places, heads)
    width = audio.integer("intermediate_size")
    for half in ("feed_forward_in", "feed_forward_out"):
        tower.norm(f"{_LAYER}{half}.layer_norm", hidden, copies=layers)
        tower.linear(f"{_LAYER}{half}.gate_up_proj", 2 * width, hidden, copies=layers)
        tower.linear(f"{_LAYER}{half}.down_proj", hidden, width, copies=layers)
    wide = heads * audio.integer("head_dim", hidden // heads)
    for name in ("q_proj", "k_proj", "v_proj"):
        tower.linear(f"{_LAYER}self_attn.{name}", wide, hidden, copies=layers)
    tower.linear(f"{_LAYER}self_attn.o_proj", hidden, wide, copies=layers)
    for name in ("conv.layer_norm", "layer_norm_att", "layer_norm"):
        tower.norm(_LAYER + name, hidden, copies=layers)
    out = audio.integer("ext_pw_out_channel")
    tower.weight(_LAYER + "conv.glu.b1", 1, out, 1, copies=layers)
    tower.weight(_LAYER + "conv.glu.b2", 1, out, 1, copies=layers)
    tower.linear(_LAYER + "conv.glu.ext_pw_conv_1d", 2 * out, hidden, copies=layers)
    deep = hidden * audio.integer("depthwise_multiplier")
    split = audio.integer("depthwise_separable_out_channel")
    path = _LAYER + "conv.dw_sep_conv_1d."
    tower.linear(path + "dw_conv", deep, audio.integer("kernel_size"), copies=layers)
    tower.linear(path + "pw_conv", split, deep, copies=layers)
    tower.linear(_LAYER + "conv.ext_pw_conv_1d", out, hidden, copies=layers)


def phi4_ear(root: Facts, text: Facts) -> list[Tensor]:
    """Phi-4 multimodal's encoder and its two projectors, with and without images beside it."""
    audio = audio_of(root)
    path = "model.embed_tokens_extend.audio_embed."
    tower = listen(audio, path + "encoder.")
    out = text.integer("hidden_size")
    joined = audio.integer("hidden_size") * audio.integer("downsample_rate")
    tower.path = path
    for use in ("speech", "vision_speech"):
        tower.linear(f"up_proj_for_{use}", out, joined)
        tower.linear(f"down_proj_for_{use}", out, out)
    return tower.tensors


def _gemma3n(audio: Facts, tower: Tower) -> None:
    """Gemma 3n: RMS norms everywhere, a scale for each dimension of a head."""
    hidden, layers = audio.integer("hidden_size"), audio.integer("conf_num_hidden_layers")
    channels = audio.integers("sscp_conv_channel_size", 1) or ()
    before, bins = 1, audio.integer("input_feat_size")
    for index, out in enumerate(channels[:2]):
        high, wide = _sides(audio, "sscp_conv_kernel_size", index)
        bins = (bins + 2 - wide) // _sides(audio, "sscp_conv_stride_size", index)[1] + 1
        tower.weight(f"subsample_conv_projection.conv_{index}.conv", out, before, high, wide)
        tower.norm(f"subsample_conv_projection.conv_{index}.norm", out, bias=False)
        before = out
    tower.linear("subsample_conv_projection.input_proj_linear", hidden, before * bins, bias=False)
    path = "conformer.*."
    for half in ("ffw_layer_start.", "ffw_layer_end."):
        tower.norm(path + half + "pre_layer_norm", hidden, bias=False, copies=layers)
        tower.linear(path + half + "ffw_layer_1", 4 * hidden, hidden, bias=False, copies=layers)
        tower.linear(path + half + "ffw_layer_2", hidden, 4 * hidden, bias=False, copies=layers)
        tower.norm(path + half + "post_layer_norm", hidden, bias=False, copies=layers)
    heads = audio.integer("conf_num_attention_heads")
    wide = heads * (hidden // heads)
    for name in ("q_proj", "k_proj", "v_proj", "relative_position_embedding.pos_proj"):
        tower.linear(f"{path}attention.attn.{name}", wide, hidden, bias=False, copies=layers)
    tower.weight(path + "attention.attn.per_dim_scale", hidden // heads, copies=layers)
    tower.linear(path + "attention.post", hidden, hidden, bias=False, copies=layers)
    for name in ("attention.pre_attn_norm", "attention.post_norm", "norm"):
        tower.norm(path + name, hidden, bias=False, copies=layers)
    path += "lconv1d."
    tower.linear(path + "linear_start", 2 * hidden, hidden, bias=False, copies=layers)
    tower.linear(path + "linear_end", hidden, hidden, bias=False, copies=layers)
    kernel = audio.integer("conf_conv_kernel_size")
    tower.weight(path + "depthwise_conv1d", hidden, 1, kernel, copies=layers)
    tower.norm(path + "pre_layer_norm", hidden, bias=False, copies=layers)
    tower.norm(path + "conv_norm", hidden, bias=False, copies=layers)


def _sides(audio: Facts, key: str, index: int) -> tuple[int, int]:
    """Height and width that ``key`` has for the convolution ``index``."""
    entries = audio.items(key) or ()
    entry = entries[index] if index < len(entries) else None
    if isinstance(entry, list | tuple):
        sides = cast("Sequence[object]", entry)
        if len(sides) == 2:
            return audio.checked(key, sides[0], 1), audio.checked(key, sides[1], 1)
    raise audio.bad(key, entries, tr("a height and a width for each convolution are needed"))


ENCODERS = {
    "granite_speech_encoder": _granite,
    "granite_speech_plus_encoder": _granite,
    "phi4_multimodal_audio": _phi4,
    "gemma3n_audio": _gemma3n,
}
TOWERS = {"granite_speech": _granite_root, "granite_speech_plus": _granite_root}
