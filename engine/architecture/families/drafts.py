"""Draft models that are decoder layers: EAGLE, EAGLE-3, DFlash and DSpark, and MTP blocks.

Their layers are those of a known family; what is theirs is how the target's hidden states come in.

Source:
    SpecForge ``modeling/draft/{llama3_eagle,dflash,dflash2,dspark,dspark_heads}.py``; speculators
    ``models/{eagle,eagle3,dflash}``; vLLM ``model_executor/models/llama_eagle{,3}.py``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.architecture.drafts import is_known
from engine.architecture.families import attention
from engine.architecture.families.base import (
    DENSE,
    FULL,
    SLIDING,
    Family,
    Names,
    matrix,
    norm,
)  # fmt: skip
from engine.architecture.families.dense import LLAMA, QWEN3
from engine.architecture.heads import first_class
from engine.architecture.spec import Direction, Doubt, ModuleClass, Sharding, Subject, Tensor
from engine.config.facts import is_mapping
from engine.units import ceil_div
from engine.words import tr

if TYPE_CHECKING:
    from engine.architecture.families.base import Mixed
    from engine.config.facts import Facts

_WIDE, _WIDE_SLIDING = "wide_attention", "wide_sliding_attention"
_INPUTS = ("q_proj", "k_proj", "v_proj", "q_a_proj", "kv_a_proj_with_mqa")
"""Projections that read the layer's input."""
_OTHER = ModuleClass.OTHER
_WHOLE = Sharding.REPLICATED
_NAMES = Names(embedding="embed_tokens", final_norm="norm")
_AUX = ("eagle_aux_hidden_state_layer_ids", "aux_hidden_state_layer_ids", "target_layer_ids")
_BLOCK_CLASSES = ("DFlashDraftModel", "DFlash2DraftModel", "DSparkDraftModel")
_EAGLE3_KEYS = frozenset({
    "eagle_aux_hidden_state_layer_ids", "use_aux_hidden_state", "norm_before_fc", "fc_norm",
    "norm_before_residual", "norm_output", "use_input_layernorm_in_first_layer",
    "use_last_layernorm",
})  # fmt: skip
_DFLASH_KEYS = frozenset({
    "attention_mode", "block_size", "mask_token_id", "target_layer_ids", "projector_type",
    "markov_rank", "markov_head_type", "enable_confidence_head", "confidence_head_with_markov",
    "confidence_head_alpha", "conv_kernel_size", "conv_group_size", "selector_rank",
    "selector_top_k", "causal", "shift_label", "pure_draft_prefix_len", "output_multiplier",
    "final_logit_softcapping",
})  # fmt: skip
_HARMLESS = (
    "speculators_config", "speculators_model_type", "speculators_version", "block_size",
    "max_anchors", "mask_token_id", "num_target_layers", "embed_requires_grad", "norm_output",
    "norm_before_residual", "has_no_defaults_at_init", "sample_from_anchor", "target_vocab_size",
    "sliding_window_non_causal", "transformer_layer_architecture", "truncated_vocab_size",
    "num_lookahead_tokens", "parallel_drafting", "ptd_token_id", "num_depths", "is_causal",
    "target_model_type", "num_anchors", "base_model_name_or_path", "draft_attn_impl",
)  # fmt: skip


def _own(facts: Facts, key: str) -> Facts:
    """The draft's own section ``key``, empty where there is none."""
    value = facts.raw(key)
    if value is not None and not is_mapping(value):
        raise facts.bad(key, value, tr("an object is needed"))
    return type(facts)(value or {}, path=facts.name(key))


def _sources(facts: Facts, section: str, absent: int) -> int:
    """Layers of the target whose hidden states come in."""
    for place in (facts, _own(facts, section)):
        for key in _AUX:
            found = place.integers(key)
            if found:
                return len(found)
    return absent


def _base(facts: Facts) -> Family:
    """The family of the draft's layers: the class decides, then the keys, then the type."""
    if "Llama" in first_class(facts.stated):
        return LLAMA
    if facts.has("kv_lora_rank"):
        return replace(LLAMA, attention=attention.mla)
    return QWEN3 if facts.model_type.startswith("qwen3") else LLAMA


