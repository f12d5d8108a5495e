"""Further decoders with code of their own, whose layers or keys are unlike any other type's.

Source:
    The modelling files of the repositories and of vLLM; ``tests/truth/test_published_types.py``
    holds the published total of each.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.architecture.families import attention, patterns
from engine.architecture.families.base import (
    DENSE,
    FULL,
    LINEAR,
    SPARSE,
    Family,
    Mixed,
    Moe,
    Names,
    matrix,
    norm,
    state_doubt,
    vector,
)
from engine.architecture.families.classic import CHATGLM as CHATGLM_TWO
from engine.architecture.families.classic import GPT2, four_times_hidden, own_heads
from engine.architecture.families.crossed import whole_heads
from engine.architecture.families.dense import LLAMA
from engine.architecture.families.published import diffuses, tie_unsaid
from engine.architecture.families.sparse import BAILING_MOE
from engine.architecture.spec import (
    AttentionKind,
    AttentionSpec,
    Direction,
    ModuleClass,
    Sharding,
    StateSpec,
)
from engine.words import tr

if TYPE_CHECKING:
    from engine.architecture.spec import Doubt, Tensor
    from engine.config.facts import Facts

_A, _COLUMN, _ROW, _WHOLE = (
    ModuleClass.ATTENTION, Sharding.COLUMN, Sharding.ROW, Sharding.REPLICATED,
)  # fmt: skip


def _refact_width(facts: Facts) -> int:
    """Two thirds of the stated width, rounded up to a multiple of 256."""
    return -(-int(2 * four_times_hidden(facts) / 3) // 256) * 256


def _one(_facts: Facts, _kind: str) -> int:
    return 1


REFACT = Family(
    names=Names(
        attention="attn", query="q", key="kv", value="kv", output="c_proj", gate="gate_up_proj",
        down="c_proj", embedding="transformer.wte", final_norm="transformer.ln_f",
    ),
    kv_heads=_one, gate_up_fused=True, norms=("ln_1", "ln_2"), width=_refact_width,
    doubts=tie_unsaid, harmless=("n_positions", "multi_query"),
)  # fmt: skip


def _queried(facts: Facts, _kind: str) -> int:
    heads = facts.integer("num_attention_heads")
    if not facts.flag("group_query_attention", default=True):
        return heads
    return facts.integer("num_query_groups", heads)


CODESHELL = replace(
    GPT2, names=GPT2.names, attention=None, kv_heads=_queried, positions=None, tied=False,
    doubts=tie_unsaid,
)  # fmt: skip


def _pico_heads(facts: Facts, _kind: str) -> int:
    return facts.integer("attention_n_heads")


def _pico_kv(facts: Facts, kind: str) -> int:
    return facts.integer("attention_n_kv_heads", _pico_heads(facts, kind))


def _pico_widths(facts: Facts, kind: str) -> tuple[int, int]:
    width = facts.integer("hidden_size") // _pico_heads(facts, kind)
    return width, width


def _pico_width(facts: Facts) -> int:
    return facts.integer("activation_hidden_dim")


PICO = Family(
    heads=_pico_heads, kv_heads=_pico_kv, head_dim=_pico_widths, width=_pico_width,
    bare_is_headless=False, harmless=("batch_size", "max_seq_len"),
    names=Names(
        attention="attention", mlp="swiglu", gate="w_0", up="w_1", down="w_2",
        embedding="embedding_proj", final_norm="output_norm",
    ),
)  # fmt: skip

_GROK_MOE = Moe(
    width="intermediate_size", container="moe_block.experts", router="moe_block.gate",
    names=("linear", "linear_v", "linear_1"),
)  # fmt: skip
GROK = Family(
    names=Names(attention="attn"), feed_pattern=patterns.all_sparse, moe=_GROK_MOE,
    norms=("pre_attn_norm", "post_attn_norm", "pre_moe_norm", "post_moe_norm"), doubts=tie_unsaid,
)  # fmt: skip


def _step3(facts: Facts, _family: Family, _kind: str) -> Mixed:
    """All queries are made of one narrow vector, all heads share one key and value."""
    hidden, heads = facts.integer("hidden_size"), facts.integer("num_attention_heads")
    width = facts.integer("head_dim", 256)
    narrow = facts.integer("share_q_dim", width)
    facts.settle("num_attention_groups", "num_key_value_heads")
    path = "self_attn."
    tensors = [
        *matrix(path + "q_proj", _A, (narrow, hidden), _WHOLE),
        *matrix(path + "k_proj", _A, (width, hidden), _WHOLE),
        *matrix(path + "v_proj", _A, (width, hidden), _WHOLE),
        *norm(path + "inter_norm", narrow),
        *matrix(path + "wq", _A, (heads * width, narrow), _COLUMN),
        *matrix(path + "o_proj", _A, (hidden, heads * width), _ROW),
    ]
    return Mixed(tensors, AttentionSpec(AttentionKind.FULL, heads, 1, width, width, 0))


def _step3_feeds(facts: Facts, layers: int) -> tuple[str, ...]:
    """The sparse layers are listed in a text; without one it is all but the first."""
    listed = facts.word("moe_layers_enum")
    if not listed.strip():
        return (DENSE, *((SPARSE,) * (layers - 1)))
    if not all(part.strip().isdigit() for part in listed.split(",")):
        raise facts.bad("moe_layers_enum", listed, tr("numbers of layers, with commas, are needed"))
    sparse = {int(part) for part in listed.split(",")}
    return tuple(SPARSE if index in sparse else DENSE for index in range(layers))


def _share_expert(facts: Facts) -> int:
    return facts.integer("share_expert_dim", facts.integer("moe_intermediate_size"))


STEP3 = Family(
    attention=_step3, feed_pattern=_step3_feeds,
    moe=Moe(
        experts="moe_num_experts", active="moe_top_k", container="moe.experts", router="moe.gate",
        shared="share_expert", shared_width=_share_expert,
    ),
)  # fmt: skip


def _loop_gates(facts: Facts, _family: Family, _mixer: str, _feed: str) -> list[Tensor]:
    """A gate for each head between what the first pass keeps and what later ones do."""
    heads = facts.integer("num_attention_heads")
    width = facts.integer("head_dim", facts.integer("hidden_size") // heads)
    return matrix("gate_projections", _A, (heads, width), _COLUMN, bias=True)


def _twice(facts: Facts, family: Family, kind: str) -> Mixed:
    mixed = attention.gqa(facts, replace(family, attention=None), kind)
    assert mixed.attention is not None  # noqa: S101 - gqa always has one
    loops = facts.integer("loop_num", 2)
    return replace(mixed, attention=replace(mixed.attention, caches=loops))


def _loop_window(facts: Facts) -> list[Doubt]:
    if not facts.count("loop_window_size"):
        return []
    return state_doubt(tr("passes after the first keep a window of tokens: counted in full"))


IQUEST_LOOP = replace(LLAMA, attention=_twice, layer_extra=_loop_gates, doubts=_loop_window)
LLADA2 = replace(BAILING_MOE, bare_is_headless=False, doubts=diffuses)


def _sala_pattern(facts: Facts, layers: int) -> tuple[str, ...]:
    kinds = facts.words("mixer_types")
    if kinds is None or len(kinds) != layers:
        wanted = tr("one entry for each of the {layers} layers is needed").format(layers=layers)
        raise facts.bad("mixer_types", kinds, wanted)
    return tuple(FULL if kind == "minicpm4" else LINEAR for kind in kinds)


def _gated(facts: Facts, family: Family, kind: str) -> Mixed:
    """Attention whose output a gate scales."""
    mixed = attention.gqa(facts, replace(family, attention=None), kind)
    if facts.flag("attn_use_output_gate"):
        assert mixed.attention is not None  # noqa: S101 - gqa always has one
        rows = mixed.attention.num_attention_heads * mixed.attention.head_dim
        gate = matrix("self_attn.o_gate", _A, (rows, facts.integer("hidden_size")), _COLUMN)
        mixed = replace(mixed, tensors=[*mixed.tensors, *gate])
    return mixed


def _lightning(facts: Facts, _family: Family, _kind: str) -> Mixed:
    """Lightning attention: one matrix a head is all that it keeps."""
    hidden = facts.integer("hidden_size")
    heads = facts.integer("lightning_nh", facts.integer("num_attention_heads"))
    kv_heads = facts.integer("lightning_nkv", heads)
    width = facts.integer("lightning_head_dim", hidden // heads)
    rows, path = heads * width, "self_attn."
    tensors = [
        *matrix(path + "q_proj", _A, (rows, hidden), _COLUMN),
        *matrix(path + "k_proj", _A, (kv_heads * width, hidden), _COLUMN),
        *matrix(path + "v_proj", _A, (kv_heads * width, hidden), _COLUMN),
        *matrix(path + "o_proj", _A, (hidden, rows), _ROW),
    ]
    if facts.flag("qk_norm", default=True):
        tensors += [*norm(path + "q_norm", width), *norm(path + "k_norm", width)]
    if facts.flag("use_output_norm", default=True):
        tensors += norm(path + "o_norm", rows)
    if facts.flag("use_output_gate", default=True):
        tensors += matrix(path + "z_proj", _A, (rows, hidden), _COLUMN)
    state = StateSpec("lightning", 0, 0, rows * width, heads, "float32")
    return Mixed(tensors, state=state)


def _compresses(facts: Facts) -> list[Doubt]:
    facts.settle("sparse_config")
    return state_doubt(
        tr("its sparse layers keep compressed keys beside, which are not counted"), Direction.LOWER
    )


SALA = Family(
    attention=_gated, pattern=_sala_pattern, mixers={LINEAR: _lightning}, reads_layer_types=False,
    q_bias="attention_bias", o_bias="attention_bias", doubts=_compresses,
)  # fmt: skip


_RECURRENT = "recurrent block"


def _raven_kinds(facts: Facts) -> tuple[tuple[str, str], ...]:
    """Layers that run once, those that run over and over, and layers that run once again."""
    first, last = facts.integer("n_layers_in_prelude"), facts.integer("n_layers_in_coda")
    inner = facts.integer("n_layers_in_recurrent_block")
    facts.settle("n_layers", "effective_expected_depth")
    facts.checked("num_hidden_layers", first + inner + last, 1)
    once = (FULL, DENSE)
    return (*((once,) * first), *(((_RECURRENT, DENSE),) * inner), *((once,) * last))


def _raven(facts: Facts, family: Family, kind: str) -> Mixed:
    """Attention with a bias of queries and of keys; a cache for each of the mean's passes."""
    mixed = attention.gqa(facts, replace(family, attention=None, mixers={}), FULL)
    spec = mixed.attention
    assert spec is not None  # noqa: S101 - gqa always has one
    tensors = mixed.tensors
    if facts.flag("qk_bias"):
        width = facts.integer("hidden_size")
        tensors = [*tensors, *(vector(f"attn.qk_bias.{i}", _A, width, _COLUMN) for i in range(2))]
    caches = facts.integer("mean_recurrence") if kind == _RECURRENT else 1
    return Mixed(tensors, replace(spec, caches=caches))


