"""Decoders whose config lists heads or widths layer by layer: OpenELM, DeciLM.

Source:
    ``modeling_openelm.py`` beside the published checkpoints, whose totals come out (271,527,168 to
    3,036,647,424); ``configuration_decilm.py`` beside DeciLM-7B.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.architecture.families import attention
from engine.architecture.families.base import Family, Fed, Names
from engine.architecture.families.feed import mlp_tensors
from engine.words import tr

if TYPE_CHECKING:
    from engine.config.facts import Facts


def _listed(facts: Facts, key: str, layers: int) -> tuple[int, ...]:
    """A number for each layer; one number stands for all.

    Raises:
        ConfigError: a list of another length.
    """
    if isinstance(facts.raw(key), int):
        return (facts.integer(key),) * layers
    found = facts.integers(key, low=1) or ()
    if len(found) != layers:
        raise facts.bad(
            key,
            list(found),
            tr("one number for each of the {layers} layers is needed").format(layers=layers),
        )
    return found


def _multipliers(facts: Facts, layers: int) -> list[float]:
    stated = facts.raw("ffn_multipliers")
    if isinstance(stated, int | float) and not isinstance(stated, bool):
        return [float(stated)] * layers
    found = [n for n in facts.items("ffn_multipliers") or () if isinstance(n, int | float)]
    if len(found) != layers or not all(0 < n <= 64 for n in found):
        wanted = tr("one number up to 64 for each of the {layers} layers is needed").format(
            layers=layers
        )
        raise facts.bad("ffn_multipliers", stated, wanted)
    return [float(n) for n in found]


def _divisible(width: float, divisor: int) -> int:
    """``width`` rounded to a multiple, but never down by more than a tenth."""
    rounded = max(divisor, int(width + divisor / 2) // divisor * divisor)
    return rounded + divisor if rounded < 0.9 * width else rounded


def _openelm_kinds(facts: Facts) -> tuple[tuple[str, str], ...]:
    layers = facts.integer("num_hidden_layers")
    queries = _listed(facts, "num_query_heads", layers)
    groups = _listed(facts, "num_kv_heads", layers)
    divisor = facts.integer("ffn_dim_divisor", 256)
    hidden = facts.integer("hidden_size")
    widths = [_divisible(hidden * n, divisor) for n in _multipliers(facts, layers)]
    # What these lists were worked out from is stated beside them.
    facts.settle("qkv_multipliers", "num_gqa_groups", "num_key_value_heads", "num_attention_heads")
    heads = zip(queries, groups, strict=True)
    return tuple((f"{q}/{kv}", str(w)) for (q, kv), w in zip(heads, widths, strict=True))


def _openelm_feed(facts: Facts, family: Family, kind: str) -> Fed:
    return Fed(mlp_tensors(facts, family, int(kind)), int(kind))


def _openelm(facts: Facts) -> Family:
    return OPENELM if facts.flag("share_input_output_layers", default=True) else _UNTIED


OPENELM = Family(
    by_class=_openelm,
    names=Names(
        attention="attn", query="qkv_proj", key="qkv_proj", value="qkv_proj", output="out_proj",
        mlp="ffn", gate="proj_1", down="proj_2", fused="qkv_proj",
        embedding="transformer.token_embeddings", final_norm="transformer.norm",
    ),
    kinds=_openelm_kinds, attention=attention.gqa, feed=_openelm_feed,
    heads=lambda _f, kind: int(kind.partition("/")[0]),
    kv_heads=lambda _f, kind: int(kind.partition("/")[2]),
    qk_norm="head", qk_norm_if="normalize_qk_projections", gated="ffn_with_glu",
    gate_up_fused=True, norms=("attn_norm", "ffn_norm"), tied=True,
)  # fmt: skip


_UNTIED = replace(OPENELM, tied=False)


def _deci_kinds(facts: Facts) -> tuple[tuple[str, str], ...]:
    layers = facts.integer("num_hidden_layers")
    heads = _listed(facts, "num_key_value_heads_per_layer", layers)
    facts.settle("num_key_value_heads")
    return tuple((str(n), "dense") for n in heads)


DECI = Family(
    kinds=_deci_kinds, attention=attention.gqa, kv_heads=lambda _f, kind: int(kind),
    q_bias="attention_bias", o_bias="attention_bias",
)  # fmt: skip

FAMILIES = {"openelm": OPENELM, "deci": DECI}
