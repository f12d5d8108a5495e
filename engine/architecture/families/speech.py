"""Encoder-decoders that write down what they hear: a decoder of text over an encoder of speech.

Source:
    transformers 5.24.0, the modelling file of each type.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.architecture.families import attention
from engine.architecture.families.base import (
    DENSE,
    FULL,
    Family,
    Mixed,
    Names,
    norm,
    state_doubt,
)
from engine.architecture.families.seq2seq import (
    DECODER,
    ENCODER,
    encoded,
    named,
    own_tables,
    seq2seq,
    stack,
)
from engine.architecture.families.seq2seq_bart import CROSS, NAMES, NORMS, PLAIN, positions, sides
from engine.architecture.families.speech_encoders import (
    audio,
    convolution,
    seamless,
    wave_layers,
    waves,
)
from engine.architecture.families.speech_units import speaks, units
from engine.architecture.heads import whole_class
from engine.architecture.spec import Direction, Doubt, ModuleClass, Subject, Tensor
from engine.architecture.towers.audio import listen
from engine.architecture.towers.parts import number
from engine.words import tr

if TYPE_CHECKING:
    from engine.architecture.families.base import OuterRule
    from engine.config.facts import Facts

_AB = "attention_bias"


def heard(encoder: Family) -> OuterRule:
    """All of ``encoder``, as the audio part."""

    def tensors(facts: Facts, _family: Family) -> list[Tensor]:
        return [replace(t, module=ModuleClass.AUDIO) for t in encoded(facts, encoder)]

    return tensors


def _without_key_bias(facts: Facts, family: Family, kind: str) -> Mixed:
    mixed = attention.gqa(facts, family, kind)
    return replace(
        mixed, tensors=[t for t in mixed.tensors if not t.name.endswith("k_proj.bias")]
    )  # fmt: skip


def _whisper() -> Family:
    decoder, encoder = sides(replace(PLAIN, attention=_without_key_bias), closed=True)
    places = positions("encoder", "max_source_positions")

    def sound(facts: Facts, family: Family) -> list[Tensor]:
        tower, hidden = audio(""), facts.integer("hidden_size")
        convolution(tower, "conv1", (hidden, facts.integer("num_mel_bins"), 3))
        convolution(tower, "conv2", (hidden, hidden, 3))
        # For timestamps and for another class's head.
        facts.settle("median_filter_width", "classifier_proj_size")
        return places(facts, family) + tower.tensors

    names = replace(decoder.names, embedding="model.decoder.embed_tokens")
    return seq2seq(
        replace(decoder, names=names, positions=positions("model.decoder", "max_target_positions")),
        None,
        named(CROSS, _without_key_bias, source="max_source_positions"),
        beside=heard(replace(encoder, positions=sound)),
    )


def _speech_to_text() -> Family:
    decoder, encoder = sides(learned=False, closed=True)

    def sound(facts: Facts, _family: Family) -> list[Tensor]:
        tower, hidden = audio("conv."), facts.integer("hidden_size")
        middle, layers = facts.integer("conv_channels"), facts.integer("num_conv_layers")
        kernels = facts.integers("conv_kernel_sizes", low=1) or (5, 5)
        if len(kernels) != layers:
            raise facts.bad(
                "conv_kernel_sizes",
                kernels,
                tr("{layers} entries are needed").format(layers=layers),
            )
        before = facts.integer("input_feat_per_channel") * facts.integer("input_channels", 1)
        for index, kernel in enumerate(kernels):
            # Each is halved by a gate.
            width = middle if index < layers - 1 else 2 * hidden
            convolution(tower, f"conv_layers.{index}", (width, before, kernel))
            before = width // 2
        facts.settle("max_source_positions", "max_target_positions")
        return tower.tensors

    return seq2seq(
        decoder, None, named(CROSS), beside=heard(replace(encoder, positions=sound))
    )  # fmt: skip


def _kv_heads(side: str) -> Family:
    """One side of Moonshine.

    The class sets the decoder's heads to the encoder's before it builds the decoder (transformers
    5.24.0, ``moonshine/modeling_moonshine.py :: MoonshineAttention``).
    """

    def heads(facts: Facts, _kind: str) -> int:
        facts.settle("decoder_num_attention_heads", "decoder_num_key_value_heads")
        return facts.integer("encoder_num_attention_heads")

    def kv_heads(facts: Facts, kind: str) -> int:
        return facts.integer("encoder_num_key_value_heads", heads(facts, kind))

    def widths(facts: Facts, kind: str) -> tuple[int, int]:
        width = facts.optional("head_dim") or facts.integer("hidden_size") // heads(facts, kind)
        return width, width

    def kinds(facts: Facts) -> tuple[tuple[str, str], ...]:
        return ((FULL, DENSE),) * facts.integer(f"{side}_num_hidden_layers")

    return Family(
        heads=heads, kv_heads=kv_heads, head_dim=widths, kinds=kinds, q_bias=_AB, mlp_bias=True,
        names=Names(
            up="fc1", gate="fc1", down="fc2", embedding="model.decoder.embed_tokens",
            final_norm="model.decoder.norm",
        ),
        tied=True,
    )  # fmt: skip


def _moonshine() -> Family:
    """Moonshine: rotary positions, a gated MLP in the decoder, convolutions over raw sound."""
    decoder, encoder = _kv_heads("decoder"), _kv_heads("encoder")
    decoder = replace(decoder, gate_up_fused=True, norms=(*decoder.norms, "final_layernorm"))

    def sound(facts: Facts, _family: Family) -> list[Tensor]:
        tower, hidden = audio(""), facts.integer("hidden_size")
        convolution(tower, "conv1", (hidden, 1, 127), bias=False)
        convolution(tower, "conv2", (2 * hidden, hidden, 7))
        convolution(tower, "conv3", (hidden, 2 * hidden, 3))
        tower.norm("groupnorm", hidden)
        # Keys and values are padded after they were kept.
        facts.settle("pad_head_dim_to_multiple_of")
        return tower.tensors

    names = replace(encoder.names, final_norm="encoder.layer_norm")
    encoder = replace(encoder, gated=False, names=names, positions=sound)
    cross = replace(decoder.names, attention="encoder_attn")
    return seq2seq(decoder, None, named(cross), beside=heard(encoder))


_STREAMING = Family(
    names=Names(
        up="fc1", gate="fc1", down="fc2", embedding="model.decoder.embed_tokens",
        final_norm="model.decoder.norm",
    ),
    q_bias=_AB, mlp_bias=True, gate_up_fused=True,
    norms=("input_layernorm", "post_attention_layernorm", "final_layernorm"),
)  # fmt: skip


def _moonshine_streaming() -> Family:
    """Moonshine that listens as the sound comes in: frames, two convolutions, windows."""
    encoder = Family(
        names=Names(up="fc1", down="fc2", final_norm="encoder.final_norm"), q_bias=_AB,
        o_bias=_AB, mlp_bias=True, gated=False,
    )  # fmt: skip

    def outer(facts: Facts, _family: Family) -> list[Tensor]:
        hidden, rows = facts.integer("hidden_size"), facts.integer("max_position_embeddings")
        inner = facts.sub("encoder_config") or facts.empty("encoder_config")
        inner.settle("sliding_windows", "max_position_embeddings")
        width = inner.integer("hidden_size")
        tower = audio("encoder.embedder.")
        frame = round(inner.integer("sample_rate") * number(inner, "frame_ms", 5) / 1000)
        tower.weight("comp.log_k")
        tower.linear("linear", width, frame, bias=False)
        convolution(tower, "conv1", (2 * width, width, 5))
        convolution(tower, "conv2", (width, 2 * width, 5))
        layers = [replace(t, module=ModuleClass.AUDIO) for t in encoded(inner, encoder)]
        tower.path = "model.decoder."
        tower.weight("pos_emb.weight", rows, width)
        if width != hidden:
            tower.linear("proj", hidden, width, bias=False)
        facts.settle("pad_head_dim_to_multiple_of")
        return layers + tower.tensors

    cross = replace(_STREAMING.names, attention="encoder_attn")
    return seq2seq(_STREAMING, None, named(cross), beside=outer)


CONFORMED = Family(
    names=Names(
        up="fc1", down="fc2", embedding="model.decoder.embed_tokens",
        final_norm="model.decoder.norm",
    ),
    q_bias=_AB, o_bias=_AB, mlp_bias=True, gated=False, norm_bias=True, head_bias=True,
    norms=("input_layernorm", "post_attention_layernorm", "final_layernorm"),
)  # fmt: skip
"""The decoder of Canary and Cohere's transcriber, which read a Parakeet encoder."""
_CONFORMED_CROSS = replace(CONFORMED.names, attention="encoder_attn")