def _adapter(facts: Facts, _family: Family) -> list[Tensor]:
    hidden, kind = facts.integer("hidden_size"), facts.word("injection_type", "linear")
    if kind not in ("linear", "ffn"):
        return []
    return matrix("transformer.adapter", ModuleClass.OTHER, (hidden, 2 * hidden), _WHOLE)


def _raven_form(facts: Facts) -> Family:
    tied = facts.flag("tie_embeddings", default=True)
    vocab = facts.integer("vocab_size")
    more = facts.integer("padded_vocab_size", vocab) - vocab
    return replace(
        RAVEN_LAYERS, tied=tied, reads_tie=False, embedding_extra=more,
        head_rows="padded_vocab_size",
    )  # fmt: skip


def _raven_doubts(facts: Facts) -> list[Doubt]:
    facts.settle("block_size", "mean_backprop_depth", "architecture_class_name", "state_init")
    for key, known in (("block_class_name", "SandwichBlock"), ("mlp_class_name", "GatedMLP")):
        if facts.stated.get(key) == known:
            facts.settle(key)
    return state_doubt(
        tr("it may run any number of passes: counted for as many as its mean"), Direction.EITHER
    )


RAVEN_LAYERS = Family(
    names=Names(
        attention="attn", fused="Wqkv", output="proj", gate="fc", down="proj",
        embedding="transformer.wte", final_norm="transformer.ln_f",
    ),
    kinds=_raven_kinds, attention=_raven, mixers={_RECURRENT: _raven}, gate_up_fused=True,
    norms=("norm_1", "norm_2", "norm_3", "norm_4"), positions=_adapter,
)  # fmt: skip
RAVEN = Family(by_class=_raven_form, doubts=_raven_doubts)