def _first_is(kinds: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    first = _WIDE_SLIDING if kinds[0] == SLIDING else _WIDE
    return ((first, DENSE), *((kind, DENSE) for kind in kinds[1:]))


def _kinds(facts: Facts) -> tuple[tuple[str, str], ...]:
    """The first layer is of its own kind; windows only where both keys say so."""
    count = facts.integer("num_hidden_layers")
    stated = facts.words("layer_types") or ()
    facts.settle("use_sliding_window", "max_window_layers")
    if len(stated) != count or not facts.count("sliding_window"):
        return _first_is((FULL,) * count)
    return _first_is(tuple(SLIDING if kind == SLIDING else FULL for kind in stated))


def _like_others(facts: Facts, family: Family, kind: str) -> Mixed:
    """The first layer's attention, as that of the others."""
    inner = family.attention or attention.gqa
    return inner(facts, family, SLIDING if kind == _WIDE_SLIDING else FULL)


def _doubled(facts: Facts, family: Family, kind: str) -> Mixed:
    """Attention over the embedding and the hidden state side by side: twice as wide."""
    mixed = _like_others(facts, family, kind)
    hidden = facts.integer("hidden_size")
    tensors = [
        replace(tensor, shape=(tensor.shape[0], 2 * hidden))
        if tensor.linear and tensor.name.split(".")[-2] in _INPUTS
        else tensor
        for tensor in mixed.tensors
    ]
    return replace(mixed, tensors=tensors)


def _tables(facts: Facts) -> list[Tensor]:
    """Where the draft's words are among the target's: 64 bits for each, and one byte back.

    Whole numbers, and no parameters; their shapes are those of as many pairs of bytes.
    """
    vocab = facts.integer("vocab_size")
    words = facts.integer("draft_vocab_size", vocab)
    if words >= vocab:
        return []
    return [
        Tensor("d2t", _OTHER, (words, 4), stored_as="bf16", is_index=True),
        Tensor("t2d", _OTHER, (ceil_div(vocab, 2),), stored_as="bf16", is_index=True),
    ]


def _head(facts: Facts) -> list[Tensor]:
    words = facts.integer("draft_vocab_size", facts.integer("vocab_size"))
    shape = (words, facts.integer("hidden_size"))
    return matrix("lm_head", ModuleClass.LM_HEAD, shape, Sharding.VOCAB)


def _says(facts: Facts, section: str, key: str) -> bool:
    return facts.flag(key) or _own(facts, section).flag(key)


def _eagle3_outer(facts: Facts, _family: Family) -> list[Tensor]:
    hidden = facts.integer("hidden_size")
    own = _own(facts, "eagle_config")
    count = _sources(facts, "eagle_config", 3)
    tensors = [*_head(facts), *_tables(facts)]
    if own.flag("use_aux_hidden_state", default=True):
        width = count * facts.integer("target_hidden_size", hidden)
        tensors += matrix("fc", _OTHER, (hidden, width), _WHOLE)
        if _says(facts, "eagle_config", "norm_before_fc"):
            tensors += norm("input_norm", width)
        if _says(facts, "eagle_config", "fc_norm"):
            tensors += norm("fc_norm", width)
    return tensors


def _hidden_norm(facts: Facts, _family: Family, mixer: str, _feed: str) -> list[Tensor]:
    wide = mixer in (_WIDE, _WIDE_SLIDING)
    return norm("hidden_norm", facts.integer("hidden_size")) if wide else []


def _eagle3(facts: Facts) -> Family:
    base = _base(facts)
    return replace(
        base,
        names=replace(base.names, embedding=_NAMES.embedding, final_norm=_NAMES.final_norm),
        kinds=_kinds,
        mixers={_WIDE: _doubled, _WIDE_SLIDING: _doubled},
        layer_extra=_hidden_norm,
        positions=_eagle3_outer,
        has_head=False,
        tied=False,
        reads_tie=False,
    )


def _eagle3_doubts(facts: Facts) -> list[Doubt]:
    if not is_known(facts.stated):
        reason = tr("this kind of draft is not known: counted as EAGLE-3")
        return [
            Doubt(subject, reason, Direction.EITHER)
            for subject in (Subject.WEIGHTS, Subject.SEQUENCE_STATE)
        ]
    reason = tr(
        "the embeddings may be left to the target, and are counted as stored with the draft"
    )
    found = [Doubt(Subject.WEIGHTS, reason, Direction.UPPER)]
    own = _own(facts, "eagle_config").stated
    strange = [key for key, value in own.items() if value and key not in _EAGLE3_KEYS]
    if strange:
        named = ", ".join(key[:60] for key in strange[:3])
        reason = tr("{named} of eagle_config is not known and was not counted").format(named=named)
        found.append(Doubt(Subject.WEIGHTS, reason, Direction.LOWER))
    return found


def _eagle_outer(facts: Facts, _family: Family) -> list[Tensor]:
    hidden = facts.integer("hidden_size")
    # The first code of EAGLE has a bias unless told otherwise, vLLM has one only where told.
    stated = [facts.raw(key) for key in ("bias", "eagle_fc_bias", "fusion_bias")]
    tensors = matrix("fc", _OTHER, (hidden, 2 * hidden), _WHOLE, bias=False not in stated)
    if facts.flag("add_para_norm") or facts.flag("layernorms"):
        tensors += norm("embedding_layernorm", hidden) + norm("hidden_states_layernorm", hidden)
    return tensors


def _input_norm(facts: Facts, _family: Family, mixer: str, _feed: str) -> list[Tensor]:
    """The first layer reads what the projection made, and has no norm in front unless told."""
    wide = mixer in (_WIDE, _WIDE_SLIDING)
    if wide and not facts.flag("layernorms"):
        return []
    return norm("input_layernorm", facts.integer("hidden_size"))


def _eagle(facts: Facts) -> Family:
    base = _base(facts)
    return replace(
        base,
        names=replace(base.names, embedding=_NAMES.embedding, final_norm=""),
        kinds=_kinds,
        mixers={_WIDE: _like_others, _WIDE_SLIDING: _like_others},
        norms=("post_attention_layernorm",),
        layer_extra=_input_norm,
        positions=_eagle_outer,
        has_head=False,
        tied=False,
        reads_tie=False,
    )


def _eagle_doubts(_facts: Facts) -> list[Doubt]:
    reason = tr(
        "the embeddings and the bias of the projection are counted, which "
        "not every EAGLE draft stores"
    )
    return [Doubt(Subject.WEIGHTS, reason, Direction.UPPER)]


def _is_bare(facts: Facts) -> bool:
    """Whether the format is SpecForge's, which leaves embeddings and head to the target."""
    is_type = facts.model_type.endswith(("_dspark", "_dflash"))
    return not is_type and not facts.has("speculators_model_type")


def _dflash_outer(facts: Facts, _family: Family) -> list[Tensor]:
    hidden, vocab = facts.integer("hidden_size"), facts.integer("vocab_size")
    count = _sources(facts, "dflash_config", facts.integer("num_hidden_layers"))
    width = count * facts.integer("target_hidden_size", hidden)
    tensors = [
        *matrix("fc", _OTHER, (hidden, width), _WHOLE),
        *norm("hidden_norm", hidden),
    ]
    if not _is_bare(facts):
        tensors += [*_head(facts), *_tables(facts)]
    return tensors + _markov(facts, hidden, vocab) + _selector(facts, hidden, vocab)


def _markov(facts: Facts, hidden: int, vocab: int) -> list[Tensor]:
    """DSpark: a low-rank table of what word follows which, and how sure the draft is."""
    places = (facts, _own(facts, "dflash_config"), _own(facts, "dspark_config"))
    rank = max(place.count("markov_rank") for place in places)
    kind = next((k for place in places if (k := place.word("markov_head_type"))), "vanilla")
    tensors: list[Tensor] = []
    if rank:
        for name in ("markov_w1", "markov_w2"):
            tensors.append(Tensor(f"{name}.weight", _OTHER, (vocab, rank)))  # noqa: PERF401
    if rank and kind == "gated":
        tensors += matrix("gate_proj", _OTHER, (rank, hidden + rank), _WHOLE, bias=True)
    if rank and kind == "rnn":
        tensors += matrix("joint_proj", _OTHER, (3 * rank, 2 * rank + hidden), _WHOLE, bias=True)
    if any(place.flag("enable_confidence_head") for place in places):
        alone = any(place.raw("confidence_head_with_markov") is False for place in places)
        columns = hidden if alone else hidden + rank
        tensors += matrix("confidence_head.proj", _OTHER, (1, columns), _WHOLE, bias=True)
    return tensors


def _selector(facts: Facts, hidden: int, vocab: int) -> list[Tensor]:
    """DFlash 2: two low-rank tables that choose among the target's candidates."""
    rank = max(facts.count("selector_rank"), _own(facts, "dflash_config").count("selector_rank"))
    if not rank:
        return []
    return [
        Tensor("candidate_selector.predecessor_codebook", _OTHER, (vocab, rank)),
        Tensor("candidate_selector.successor_codebook", _OTHER, (vocab, rank)),
        *matrix("candidate_selector.hidden_projection", _OTHER, (rank, hidden), _WHOLE),
    ]


def _convolutions(facts: Facts, _family: Family, _mixer: str, _feed: str) -> list[Tensor]:
    """DFlash 2: a grouped convolution around attention and one around the MLP."""
    own = _own(facts, "dflash_config")
    place = own if own.has("conv_kernel_size") else facts
    taps = place.count("conv_kernel_size")
    if not taps:
        return []
    hidden = facts.integer("hidden_size")
    groups = hidden // place.integer("conv_group_size")
    found: list[Tensor] = []
    for name in ("attention_conv", "mlp_conv"):
        found.append(Tensor(f"{name}.base_kernel", _OTHER, (2, taps, hidden)))
        shape = (2 * taps * groups, hidden)
        found += matrix(f"{name}.kernel_projection", _OTHER, shape, _WHOLE)
    return found


def _dflash(facts: Facts) -> Family:
    latent = _own(facts, "dflash_config").word("attention_mode") == "mla"
    return replace(
        QWEN3,
        names=replace(_NAMES, embedding="" if _is_bare(facts) else _NAMES.embedding),
        attention=attention.mla if latent else None,
        layer_extra=_convolutions,
        positions=_dflash_outer,
        has_head=False,
        tied=False,
        reads_tie=False,
    )


def _is_known_block(facts: Facts) -> bool:
    """Whether the class is one whose code is known, and the config has what it reads."""
    if facts.model_type not in ("qwen3", "llama", "dspark", "qwen3_dspark", "qwen3_dflash"):
        return False
    named = first_class(facts.stated) in _BLOCK_CLASSES or facts.has("speculators_model_type")
    return (named or not _is_bare(facts)) and (
        facts.has("num_target_layers") or _sources(facts, "dflash_config", 0) > 0
    )


def _dflash_doubts(facts: Facts) -> list[Doubt]:
    found: list[Doubt] = []
    if not _is_bare(facts):
        reason = tr("embeddings and head may be left to the target, and are counted as stored")
        found.append(Doubt(Subject.WEIGHTS, reason, Direction.UPPER))
    elif facts.integer("draft_vocab_size", facts.integer("vocab_size")) < facts.integer(
        "vocab_size"
    ):
        reason = tr("a draft with words of its own may store a head, which is not counted")
        found.append(Doubt(Subject.WEIGHTS, reason, Direction.LOWER))
    own = _own(facts, "dflash_config")
    strange = [key for key, value in own.stated.items() if value and key not in _DFLASH_KEYS]
    if own.word("attention_mode", "gqa") not in ("gqa", "mha", "mla"):
        strange.append("attention_mode")
    if strange or not _is_known_block(facts):
        what = ", ".join(key[:60] for key in strange[:3]) or tr(
            "a draft of type {model_type}"
        ).format(model_type=facts.model_type)
        reason = tr(
            "{what} is not known: counted as layers of Qwen3 with the usual projection"
        ).format(what=what)
        found += [
            Doubt(subject, reason, Direction.EITHER)
            for subject in (Subject.WEIGHTS, Subject.SEQUENCE_STATE)
        ]
    return found


FAMILIES = {
    "eagle3_draft": Family(
        by_class=_eagle3, doubts=_eagle3_doubts, has_head=False, tied=False, reads_tie=False,
        harmless=(*_HARMLESS, "draft_vocab_size"),
    ),
    "eagle_draft": Family(
        by_class=_eagle, doubts=_eagle_doubts, has_head=False, tied=False, reads_tie=False,
        harmless=_HARMLESS,
    ),
    "dflash_draft": Family(
        by_class=_dflash, doubts=_dflash_doubts, has_head=False, tied=False, reads_tie=False,
        harmless=(*_HARMLESS, "draft_vocab_size"),
    ),
}  # fmt: skip
