"""Recurrent cells without attention heads' caches: RWKV, xLSTM and RecurrentGemma.

Source:
    transformers 5.24.0, ``rwkv``, ``xlstm`` and ``recurrent_gemma``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.families import attention
from engine.architecture.families.base import (
    DENSE,
    LINEAR,
    SLIDING,
    Family,
    Fed,
    Mixed,
    Names,
    matrix,
    norm,
    vector,
)
from engine.architecture.families.mixers import convolution
from engine.architecture.spec import ModuleClass, Sharding, StateSpec, Tensor
from engine.words import tr

if TYPE_CHECKING:
    from engine.config.facts import Facts

_A, _MLP = ModuleClass.ATTENTION, ModuleClass.MLP
_COLUMN, _ROW = Sharding.COLUMN, Sharding.ROW
_OPENING = "first"


def _opened(facts: Facts) -> tuple[tuple[str, str], ...]:
    """All layers alike but for the first."""
    layers = facts.integer("num_hidden_layers")
    return ((_OPENING, DENSE),) + ((LINEAR, DENSE),) * (layers - 1)


def _rwkv_time(facts: Facts, _family: Family, kind: str) -> Mixed:
    """Time mixing. The last inputs of both blocks and three sums are kept, each a token wide."""
    hidden = facts.integer("hidden_size")
    wide = facts.integer("attention_hidden_size", hidden)
    path = "attention."
    tensors = [
        vector(path + "time_decay", _A, wide, _COLUMN),
        vector(path + "time_first", _A, wide, _COLUMN),
        *(Tensor(f"{path}time_mix_{name}", _A, (1, 1, hidden)) for name in _MIXED),
        *matrix(path + "key", _A, (wide, hidden), _COLUMN),
        *matrix(path + "value", _A, (wide, hidden), _COLUMN),
        *matrix(path + "receptance", _A, (wide, hidden), _COLUMN),
        *matrix(path + "output", _A, (hidden, wide), _ROW),
    ]
    if kind == _OPENING:
        tensors += norm("pre_ln", hidden, bias=True)
    state = StateSpec("rwkv", 2 * hidden, 2, 3 * hidden, 1, "float32", keeps_kernel=False)
    return Mixed(tensors, state=state)


_MIXED = ("key", "value", "receptance")


def _rwkv_channels(facts: Facts, _family: Family, _kind: str) -> Fed:
    hidden = facts.integer("hidden_size")
    width = facts.integer("intermediate_size", 4 * hidden)
    path = "feed_forward."
    tensors = [
        Tensor(path + "time_mix_key", _MLP, (1, 1, hidden)),
        Tensor(path + "time_mix_receptance", _MLP, (1, 1, hidden)),
        *matrix(path + "key", _MLP, (width, hidden), _COLUMN),
        *matrix(path + "receptance", _MLP, (hidden, hidden), Sharding.REPLICATED),
        *matrix(path + "value", _MLP, (hidden, width), _ROW),
    ]
    return Fed(tensors, width)


RWKV = Family(
    names=Names(embedding="rwkv.embeddings", final_norm="rwkv.ln_out"), kinds=_opened,
    mixers={_OPENING: _rwkv_time, LINEAR: _rwkv_time}, feeds={DENSE: _rwkv_channels}, gated=False,
    norms=("ln1", "ln2"), norm_bias=True,
)  # fmt: skip


def _times(facts: Facts, key: str, otherwise: float) -> float:
    """The factor ``key``, which scales a width."""
    value = facts.raw(key)
    if value is None:
        return otherwise
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 64:
        raise facts.bad(key, value, tr("a factor above 0 and below 64 is needed"))
    return value


def _rounded(width: float, multiple: int) -> int:
    return int((width + multiple - 1) // multiple) * multiple


def _xlstm_kinds(facts: Facts) -> tuple[tuple[str, str], ...]:
    hidden, layers = facts.integer("hidden_size"), facts.integer("num_hidden_layers")
    width, blocks = facts.integer("embedding_dim", hidden), facts.integer("num_blocks", layers)
    if width != hidden:
        raise facts.bad(
            "embedding_dim",
            width,
            tr("the blocks take hidden_size ({hidden})").format(hidden=hidden),
        )
    blocks = facts.checked("num_hidden_layers", blocks, 1)
    return ((_OPENING, DENSE),) + ((LINEAR, DENSE),) * (blocks - 1)


def _xlstm_cell(facts: Facts, _family: Family, kind: str) -> Mixed:
    """A matrix memory a head, a normaliser and a stabiliser; one counter for the whole model."""
    hidden, heads = facts.integer("hidden_size"), facts.integer("num_heads")
    keys = hidden * _times(facts, "qk_dim_factor", 0.5)
    values = hidden * _times(facts, "v_dim_factor", 1.0)
    for width in (int(keys), int(values)):
        if width % heads:
            raise facts.bad(
                "num_heads",
                heads,
                tr("a divisor of the inner width {width} is needed").format(width=width),
            )
    bias, path = facts.flag("use_bias"), "mlstm_layer."
    tensors = [
        *matrix(path + "q", _A, (int(keys), hidden), _COLUMN, bias=bias),
        *matrix(path + "k", _A, (int(keys), hidden), _COLUMN, bias=bias),
        *matrix(path + "v", _A, (int(values), hidden), _COLUMN, bias=bias),
        *matrix(path + "ogate_preact", _A, (int(values), hidden), _COLUMN, bias=bias),
        *matrix(path + "igate_preact", _A, (heads, hidden), _COLUMN, bias=True),
        *matrix(path + "fgate_preact", _A, (heads, hidden), _COLUMN, bias=True),
        *norm(path + "multihead_norm", int(values), bias=bias),
        *matrix(path + "out_proj", _A, (hidden, int(values)), _ROW, bias=bias),
        *norm("norm_mlstm", hidden, bias=bias),
        *norm("norm_ffn", hidden, bias=bias),
    ]
    # The memory's widths are rounded up to 64, the projections' are not.
    key, value = _rounded(keys, 64) // heads, _rounded(values, 64) // heads
    elements = heads * (key * value + key + 1)
    state = StateSpec("xlstm", 0, 0, elements, heads, integers=int(kind == _OPENING))
    return Mixed(tensors, state=state)


def _xlstm_feed(facts: Facts, family: Family, _kind: str) -> Fed:
    hidden = facts.integer("hidden_size")
    wanted = hidden * _times(facts, "ffn_proj_factor", 2.667)
    width = _rounded(wanted, facts.integer("ffn_round_up_to_multiple_of"))
    bias = facts.flag("use_bias")
    path = family.names.mlp + "."
    tensors = [
        *matrix(path + "proj_up_gate", _MLP, (width, hidden), _COLUMN, bias=bias),
        *matrix(path + "proj_up", _MLP, (width, hidden), _COLUMN, bias=bias),
        *matrix(path + "proj_down", _MLP, (hidden, width), _ROW, bias=bias),
    ]
    return Fed(tensors, width)


XLSTM = Family(
    names=Names(embedding="backbone.embeddings", final_norm="backbone.out_norm", mlp="ffn"),
    kinds=_xlstm_kinds, mixers={_OPENING: _xlstm_cell, LINEAR: _xlstm_cell},
    feeds={DENSE: _xlstm_feed}, norms=(), tied=False, reads_tie=False,
)  # fmt: skip

_GRIFFIN = {"recurrent": LINEAR, "attention": SLIDING}


def _griffin_pattern(facts: Facts, layers: int) -> tuple[str, ...]:
    """``block_types`` over and over."""
    named = facts.words("block_types") or ()
    if not named or not set(named) <= set(_GRIFFIN):
        raise facts.bad("block_types", named, tr("a list of recurrent and attention is needed"))
    return tuple(_GRIFFIN[named[i % len(named)]] for i in range(layers))


def _griffin_block(facts: Facts, _family: Family, _kind: str) -> Mixed:
    """A gated linear recurrence after a convolution. Its states lie in the modules themselves."""
    hidden = facts.integer("hidden_size")
    heads, width = facts.integer("num_attention_heads"), facts.integer("lru_width", hidden)
    kernel, part = facts.integer("conv1d_width"), width // heads
    path, cell = "temporal_block.", "temporal_block.rg_lru."
    tensors = [
        *matrix(path + "linear_y", _A, (width, hidden), _COLUMN, bias=True),
        *matrix(path + "linear_x", _A, (width, hidden), _COLUMN, bias=True),
        *matrix(path + "linear_out", _A, (hidden, width), _ROW, bias=True),
        *convolution(path + "conv_1d", width, kernel, bias=True),
        vector(cell + "recurrent_param", _A, width, _COLUMN),
    ]
    for gate in ("input", "recurrent"):
        tensors.append(Tensor(f"{cell}{gate}_gate_weight", _A, (heads, part, part)))
        tensors.append(Tensor(f"{cell}{gate}_gate_bias", _A, (heads, part)))
    state = StateSpec("rg_lru", width, kernel, width, heads, "float32", keeps_kernel=False)
    return Mixed(tensors, state=state)


def _griffin_width(facts: Facts, _kind: str) -> tuple[int, int]:
    heads = facts.integer("num_attention_heads")
    width = facts.integer("head_dim", facts.integer("hidden_size") // heads)
    return width, width


RECURRENT_GEMMA = Family(
    names=Names(attention="temporal_block", mlp="mlp_block", final_norm="model.final_norm"),
    attention=attention.gqa, pattern=_griffin_pattern, reads_layer_types=False,
    mixers={LINEAR: _griffin_block}, head_dim=_griffin_width, q_bias="attention_bias", o_bias=True,
    mlp_bias=True, width=lambda f: f.integer("intermediate_size") // 2,
    norms=("temporal_pre_norm", "channel_pre_norm"),
    window=lambda f, _kind: f.integer("attention_window_size"),
)  # fmt: skip

FAMILIES = {"rwkv": RWKV, "xlstm": XLSTM, "recurrent_gemma": RECURRENT_GEMMA}
