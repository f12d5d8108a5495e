"""What makes sound of SeamlessM4T's text: a second model of units, and the voice.

Source:
    transformers 5.24.0, ``seamless_m4t/modeling_seamless_m4t.py``,
    ``seamless_m4t_v2/modeling_seamless_m4t_v2.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from engine.architecture.families.speech_encoders import (
    audio,
    convolution,
    feed_forward,
    full_attention,
)

if TYPE_CHECKING:
    from engine.architecture.spec import Tensor
    from engine.architecture.towers.parts import Tower
    from engine.config.facts import Facts

_WIDE = 7
"""Kernel of the voice's outer convolutions, and of those in the units' decoder."""


def speaks(name: str) -> bool:
    """Whether a class of SeamlessM4T makes sound."""
    return bool(name) and not name.endswith("ToText")


def units(facts: Facts) -> list[Tensor]:
    """The model from text to units, and the vocoder behind it."""
    tower = audio("t2u_model.")
    hidden, rows = facts.integer("hidden_size"), facts.integer("t2u_vocab_size")
    _layers(tower, facts, "encoder", crossed=False)
    tower.weight("decoder.embed_tokens.weight", rows, hidden)
    if not facts.flag("tie_word_embeddings", default=True):
        tower.linear("lm_head", rows, hidden, bias=False)
    if facts.model_type == "seamless_m4t_v2":
        _all_at_once(tower, facts)
    else:
        _layers(tower, facts, "decoder", crossed=True)
    facts.settle("t2u_encoder_attention_heads", "t2u_decoder_attention_heads")
    tower.path = "vocoder."
    _voice(tower, facts)
    return tower.tensors


def _layers(tower: Tower, facts: Facts, side: str, *, crossed: bool) -> None:
    hidden, n = facts.integer("hidden_size"), facts.integer(f"t2u_{side}_layers")
    sizes = hidden, facts.integer(f"t2u_{side}_ffn_dim")
    path = f"{side}.layers.*."
    names = ["self_attn_layer_norm", "ffn_layer_norm"]
    full_attention(tower, path + "self_attn", hidden, n)
    if crossed:
        full_attention(tower, path + "cross_attention", hidden, n)
        names.append("cross_attention_layer_norm")
    feed_forward(tower, path + "ffn", sizes, bias=True, n=n)
    for name in names:
        tower.norm(path + name, hidden, copies=n)
    tower.norm(f"{side}.layer_norm", hidden)


def _all_at_once(tower: Tower, facts: Facts) -> None:
    """The second version's decoder: characters, their durations, and convolutions for an MLP."""
    hidden, n = facts.integer("hidden_size"), facts.integer("t2u_decoder_layers")
    for name in ("pos_emb_alpha_char", "pos_emb_alpha"):
        tower.weight(f"decoder.{name}", 1)
    tower.weight("decoder.embed_char.weight", facts.integer("char_vocab_size"), hidden)
    given = facts.integer("t2u_variance_predictor_embed_dim")
    inner = facts.integer("t2u_variance_predictor_hidden_dim")
    kernel = facts.integer("t2u_variance_predictor_kernel_size")
    _durations(tower, "decoder.duration_predictor", (given, inner, kernel))
    path = "decoder.layers.*."
    full_attention(tower, path + "self_attn", hidden, n)
    for name in ("conv1", "conv2"):
        convolution(tower, path + name, (hidden, hidden, _WIDE), copies=n)
    for name in ("self_attn_layer_norm", "conv_layer_norm"):
        tower.norm(path + name, hidden, copies=n)
    tower.norm("decoder.layer_norm", hidden)


def _durations(tower: Tower, name: str, sizes: tuple[int, int, int]) -> None:
    """Two convolutions and one number a token."""
    given, inner, kernel = sizes
    convolution(tower, f"{name}.conv1", (inner, given, kernel))
    convolution(tower, f"{name}.conv2", (inner, inner, kernel))
    for norm in ("ln1", "ln2"):
        tower.norm(f"{name}.{norm}", inner)
    tower.linear(f"{name}.proj", 1, inner)


def _voice(tower: Tower, facts: Facts) -> None:
    """A HiFi-GAN over the embeddings of unit, speaker and language."""
    width = 0
    for name, rows, columns in (
        ("unit", "unit_hifi_gan_vocab_size", "unit_embed_dim"),
        ("speaker", "vocoder_num_spkrs", "spkr_embed_dim"),
        ("language", "vocoder_num_langs", "lang_embed_dim"),
    ):
        tower.weight(f"{name}_embedding.weight", facts.integer(rows), facts.integer(columns))
        width += facts.integer(columns)
    unit = facts.integer("unit_embed_dim")
    kernel = facts.integer("variance_predictor_kernel_size")
    _durations(tower, "dur_predictor", (unit, unit, kernel))
    channels = facts.integer("upsample_initial_channel")
    convolution(tower, "hifi_gan.conv_pre", (channels, width, _WIDE))
    facts.settle("upsample_rates", "vocoder_offset")
    kernels = facts.integers("resblock_kernel_sizes", low=1) or ()
    dilations = facts.items("resblock_dilation_sizes") or ()
    for index, size in enumerate(facts.integers("upsample_kernel_sizes", low=1) or ()):
        half = channels // 2
        tower.weight(f"hifi_gan.upsampler.{index}.weight", channels, half, size)
        tower.weight(f"hifi_gan.upsampler.{index}.bias", half)
        channels = half
        for block, dilated in zip(kernels, dilations, strict=False):
            times = 2 * len(cast("list[int]", dilated)) if isinstance(dilated, list) else 2
            name = f"hifi_gan.resblocks.{index}.{block}.convs"
            convolution(tower, name, (channels, channels, block), copies=times)
    convolution(tower, "hifi_gan.conv_post", (1, channels, _WIDE))