def _normed(facts: Facts, _family: Family) -> list[Tensor]:
    return norm("model.decoder.embedding_layernorm", facts.integer("hidden_size"), bias=True)


def _cohere_asr() -> Family:
    def outer(facts: Facts, family: Family) -> list[Tensor]:
        hidden, rows = facts.integer("hidden_size"), facts.integer("max_position_embeddings")
        encoder = facts.sub("encoder_config") or facts.empty("encoder_config")
        tower = audio("model.decoder.")
        tower.linear("proj", hidden, encoder.integer("hidden_size"))
        places = Tensor(
            "model.decoder.pos_emb.weight", ModuleClass.EMBEDDING, (rows, hidden)
        )  # fmt: skip
        return [
            places,
            *_normed(facts, family),
            *tower.tensors,
            *listen(encoder, "model.encoder.").tensors,
        ]

    return seq2seq(CONFORMED, None, named(_CONFORMED_CROSS), beside=outer)


def _canary_decoder() -> Family:
    decoder = replace(CONFORMED, positions=_normed)
    return seq2seq(decoder, None, named(_CONFORMED_CROSS), beside=None)


def _seamless() -> Family:
    """SeamlessM4T: the decoder of text over an encoder of text, of speech, or both."""
    base = replace(
        PLAIN, names=replace(NAMES, mlp="ffn", embedding="shared"),
        norms=("self_attn_layer_norm", "ffn_layer_norm"),
    )  # fmt: skip
    decoder, encoder = (
        replace(stack(base, keys), names=replace(base.names, final_norm=f"{side}.layer_norm"))
        for side, keys in (("text_decoder", DECODER), ("text_encoder", ENCODER))
    )
    decoder = replace(
        decoder, norms=(*decoder.norms, "cross_attention_layer_norm"), doubts=_second_decoder,
        bare_is_headless=False,
    )  # fmt: skip

    def beside(facts: Facts, family: Family) -> list[Tensor]:
        name = whole_class(facts)
        found = own_tables(facts, family)
        if "ForSpeech" in name:
            found = [table for table in found if table.name.startswith("decoder")]
        else:
            found += encoded(facts, encoder)
        if "ForText" not in name and name:
            found += seamless(facts)
        return found + (units(facts) if speaks(name) else [])

    cross = replace(base.names, attention="cross_attention")
    return seq2seq(decoder, None, named(cross), beside=beside)


