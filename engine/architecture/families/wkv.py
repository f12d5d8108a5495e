"""RWKV from its fifth generation on: a matrix a head and the last token's input is all they keep.

Source:
    RWKV/rwkv-5-world-7b, RWKV/rwkv-6-world-1b6 and RWKV/RWKV7-G1j-2.9B (their modelling files and
    published totals), flash-linear-attention's ``rwkv7``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.families.base import (
    DENSE,
    LINEAR,
    Family,
    Fed,
    Mixed,
    Names,
    matrix,
    norm,
    vector,
)
from engine.architecture.spec import (
    Direction,
    Doubt,
    ModuleClass,
    Sharding,
    StateSpec,
    Subject,
    Tensor,
)
from engine.words import tr

if TYPE_CHECKING:
    from engine.config.facts import Facts

_A, _MLP = ModuleClass.ATTENTION, ModuleClass.MLP
_COLUMN, _ROW, _WHOLE = Sharding.COLUMN, Sharding.ROW, Sharding.REPLICATED
_OPENING = "first"
_WIDE = 4_096
"""Hidden size of the one model whose corrections have twice the rank."""


def _opened(facts: Facts) -> tuple[tuple[str, str], ...]:
    """All layers alike but for the first, which has one norm more."""
    layers = facts.integer("num_hidden_layers")
    return ((_OPENING, DENSE),) + ((LINEAR, DENSE),) * (layers - 1)


def _state(hidden: int, wide: int, head: int) -> StateSpec:
    """The inputs of both blocks in the model's dtype, and a matrix a head in fp32."""
    return StateSpec(
        "rwkv", 2 * hidden, 2, wide * head, wide // head, "float32", keeps_kernel=False
    )


def _vectors(path: str, module: ModuleClass, names: tuple[str, ...], width: int) -> list[Tensor]:
    return [vector(path + name, module, width, _WHOLE) for name in names]


def _time(facts: Facts, _family: Family, kind: str) -> Mixed:
    """Time mixing of the fifth and, with corrections of low rank, of the sixth generation."""
    hidden = facts.integer("hidden_size")
    wide = facts.integer("attention_hidden_size", hidden)
    head = facts.integer("head_size", 64)
    facts.settle("head_size_divisor", "num_attention_heads", "rescale_every", "context_length")
    path = "attention."
    tensors = [
        tensor
        for name in ("receptance", "key", "value", "gate")
        for tensor in matrix(path + name, _A, (wide, hidden), _COLUMN)
    ]
    tensors += [
        *matrix(path + "output", _A, (hidden, wide), _ROW),
        *norm(path + "ln_x", hidden, bias=True),
        *_vectors(path, _A, ("time_decay", "time_faaaa"), wide),
    ]
    if facts.model_type == "rwkv5":
        mixed = ("time_mix_key", "time_mix_value", "time_mix_receptance", "time_mix_gate")
        tensors += _vectors(path, _A, mixed, hidden)
    else:
        names = ("x", "w", "k", "v", "r", "g")
        tensors += _vectors(path, _A, tuple(f"time_maa_{name}" for name in names), hidden)
        mix, decay = (64, 128) if hidden == _WIDE else (32, 64)
        tensors += [
            Tensor(path + "time_maa_w1", _A, (hidden, 5 * mix)),
            Tensor(path + "time_maa_w2", _A, (5, mix, hidden)),
            Tensor(path + "time_decay_w1", _A, (hidden, decay)),
            Tensor(path + "time_decay_w2", _A, (decay, wide)),
        ]
    if kind == _OPENING:
        tensors += norm("pre_ln", hidden, bias=True)
    return Mixed(tensors, state=_state(hidden, wide, head))


