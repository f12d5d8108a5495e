"""Neural codecs of sound that live beside a model of its codes: Mimi and EnCodec.

Convolutions shorten the sound, a vector quantiser turns it into codes (its tables are no
parameters), and the mirror image makes sound of them.

Source:
    transformers 5.24.0, ``mimi/modeling_mimi.py``, ``encodec/modeling_encodec.py``.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from engine.architecture.towers.parts import number
from engine.architecture.towers.registry import UnknownTowerError
from engine.units import ceil_div
from engine.words import tr

if TYPE_CHECKING:
    from engine.architecture.towers.parts import Tower
    from engine.config.facts import Facts

_RATIOS = {"mimi": (8, 6, 5, 4), "encodec": (8, 5, 4, 2)}


class _Convolutions:
    """The two stacks of convolutions and their residual blocks."""

    def __init__(
        self, tower: Tower, codec: Facts, ratios: tuple[int, ...], *, normed: bool
    ) -> None:
        self.tower, self.codec, self.ratios, self.normed = tower, codec, ratios, normed
        self.filters = codec.integer("num_filters")
        self.widest = self.filters * 2 ** len(ratios)

    def conv(
        self, name: str, shape: tuple[int, int, int], *, turned: bool = False, copies: int = 1
    ) -> None:
        """A convolution (out, in, kernel); ``turned`` where it lengthens: stored (in, out, kernel).

        With weight norm the length of each row of the stored tensor is a parameter of its own.
        """
        out, width, kernel = shape
        stored = (width, out, kernel) if turned else shape
        self.tower.weight(f"{name}.weight", *stored, copies=copies)
        self.tower.weight(f"{name}.bias", out, copies=copies)
        if self.normed:
            self.tower.weight(f"{name}.length", stored[0], 1, 1, copies=copies)

    def residual(self, name: str, width: int) -> None:
        """The residual blocks at one width."""
        codec, path = self.codec, f"{name}.*"
        inner, n = width // codec.integer("compress"), codec.integer("num_residual_layers")
        kernel = codec.integer("residual_kernel_size")
        self.conv(f"{path}.0", (inner, width, kernel), copies=n)
        self.conv(f"{path}.1", (width, inner, 1), copies=n)
        if codec.flag("use_conv_shortcut"):
            self.conv(f"{path}.shortcut", (width, width, 1), copies=n)

    def down(self, recurrent: int) -> None:
        """From sound to vectors."""
        codec, width = self.codec, self.filters
        channels = codec.integer("audio_channels")
        self.conv("encoder.first", (width, channels, codec.integer("kernel_size")))
        for index, ratio in enumerate(reversed(self.ratios)):
            self.residual(f"encoder.blocks.{index}", width)
            self.conv(f"encoder.shorten.{index}", (2 * width, width, 2 * ratio))
            width *= 2
        self.lstm("encoder.lstm", width, recurrent)
        hidden = codec.integer("hidden_size")
        self.conv("encoder.last", (hidden, width, codec.integer("last_kernel_size")))

    def up(self, recurrent: int) -> None:
        """From vectors to sound."""
        codec, width = self.codec, self.widest
        hidden = codec.integer("hidden_size")
        self.conv("decoder.first", (width, hidden, codec.integer("kernel_size")))
        self.lstm("decoder.lstm", width, recurrent)
        for index, ratio in enumerate(self.ratios):
            self.conv(f"decoder.lengthen.{index}", (width // 2, width, 2 * ratio), turned=True)
            width //= 2
            self.residual(f"decoder.blocks.{index}", width)
        channels = codec.integer("audio_channels")
        self.conv("decoder.last", (channels, width, codec.integer("last_kernel_size")))

    def lstm(self, name: str, width: int, layers: int) -> None:
        """``layers`` recurrent layers: four gates, each of the input and of the state."""
        if layers:
            for side in ("ih", "hh"):
                self.tower.weight(f"{name}.weight_{side}", 4 * width, width, copies=layers)
                self.tower.weight(f"{name}.bias_{side}", 4 * width, copies=layers)


def _ratios(codec: Facts) -> tuple[int, ...]:
    codec.settle("dilation_growth_rate", "codebook_size", "codebook_dim", "num_quantizers")
    return codec.integers("upsampling_ratios", low=1) or _RATIOS[codec.model_type]


def mimi(codec: Facts, tower: Tower) -> None:
    """Mimi: a transformer on each side of the quantiser, and half as many frames between."""
    ratios = _ratios(codec)
    stacks = _Convolutions(tower, codec, ratios, normed=False)
    stacks.down(0)
    for side in ("encoder", "decoder"):
        _layers(codec, tower, f"{side}_transformer.layers.*.")
    hidden = codec.integer("hidden_size")
    sound = codec.integer("sampling_rate", 24_000)
    rate = ceil_div(sound, prod(ratios))
    frames = number(codec, "frame_rate", sound / (2 * prod(ratios)))
    if rate != frames:
        kernel = 2 * int(rate / frames)
        tower.weight("downsample.conv.weight", hidden, hidden, kernel)
        groups = codec.integer("upsample_groups")
        tower.weight("upsample.conv.weight", hidden, hidden // groups, kernel)
    stacks.up(0)
    width = codec.integer("vector_quantization_hidden_dimension")
    codec.settle("num_semantic_quantizers")
    if width != hidden:
        for name in ("semantic", "acoustic"):
            tower.weight(f"quantizer.{name}.input_proj.weight", width, hidden, 1)
            tower.weight(f"quantizer.{name}.output_proj.weight", hidden, width, 1)


def _layers(codec: Facts, tower: Tower, path: str) -> None:
    hidden, n = codec.integer("hidden_size"), codec.integer("num_hidden_layers")
    heads = codec.integer("num_attention_heads")
    kv_heads = codec.integer("num_key_value_heads", heads)
    head = codec.integer("head_dim", hidden // heads)
    width = codec.integer("intermediate_size")
    codec.settle("sliding_window")
    bias = codec.flag("attention_bias")
    for name, rows, columns in (
        ("q_proj", heads * head, hidden), ("k_proj", kv_heads * head, hidden),
        ("v_proj", kv_heads * head, hidden), ("o_proj", hidden, heads * head),
    ):  # fmt: skip
        tower.linear(path + name, rows, columns, bias=bias, copies=n)
    tower.linear(path + "fc1", width, hidden, bias=False, copies=n)
    tower.linear(path + "fc2", hidden, width, bias=False, copies=n)
    for name in ("input_layernorm", "post_attention_layernorm"):
        tower.norm(path + name, hidden, copies=n)
    for name in ("self_attn_layer_scale", "mlp_layer_scale"):
        tower.weight(f"{path}{name}.scale", hidden, copies=n)


def encodec(codec: Facts, tower: Tower) -> None:
    """EnCodec: convolutions with weight norm, and recurrent layers at the narrow end."""
    kind = codec.word("norm_type", "weight_norm")
    if kind != "weight_norm":
        raise UnknownTowerError(tr("encodec with {kind}").format(kind=kind[:40]))
    stacks = _Convolutions(tower, codec, _ratios(codec), normed=True)
    recurrent = codec.count("num_lstm_layers")
    stacks.down(recurrent)
    stacks.up(recurrent)


def wavtokenizer(codec: Facts, tower: Tower) -> None:
    """WavTokenizer's encoder, which is EnCodec's."""
    kind = codec.word("norm_type", "weight_norm")
    if kind != "weight_norm":
        raise UnknownTowerError(tr("wavtokenizer with {kind}").format(kind=kind[:40]))
    _Convolutions(tower, codec, _ratios(codec), normed=True).down(codec.count("num_lstm_layers"))


CODECS = {"mimi": mimi, "encodec": encodec}
"""By the ``model_type`` of their own config."""
ENCODERS = {"wavtokenizer_encoder": wavtokenizer}
"""Those of which a model has only the half that hears."""