def _inner(facts: Facts) -> int:
    return facts.integer("inner_hidden_size", 4 * facts.integer("hidden_size"))


CHATGLM_ONE = Family(
    names=Names(
        attention="attention", fused="query_key_value", output="dense", up="dense_h_to_4h",
        down="dense_4h_to_h", embedding="transformer.word_embeddings",
        final_norm="transformer.final_layernorm",
    ),
    kv_heads=own_heads, head_dim=whole_heads, q_bias=True, o_bias=True, mlp_bias=True, gated=False,
    norm_bias=True, width=_inner, bare_is_headless=False, tied=True,
)  # fmt: skip


def _generation(facts: Facts) -> Family:
    """The first ChatGLM names the width of its MLP in its own way."""
    if not facts.stated.get("quantization_bit"):
        facts.settle("quantization_bit")
    return CHATGLM_ONE if "inner_hidden_size" in facts.stated else CHATGLM_TWO


CHATGLM = replace(
    CHATGLM_TWO, by_class=_generation,
    harmless=(
        *CHATGLM_TWO.harmless, "max_sequence_length", "position_encoding_2d", "prefix_projection",
    ),
)  # fmt: skip

FAMILIES = {
    "chatglm": CHATGLM, "codeshell": CODESHELL, "gpt_refact": REFACT, "grok-1": GROK,
    "huginn_raven": RAVEN,
    "iquestloopcoder": IQUEST_LOOP, "llada2_moe": LLADA2, "minicpm_sala": SALA,
    "pico_decoder": PICO, "step3_text": STEP3,
}  # fmt: skip
