"""Nemotron-NAS (DeciLM): a search chose for each layer its key/value heads and its MLP's width.

Either block of a layer may be a single matrix, or be missing together with its norm.

Source:
    ``modeling_decilm.py`` beside the published checkpoints; the total of
    Llama-3.3-Nemotron-Super-49B, 49,867,145,216, comes out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.families import attention
from engine.architecture.families.base import NONE, Family, Fed, Mixed, matrix, norm
from engine.architecture.families.feed import mlp_tensors
from engine.architecture.spec import ModuleClass, Sharding
from engine.config.facts import Facts, is_mapping
from engine.words import tr

if TYPE_CHECKING:
    from engine.architecture.spec import Tensor

_MATRIX = "one matrix"
_MULTIPLE = 256


def _block(facts: Facts, index: int, entry: object, part: str) -> Facts:
    found = entry.get(part) if is_mapping(entry) else None
    if not is_mapping(found):
        raise facts.bad(f"block_configs[{index}].{part}", found, tr("an object is needed"))
    return Facts(found, path=facts.name(f"block_configs[{index}].{part}"))


def _kind(block: Facts, key: str) -> str:
    if block.flag("no_op"):
        return NONE
    if block.flag("replace_with_linear"):
        return _MATRIX
    value = block.raw(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _MULTIPLE:
        raise block.bad(
            key, value, tr("a number below {multiple} is needed").format(multiple=_MULTIPLE)
        )
    return str(value)


def _kinds(facts: Facts) -> tuple[tuple[str, str], ...]:
    layers = facts.integer("num_hidden_layers")
    entries = facts.items("block_configs") or ()
    if len(entries) != layers:
        wanted = tr("one entry for each of the {layers} layers is needed").format(layers=layers)
        raise facts.bad("block_configs", entries, wanted)
    return tuple(
        (
            _kind(_block(facts, i, entry, "attention"), "n_heads_in_group"),
            _kind(_block(facts, i, entry, "ffn"), "ffn_mult"),
        )
        for i, entry in enumerate(entries)
    )


def _kv_heads(facts: Facts, kind: str) -> int:
    return max(facts.integer("num_attention_heads") // int(float(kind)), 1)


def _square(facts: Facts, name: str, module: ModuleClass) -> list[Tensor]:
    hidden = facts.integer("hidden_size")
    return matrix(name, module, (hidden, hidden), Sharding.REPLICATED)


def _one_matrix(facts: Facts, _family: Family, _kind: str) -> Mixed:
    return Mixed(_square(facts, "self_attn.linear_attn", ModuleClass.ATTENTION))


def _attention(facts: Facts, family: Family, kind: str) -> Mixed:
    if float(kind) < 1:
        raise facts.bad("block_configs", kind, tr("at least one head in a group is needed"))
    mixed = attention.gqa(facts, family, kind)
    facts.settle("num_key_value_heads")
    return mixed


def _feed(facts: Facts, family: Family, kind: str) -> Fed:
    if kind == _MATRIX:
        return Fed(_square(facts, "mlp.linear_mlp", ModuleClass.MLP))
    hidden = facts.integer("hidden_size")
    width = int(2 * float(kind) * hidden / 3)
    width += -width % _MULTIPLE
    return Fed(mlp_tensors(facts, family, width), width)


def _norms(facts: Facts, _family: Family, mixer: str, feed: str) -> list[Tensor]:
    hidden = facts.integer("hidden_size")
    before = norm("input_layernorm", hidden) if mixer != NONE else []
    return before + (norm("post_attention_layernorm", hidden) if feed != NONE else [])


NEMOTRON_NAS = Family(
    kinds=_kinds, mixers={_MATRIX: _one_matrix}, attention=_attention, feed=_feed, norms=(),
    kv_heads=_kv_heads, layer_extra=_norms, q_bias="attention_bias", o_bias="attention_bias",
    mlp_bias="mlp_bias",
)  # fmt: skip

FAMILIES = {"nemotron-nas": NEMOTRON_NAS}
