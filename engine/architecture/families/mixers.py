"""Token mixers with a state of constant size: gated delta net, Mamba-2, short convolution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.families.base import Mixed, matrix, norm, vector
from engine.architecture.spec import ModuleClass, Sharding, StateSpec, Tensor

if TYPE_CHECKING:
    from engine.architecture.families.base import Family
    from engine.config.facts import Facts

_A = ModuleClass.ATTENTION
_COLUMN, _ROW = Sharding.COLUMN, Sharding.ROW


def _convolution(name: str, channels: int, kernel: int, *, bias: bool) -> list[Tensor]:
    found = [Tensor(f"{name}.weight", _A, (channels, 1, kernel), 1, _COLUMN)]
    if bias:
        found.append(Tensor(f"{name}.bias", _A, (channels,), 1, _COLUMN))
    return found


def gated_delta_net(facts: Facts, family: Family, kind: str) -> Mixed:
    """Gated delta net (Qwen3-Next, Qwen3.5).

    Source:
        transformers 5.24.0, ``qwen3_next`` and ``qwen3_5``; the first fuses the projections.
    """
    del kind
    hidden = facts.integer("hidden_size")
    k_heads, v_heads = (
        facts.integer("linear_num_key_heads"),
        facts.integer("linear_num_value_heads"),
    )
    k_width, v_width = facts.integer("linear_key_head_dim"), facts.integer("linear_value_head_dim")
    kernel = facts.integer("linear_conv_kernel_dim", 4)
    keys, values = k_heads * k_width, v_heads * v_width
    path = "linear_attn."
    if facts.model_type == "qwen3_next":
        inputs = [("in_proj_qkvz", 2 * keys + 2 * values), ("in_proj_ba", 2 * v_heads)]
    else:
        inputs = [
            ("in_proj_qkv", 2 * keys + values), ("in_proj_z", values), ("in_proj_b", v_heads),
            ("in_proj_a", v_heads),
        ]  # fmt: skip
    del family
    tensors = [t for name, rows in inputs for t in matrix(path + name, _A, (rows, hidden), _COLUMN)]
    tensors += [
        *_convolution(path + "conv1d", 2 * keys + values, kernel, bias=False),
        vector(path + "dt_bias", _A, v_heads, _COLUMN),
        vector(path + "A_log", _A, v_heads, _COLUMN),
        *norm(path + "norm", v_width),
        *matrix(path + "out_proj", _A, (hidden, values), _ROW),
    ]
    state_dtype = facts.word("mamba_ssm_dtype") or None
    state = StateSpec(
        "gated_delta_net", 2 * keys + values, kernel, v_heads * v_width * k_width, v_heads,
        state_dtype,
    )  # fmt: skip
    return Mixed(tensors, state=state)


def mamba2(facts: Facts, family: Family, kind: str) -> Mixed:
    """Mamba-2 as Nemotron-H has it.

    Source:
        transformers 5.24.0, ``nemotron_h/modeling_nemotron_h.py :: NemotronHMamba2Mixer``.
    """
    del kind
    hidden = facts.integer("hidden_size")
    heads, width = facts.integer("mamba_num_heads"), facts.integer("mamba_head_dim")
    groups, states = facts.integer("n_groups"), facts.integer("ssm_state_size")
    kernel = facts.integer("conv_kernel", 4)
    inner = heads * width
    channels = inner + 2 * groups * states
    path = family.names.attention + "."
    bias = facts.flag("use_bias")
    tensors = [
        *matrix(path + "in_proj", _A, (inner + channels + heads, hidden), _COLUMN, bias=bias),
        *_convolution(path + "conv1d", channels, kernel, bias=facts.flag("use_conv_bias")),
        vector(path + "dt_bias", _A, heads, _COLUMN),
        vector(path + "A_log", _A, heads, _COLUMN),
        vector(path + "D", _A, heads, _COLUMN),
        *norm(path + "norm", inner),
        *matrix(path + "out_proj", _A, (hidden, inner), _ROW, bias=bias),
    ]
    dtype = facts.word("mamba_ssm_cache_dtype") or None
    state = StateSpec("mamba2", channels, kernel, heads * width * states, heads, dtype)
    return Mixed(tensors, state=state)


def short_convolution(facts: Facts, family: Family, kind: str) -> Mixed:
    """The gated short convolution of LFM2."""
    del family, kind
    hidden = facts.integer("hidden_size")
    kernel = facts.integer("conv_L_cache")
    bias = facts.flag("conv_bias")
    tensors = [
        *matrix("conv.in_proj", _A, (3 * hidden, hidden), _COLUMN, bias=bias),
        *_convolution("conv.conv", hidden, kernel, bias=bias),
        *matrix("conv.out_proj", _A, (hidden, hidden), _ROW, bias=bias),
    ]
    return Mixed(tensors, state=StateSpec("short_conv", hidden, kernel, 0, 0))
