"""The byte latent transformer: its local decoder, the model that yields the bytes.

Source:
    transformers 5.24.0, ``blt/modeling_blt.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.families import attention
from engine.architecture.families.base import (
    DENSE,
    FULL,
    Family,
    Mixed,
    Names,
    matrix,
    norm,
    state_doubt,
)
from engine.architecture.spec import Direction, ModuleClass, Sharding
from engine.words import tr

if TYPE_CHECKING:
    from engine.architecture.spec import Doubt, Tensor
    from engine.config.facts import Facts

_A = ModuleClass.ATTENTION
_CROSSING = "with cross-attention to the patches"


def crossing(facts: Facts, path: str) -> list[Tensor]:
    """The cross-attention of one layer between bytes and patches."""
    hidden = facts.integer("hidden_size")
    heads, width = facts.integer("num_attention_heads"), head_widths(facts, FULL)[0]
    rows, kv_rows = heads * width, facts.integer("num_key_value_heads", heads) * width
    return [
        *matrix(path + "q_proj", _A, (rows, hidden), Sharding.COLUMN),
        *matrix(path + "k_proj", _A, (kv_rows, hidden), Sharding.KV_HEADS),
        *matrix(path + "v_proj", _A, (kv_rows, hidden), Sharding.KV_HEADS),
        *matrix(path + "o_proj", _A, (hidden, rows), Sharding.ROW),
        *norm(path + "q_norm", hidden),
        *norm(path + "k_norm", hidden),
    ]


def width_of(facts: Facts) -> int:
    """Width of an MLP: as stated, else eight thirds of the hidden size."""
    return facts.count("intermediate_size") or 8 * facts.integer("hidden_size") // 3


def head_widths(facts: Facts, _kind: str) -> tuple[int, int]:
    """The hidden size shared out, whatever the config states."""
    heads = facts.integer("num_attention_heads")
    width = facts.integer("hidden_size") // heads
    facts.settle("head_dim")
    return width, width


def _kinds(facts: Facts) -> tuple[tuple[str, str], ...]:
    layers = facts.integer("num_hidden_layers")
    every = facts.flag("cross_attn_all_layers", default=True)
    return tuple((_CROSSING if every or not i else FULL, DENSE) for i in range(layers))


def _crossing(facts: Facts, family: Family, _kind: str) -> Mixed:
    mixed = attention.gqa(facts, family, FULL)
    return Mixed([*mixed.tensors, *crossing(facts, "cross_attn.")], mixed.attention)


def _patches(facts: Facts, _family: Family) -> list[Tensor]:
    shape = (
        facts.integer("hidden_size") * facts.integer("cross_attn_k"),
        facts.integer("hidden_size_global"),
    )
    other = ModuleClass.OTHER
    return matrix("model.patch_embedding_projection", other, shape, Sharding.REPLICATED)


def _doubts(_facts: Facts) -> list[Doubt]:
    reason = tr("the few layers of its local encoder keep keys and values too: not counted")
    return state_doubt(reason, Direction.LOWER)


LOCAL_DECODER = Family(
    names=Names(embedding=""), kinds=_kinds, mixers={_CROSSING: _crossing}, head_dim=head_widths,
    width=width_of, positions=_patches, has_head=False, tied=False, reads_tie=False,
    doubts=_doubts,
)  # fmt: skip

FAMILIES = {"blt_local_decoder": LOCAL_DECODER}