def _channels(facts: Facts, _family: Family, _kind: str) -> Fed:
    hidden = facts.integer("hidden_size")
    width = facts.integer("intermediate_size", hidden * 7 // 2 // 32 * 32)
    path = "feed_forward."
    tensors = [
        *_vectors(path, _MLP, ("time_mix_key", "time_mix_receptance"), hidden),
        *matrix(path + "key", _MLP, (width, hidden), _COLUMN),
        *matrix(path + "receptance", _MLP, (hidden, hidden), _WHOLE),
        *matrix(path + "value", _MLP, (hidden, width), _ROW),
    ]
    return Fed(tensors, width)


RWKV = Family(
    names=Names(embedding="rwkv.embeddings", final_norm="rwkv.ln_out"), kinds=_opened,
    mixers={_OPENING: _time, LINEAR: _time}, feeds={DENSE: _channels}, gated=False,
    norms=("ln1", "ln2"), norm_bias=True, bare_is_headless=False,
)  # fmt: skip

_RANKS = (("decay", "w_lora"), ("a", "a_lora"), ("v", "v_lora"), ("gate", "g_lora"))


def _rank(facts: Facts, name: str) -> int:
    """A rank as stated, else by the rule that the published models were made with."""
    hidden = facts.integer("hidden_size")
    usual = {"decay": 1.8 * hidden**0.5, "a": 1.8 * hidden**0.5, "v": 1.3 * hidden**0.5}
    wanted = usual.get(name, 0.6 * hidden**0.8)
    return facts.integer(f"{name}_low_rank_dim", max(32, round(wanted / 32) * 32))


def _seventh(facts: Facts, _family: Family, kind: str) -> Mixed:
    hidden = facts.integer("hidden_size")
    head = facts.integer("head_dim", facts.integer("head_size", 64))
    facts.settle("num_heads", "num_attention_heads", "value_dim", "hidden_ratio", "norm_first")
    path = "attn."
    tensors = [
        tensor
        for name in ("r_proj", "k_proj", "v_proj")
        for tensor in matrix(path + name, _A, (hidden, hidden), _COLUMN)
    ]
    tensors += [
        *matrix(path + "o_proj", _A, (hidden, hidden), _ROW),
        *norm(path + "g_norm", hidden, bias=True),
        *_vectors(path, _A, ("x_r", "x_w", "x_k", "x_v", "x_a", "x_g"), hidden),
        *_vectors(path, _A, ("k_k", "k_a", "r_k"), hidden),
    ]
    for key, name in _RANKS:
        rank = _rank(facts, key)
        tensors += matrix(f"{path}{name}.0", _A, (rank, hidden), _WHOLE)
        tensors += matrix(f"{path}{name}.2", _A, (hidden, rank), _COLUMN, bias=key != "gate")
    if kind == _OPENING:
        tensors += norm("pre_norm", hidden, bias=facts.flag("norm_bias", default=True))
    return Mixed(tensors, state=_state(hidden, hidden, head))


def _seventh_feed(facts: Facts, _family: Family, _kind: str) -> Fed:
    hidden = facts.integer("hidden_size")
    width = facts.integer("intermediate_size", 4 * hidden)
    tensors = [
        vector("ffn.x_k", _MLP, hidden, _WHOLE),
        *matrix("ffn.key", _MLP, (width, hidden), _COLUMN),
        *matrix("ffn.value", _MLP, (hidden, width), _ROW),
    ]
    return Fed(tensors, width)


def _seventh_doubts(facts: Facts) -> list[Doubt]:
    if not all(facts.has(f"{key}_low_rank_dim") for key, _name in _RANKS):
        reason = tr("the ranks of its corrections are not stated: counted by the published models'")
        return [Doubt(Subject.WEIGHTS, reason, Direction.EITHER)]
    reason = tr("its first layer's correction of values, which some files leave out, is counted")
    return [Doubt(Subject.WEIGHTS, reason, Direction.UPPER)]


RWKV7 = Family(
    names=Names(embedding="model.embeddings", final_norm="model.norm"), kinds=_opened,
    mixers={_OPENING: _seventh, LINEAR: _seventh}, feeds={DENSE: _seventh_feed}, gated=False,
    norms=("attn_norm", "ffn_norm"), norm_bias=True, doubts=_seventh_doubts,
)  # fmt: skip

FAMILIES = {"rwkv5": RWKV, "rwkv6": RWKV, "rwkv7": RWKV7}