def _second_decoder(facts: Facts) -> list[Doubt]:
    """The first version decodes units one by one, too, and keeps theirs."""
    if facts.model_type != "seamless_m4t" or not speaks(whole_class(facts)):
        return []
    return state_doubt(tr("what its decoder of units keeps is not counted"), Direction.LOWER)


def _speecht5() -> Family:
    """SpeechT5 as it writes down speech; its other classes have other ends."""
    base = replace(
        PLAIN,
        names=replace(
            NAMES, mlp="feed_forward", up="intermediate_dense", down="output_dense",
            embedding="speecht5.decoder.prenet.embed_tokens",
        ),
        norms=(*NORMS, "encoder_attn_layer_norm"), doubts=_other_ends,
    )  # fmt: skip

    def sound(facts: Facts, _family: Family) -> list[Tensor]:
        tower, hidden = audio("speecht5.encoder."), facts.integer("hidden_size")
        waves(tower, facts)
        wave_layers(tower, facts, "encoder_layers", "encoder_ffn_dim")
        rows = 2 * facts.integer("encoder_max_relative_position")
        width = hidden // facts.integer("encoder_attention_heads")
        tower.weight("embed_positions.pe_k.weight", rows, width)
        return tower.tensors

    return seq2seq(stack(base, DECODER), None, named(CROSS), beside=sound)


def _other_ends(facts: Facts) -> list[Doubt]:
    name = whole_class(facts)
    if not name or name.endswith("ForSpeechToText"):
        return []
    reason = tr("{name} is counted as SpeechT5ForSpeechToText, which differs at both ends").format(
        name=name[:60]
    )
    return [Doubt(Subject.WEIGHTS, reason, Direction.EITHER)]


FAMILIES = {
    "whisper": _whisper(), "speech_to_text": _speech_to_text(), "moonshine": _moonshine(),
    "moonshine_streaming": _moonshine_streaming(), "cohere_asr": _cohere_asr(),
    "canary_decoder": _canary_decoder(),
    "seamless_m4t": _seamless(), "seamless_m4t_v2": _seamless(), "speecht5": _speecht5(),
}  # fmt: skip
