"""Encoders of speech, by the config that describes them. Everything in them is of the audio part.

Source:
    transformers 5.24.0, the modelling file of each type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.spec import ModuleClass, Sharding, Tensor
from engine.architecture.towers.parts import Tower
from engine.words import tr

if TYPE_CHECKING:
    from engine.config.facts import Facts

_ROW = Sharding.ROW
_KERNELS = (10, 3, 3, 3, 3, 2, 2)
"""Of wav2vec2's seven convolutions, where a config leaves them out."""


def audio(path: str) -> Tower:
    """An empty tower of the audio part."""
    return Tower(path, ModuleClass.AUDIO)


def convolution(
    tower: Tower,
    name: str,
    shape: tuple[int, ...],
    *,
    bias: bool = True,
    copies: int = 1,
) -> None:
    """A convolution's weight (out, in a group, kernel …) and bias."""
    tower.weight(f"{name}.weight", *shape, copies=copies)
    if bias:
        tower.weight(f"{name}.bias", shape[0], copies=copies)


def feed_forward(tower: Tower, name: str, sizes: tuple[int, int], *, bias: bool, n: int) -> None:
    """An MLP of one width in each of ``n`` layers."""
    hidden, width = sizes
    tower.linear(f"{name}.up", width, hidden, bias=bias, copies=n)
    tower.linear(f"{name}.down", hidden, width, bias=bias, copies=n, sharding=_ROW)


def full_attention(tower: Tower, path: str, hidden: int, copies: int) -> None:
    """Multi-head attention with biases everywhere."""
    for name in ("q_proj", "k_proj", "v_proj"):
        tower.linear(f"{path}.{name}", hidden, hidden, copies=copies)
    tower.linear(f"{path}.out_proj", hidden, hidden, copies=copies, sharding=_ROW)


