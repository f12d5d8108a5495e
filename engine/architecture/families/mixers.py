"""Token mixers with a state of constant size: gated delta net, Mamba-2, short convolution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.architecture.families.base import Mixed, matrix, norm, vector
from engine.architecture.spec import ModuleClass, Sharding, StateSpec, Tensor
from engine.formats.dtypes import canonical
from engine.words import tr

if TYPE_CHECKING:
    from engine.architecture.families.base import Family
    from engine.config.facts import Facts

_A = ModuleClass.ATTENTION
_COLUMN, _ROW = Sharding.COLUMN, Sharding.ROW


def _state_dtype(facts: Facts, key: str) -> str | None:
    """The dtype that ``key`` gives the state; None for the model's own.

    Raises:
        ConfigError: it is no dtype.
    """
    word = facts.word(key, "auto")
    if word != "auto" and canonical(word) is None:
        raise facts.bad(key, word, tr("float32, bfloat16 or float16 is needed"))
    return None if word == "auto" else word


def convolution(name: str, channels: int, kernel: int, *, bias: bool) -> list[Tensor]:
    """A depthwise convolution over ``kernel`` tokens."""
    found = [Tensor(f"{name}.weight", _A, (channels, 1, kernel), 1, _COLUMN)]
    if bias:
        found.append(Tensor(f"{name}.bias", _A, (channels,), 1, _COLUMN))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaNet:
    """Sizes of a gated delta net, as the config keys of one family give them."""

    k_heads: int
    v_heads: int
    k_width: int
    v_width: int
    kernel: int
    state_dtype: str | None = None

    @property
    def keys(self) -> int:
        """Width of all keys, and of all queries."""
        return self.k_heads * self.k_width

    @property
    def values(self) -> int:
        """Width of all values, and of the output gate."""
        return self.v_heads * self.v_width

    def block(
        self,
        hidden: int,
        inputs: list[tuple[str, int]],
        names: tuple[str, str] = ("norm", "out_proj"),
    ) -> Mixed:
        """Its tensors and its state.

        Args:
            hidden: width of the layer's input.
            inputs: input projections, name and rows.
            names: names of the norm and of the output projection.
        """
        path = "linear_attn."
        channels = 2 * self.keys + self.values
        tensors = [
            tensor
            for name, rows in inputs
            for tensor in matrix(path + name, _A, (rows, hidden), _COLUMN)
        ]
        tensors += [
            *convolution(path + "conv1d", channels, self.kernel, bias=False),
            vector(path + "dt_bias", _A, self.v_heads, _COLUMN),
            vector(path + "A_log", _A, self.v_heads, _COLUMN),
            *norm(path + names[0], self.v_width),
            *matrix(path + names[1], _A, (hidden, self.values), _ROW),
        ]
        elements = self.v_heads * self.v_width * self.k_width
        state = StateSpec(
            "gated_delta_net", channels, self.kernel, elements, self.v_heads, self.state_dtype
        )
        return Mixed(tensors, state=state)


def gated_delta_net(facts: Facts, family: Family, kind: str) -> Mixed:
    """Gated delta net (Qwen3-Next, Qwen3.5).

    Source:
        transformers 5.24.0, ``qwen3_next`` and ``qwen3_5``; the first fuses the projections.
    """
    del family, kind
    sizes = DeltaNet(
        k_heads=facts.integer("linear_num_key_heads"),
        v_heads=facts.integer("linear_num_value_heads"),
        k_width=facts.integer("linear_key_head_dim"),
        v_width=facts.integer("linear_value_head_dim"),
        kernel=facts.integer("linear_conv_kernel_dim", 4),
        state_dtype=_state_dtype(facts, "mamba_ssm_dtype"),
    )
    # The class gates the output of its attention whatever the config says.
    facts.settle("attn_output_gate")
    keys, values, heads = sizes.keys, sizes.values, sizes.v_heads
    if facts.model_type == "qwen3_next":
        inputs = [("in_proj_qkvz", 2 * keys + 2 * values), ("in_proj_ba", 2 * heads)]
    else:
        inputs = [
            ("in_proj_qkv", 2 * keys + values), ("in_proj_z", values), ("in_proj_b", heads),
            ("in_proj_a", heads),
        ]  # fmt: skip
    return sizes.block(facts.integer("hidden_size"), inputs)


@dataclass(frozen=True, slots=True, kw_only=True)
class MambaTwo:
    """Sizes of a Mamba-2 block, as the config keys of one family give them."""

    heads: int
    width: int
    groups: int
    states: int
    kernel: int
    inner: int
    in_bias: bool
    out_bias: bool
    conv_bias: bool
    has_norm: bool = True
    state_dtype: str | None = None

    def block(self, path: str, hidden: int) -> Mixed:
        """Its tensors under ``path``, and its state."""
        channels = self.inner + 2 * self.groups * self.states
        rows = self.inner + channels + self.heads
        tensors = [
            *matrix(path + "in_proj", _A, (rows, hidden), _COLUMN, bias=self.in_bias),
            *convolution(path + "conv1d", channels, self.kernel, bias=self.conv_bias),
            vector(path + "dt_bias", _A, self.heads, _COLUMN),
            vector(path + "A_log", _A, self.heads, _COLUMN),
            vector(path + "D", _A, self.heads, _COLUMN),
            *(norm(path + "norm", self.inner) if self.has_norm else ()),
            *matrix(path + "out_proj", _A, (hidden, self.inner), _ROW, bias=self.out_bias),
        ]
        elements = self.heads * self.width * self.states
        state = StateSpec(
            "mamba2", channels, self.kernel, elements, self.heads, self.state_dtype,
            groups=self.groups, group_channels=2 * self.states,
        )  # fmt: skip
        return Mixed(tensors, state=state)


def mamba2(facts: Facts, family: Family, kind: str) -> Mixed:
    """Mamba-2 as Nemotron-H has it.

    Source:
        transformers 5.24.0, ``nemotron_h/modeling_nemotron_h.py :: NemotronHMamba2Mixer``.
    """
    del kind
    heads, width = facts.integer("mamba_num_heads"), facts.integer("mamba_head_dim")
    bias = facts.flag("use_bias")
    # The older names win where a config states both.
    sizes = MambaTwo(
        heads=heads, width=width, groups=facts.integer("mamba_n_groups", facts.integer("n_groups")),
        states=facts.integer("ssm_state_size"),
        kernel=facts.integer("mamba_d_conv", facts.integer("conv_kernel", 4)),
        inner=heads * width, in_bias=bias, out_bias=bias,
        conv_bias=facts.flag("mamba_conv_bias", default=facts.flag("use_conv_bias")),
        state_dtype=_state_dtype(facts, "mamba_ssm_cache_dtype"),
    )  # fmt: skip
    return sizes.block(family.names.attention + ".", facts.integer("hidden_size"))


def bamba(facts: Facts, _family: Family, _kind: str) -> Mixed:
    """Mamba-2 as Bamba, Granite 4 and Falcon-H1 have it.

    Source:
        transformers 5.24.0, ``bamba``, ``granitemoehybrid``, ``falcon_h1``.
    """
    hidden = facts.integer("hidden_size")
    inner = facts.count("mamba_d_ssm") or facts.integer("mamba_expand", 2) * hidden
    heads = facts.integer("mamba_n_heads")
    stated = facts.raw("mamba_d_head")
    width = facts.integer("mamba_d_head") if isinstance(stated, int) else max(inner // heads, 1)
    falcon = facts.model_type == "falcon_h1"
    bias = facts.flag("mamba_proj_bias")
    sizes = MambaTwo(
        heads=heads, width=width, groups=facts.integer("mamba_n_groups"),
        states=facts.integer("mamba_d_state"), kernel=facts.integer("mamba_d_conv", 4),
        inner=inner, in_bias=bias, out_bias=facts.flag("projectors_bias") if falcon else bias,
        conv_bias=facts.flag("mamba_conv_bias"),
        has_norm=facts.flag("mamba_rms_norm") if falcon else True,
    )  # fmt: skip
    return sizes.block("mamba.", hidden)


def mamba1(facts: Facts, _family: Family, _kind: str) -> Mixed:
    """Mamba, Falcon-Mamba and the recurrent layers of Jamba.

    Source:
        transformers 5.24.0, ``mamba/modeling_mamba.py``, ``jamba/modeling_jamba.py``.
    """
    hidden = facts.integer("hidden_size")
    jamba = facts.has("mamba_d_state")
    states = facts.integer("mamba_d_state" if jamba else "state_size")
    kernel = facts.integer("mamba_d_conv" if jamba else "conv_kernel", 4)
    expand = facts.integer("mamba_expand" if jamba else "expand", 2)
    inner = expand * hidden if jamba else facts.integer("intermediate_size", expand * hidden)
    key = "mamba_dt_rank" if jamba else "time_step_rank"
    stated = facts.raw(key)
    rank = facts.integer(key) if isinstance(stated, int) else -(-hidden // 16)
    bias = facts.flag("mamba_proj_bias" if jamba else "use_bias")
    conv_bias = facts.flag("mamba_conv_bias" if jamba else "use_conv_bias", default=True)
    path = "mamba." if jamba else "mixer."
    tensors = [
        *matrix(path + "in_proj", _A, (2 * inner, hidden), _COLUMN, bias=bias),
        *convolution(path + "conv1d", inner, kernel, bias=conv_bias),
        *matrix(path + "x_proj", _A, (rank + 2 * states, inner), _ROW),
        *matrix(path + "dt_proj", _A, (inner, rank), _COLUMN, bias=True),
        Tensor(path + "A_log", _A, (inner, states), 1, _COLUMN),
        vector(path + "D", _A, inner, _COLUMN),
        *matrix(path + "out_proj", _A, (hidden, inner), _ROW, bias=bias),
    ]
    if jamba:
        tensors += [
            *norm(path + "dt_layernorm", rank),
            *norm(path + "b_layernorm", states),
            *norm(path + "c_layernorm", states),
        ]
    return Mixed(tensors, state=StateSpec("mamba", inner, kernel, inner * states, 1))


def short_convolution(facts: Facts, family: Family, kind: str) -> Mixed:
    """The gated short convolution of LFM2."""
    del family, kind
    hidden = facts.integer("hidden_size")
    kernel = facts.integer("conv_L_cache")
    # Stated in some configs; the class takes the hidden width.
    facts.settle("block_dim", "conv_dim", "conv_dim_out", "conv_use_xavier_init")
    bias = facts.flag("conv_bias")
    tensors = [
        *matrix("conv.in_proj", _A, (3 * hidden, hidden), _COLUMN, bias=bias),
        *convolution("conv.conv", hidden, kernel, bias=bias),
        *matrix("conv.out_proj", _A, (hidden, hidden), _ROW, bias=bias),
    ]
    return Mixed(tensors, state=StateSpec("short_conv", hidden, kernel, 0, 0))