def seamless(facts: Facts, _family: object = None) -> list[Tensor]:
    """SeamlessM4T's Conformer over filter banks, and the adapter that shortens its output.

    Source:
        ``seamless_m4t/modeling_seamless_m4t.py``, ``seamless_m4t_v2/modeling_seamless_m4t_v2.py``.
    """
    tower = audio("speech_encoder.")
    hidden, bands = facts.integer("hidden_size"), facts.integer("feature_projection_input_dim")
    tower.norm("feature_projection.layer_norm", bands)
    tower.linear("feature_projection.projection", hidden, bands)
    n = facts.integer("speech_encoder_layers")
    sizes = hidden, facts.integer("speech_encoder_intermediate_size")
    path = "encoder.layers.*."
    for name in ("ffn1", "ffn2"):
        feed_forward(tower, path + name, sizes, bias=True, n=n)
    full_attention(tower, path + "self_attn", hidden, n)
    heads = facts.integer("speech_encoder_attention_heads")
    _relative(tower, facts, path + "self_attn.", (hidden, hidden // heads, heads, n))
    kernel = facts.integer("conv_depthwise_kernel_size")
    conv = path + "conv_module."
    for name, shape in (
        ("pointwise_conv1", (2 * hidden, hidden, 1)),
        ("depthwise_conv", (hidden, 1, kernel)),
        ("pointwise_conv2", (hidden, hidden, 1)),
    ):
        convolution(tower, conv + name, shape, bias=False, copies=n)
    for name in ("ffn1_layer_norm", "self_attn_layer_norm", "conv_module.layer_norm",
                 "conv_module.depthwise_norm", "ffn2_layer_norm", "final_layer_norm"):  # fmt: skip
        tower.norm(path + name, hidden, copies=n)
    tower.norm("encoder.layer_norm", hidden)
    feed_forward(tower, "intermediate_ffn", sizes, bias=True, n=1)
    if facts.flag("add_adapter"):
        _shorten(tower, facts, sizes)
    tower.norm("inner_layer_norm", hidden)
    return tower.tensors


def _relative(tower: Tower, facts: Facts, path: str, sizes: tuple[int, int, int, int]) -> None:
    hidden, width, heads, n = sizes
    # Each of the two types builds one kind, and nothing for the other's.
    kind = facts.word("position_embeddings_type")
    is_second = facts.model_type == "seamless_m4t_v2"
    facts.settle("max_source_positions")
    if kind == "relative" and not is_second:
        tower.linear(path + "linear_pos", hidden, hidden, bias=False, copies=n)
        for name in ("pos_bias_u", "pos_bias_v"):
            tower.weight(path + name, heads, width, copies=n)
    if kind == "relative_key" and is_second:
        rows = facts.integer("left_max_position_embeddings", low=0)
        rows += facts.integer("right_max_position_embeddings", low=0) + 1
        tower.weight(path + "distance_embedding.weight", rows, width, copies=n)


def _shorten(tower: Tower, facts: Facts, sizes: tuple[int, int]) -> None:
    hidden = sizes[0]
    n, kernel = facts.integer("num_adapter_layers"), facts.integer("adaptor_kernel_size")
    path = "adapter.layers.*."
    for name in ("residual_conv", "self_attn_conv"):
        convolution(tower, path + name, (2 * hidden, hidden, kernel), copies=n)
    full_attention(tower, path + "self_attn", hidden, n)
    feed_forward(tower, path + "ffn", sizes, bias=True, n=n)
    for name in ("residual_layer_norm", "self_attn_layer_norm", "ffn_layer_norm"):
        tower.norm(path + name, hidden, copies=n)


def waves(tower: Tower, facts: Facts) -> None:
    """wav2vec2's convolutions over the raw sound, and what makes them the layers' input.

    Source:
        ``wav2vec2/modeling_wav2vec2.py``: the first norm is of groups, or every layer has one.
    """
    hidden = facts.integer("hidden_size")
    widths = facts.integers("conv_dim", low=1) or (512,) * len(_KERNELS)
    kernels = facts.integers("conv_kernel", low=1) or _KERNELS
    facts.settle("conv_stride", "num_feat_extract_layers")
    if len(widths) != len(kernels):
        raise facts.bad(
            "conv_kernel",
            kernels,
            tr("{widths} entries are needed, as in conv_dim").format(widths=len(widths)),
        )
    bias = facts.flag("conv_bias")
    grouped = facts.word("feat_extract_norm", "group") == "group"
    before = 1
    for index, (width, kernel) in enumerate(zip(widths, kernels, strict=True)):
        path = f"feature_extractor.conv_layers.{index}."
        convolution(tower, path + "conv", (width, before, kernel), bias=bias)
        if not grouped or index == 0:
            tower.norm(path + "layer_norm", width)
        before = width
    tower.norm("feature_projection.layer_norm", before)
    tower.linear("feature_projection.projection", hidden, before)
    # The convolution that tells positions is stored as a direction and a length.
    kernel = facts.integer("num_conv_pos_embeddings")
    groups = facts.integer("num_conv_pos_embedding_groups")
    tower.weight("encoder.pos_conv_embed.conv.bias", hidden)
    tower.weight("encoder.pos_conv_embed.conv.original0", 1, 1, kernel)
    tower.weight("encoder.pos_conv_embed.conv.original1", hidden, hidden // groups, kernel)
    masks = (facts.raw("mask_time_prob"), facts.raw("mask_feature_prob"))
    if masks[0] is None or any(isinstance(p, int | float) and p > 0 for p in masks):
        tower.weight("masked_spec_embed", hidden)
    tower.norm("encoder.layer_norm", hidden)


def wave_layers(tower: Tower, facts: Facts, layers: str, width: str) -> None:
    """The layers of wav2vec2, whose number and inner width have these keys."""
    hidden, n = facts.integer("hidden_size"), facts.integer(layers)
    path = "encoder.layers.*."
    full_attention(tower, path + "attention", hidden, n)
    feed_forward(tower, path + "feed_forward", (hidden, facts.integer(width)), bias=True, n=n)
    for name in ("layer_norm", "final_layer_norm"):
        tower.norm(path + name, hidden, copies=n)
    inner = facts.count("adapter_attn_dim")
    if inner and facts.flag("do_stable_layer_norm"):
        tower.norm(path + "adapter_layer.norm", hidden, copies=n)
        feed_forward(tower, path + "adapter_layer", (hidden, inner), bias=True, n=n)


def adapted(tower: Tower, facts: Facts) -> int:
    """wav2vec2's adapter, where it has one; the width of what comes out."""
    hidden = facts.integer("hidden_size")
    out = facts.integer("output_hidden_size", hidden)
    if facts.flag("add_adapter"):
        if out != hidden:
            tower.linear("adapter.proj", out, hidden)
            tower.norm("adapter.proj_layer_norm", out)
        shape = 2 * out, out, facts.integer("adapter_kernel_size")
        n = facts.integer("num_adapter_layers")
        convolution(tower, "adapter.layers.*.conv", shape, copies=n)
    return out
