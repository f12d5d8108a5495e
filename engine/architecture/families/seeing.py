"""Decoders made for one multimodal model each: GIT, BLIP, Chameleon, IDEFICS and Evolla.

Source:
    transformers 5.24.0, the modelling file of each type.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.architecture.families import attention
from engine.architecture.families.base import (
    FULL,
    Family,
    Mixed,
    matrix,
    norm,
    state_doubt,
)
from engine.architecture.families.classic import own_heads
from engine.architecture.families.crossed import whole_heads
from engine.architecture.families.masked import BERT
from engine.architecture.spec import AttentionKind, Direction, ModuleClass, Sharding, Tensor
from engine.architecture.towers.parts import grid
from engine.words import tr

if TYPE_CHECKING:
    from engine.architecture.spec import Doubt
    from engine.config.facts import Facts

_A, _MLP, _E, _HEAD = (
    ModuleClass.ATTENTION,
    ModuleClass.MLP,
    ModuleClass.EMBEDDING,
    ModuleClass.LM_HEAD,
)
_COLUMN, _ROW, _WHOLE = Sharding.COLUMN, Sharding.ROW, Sharding.REPLICATED


def _tables(facts: Facts, _family: Family) -> list[Tensor]:
    hidden, rows = facts.integer("hidden_size"), facts.integer("max_position_embeddings")
    table = Tensor("embeddings.position_embeddings.weight", _E, (rows, hidden))
    return [table, *norm("embeddings.LayerNorm", hidden, bias=True)]


def _blip_outside(facts: Facts, family: Family) -> list[Tensor]:
    """BERT's tables, and what comes before the head's matrix."""
    hidden = facts.integer("hidden_size")
    dense = matrix("cls.predictions.transform.dense", _HEAD, (hidden, hidden), _WHOLE, bias=True)
    last = norm("cls.predictions.transform.LayerNorm", hidden, bias=True)
    return [*_tables(facts, family), *dense, *last]


def _blip(facts: Facts, family: Family, kind: str) -> Mixed:
    """Self-attention and, in the decoder, attention to the patches of one image."""
    mixed = attention.gqa(facts, replace(family, attention=None), kind)
    own = mixed.attention
    if own is None or not facts.flag("is_decoder"):
        return mixed
    seen, tokens = _blip_sees(facts)
    hidden, path = facts.integer("hidden_size"), "crossattention."
    crossing = [
        *matrix(f"{path}self.query", _A, (hidden, hidden), _COLUMN, bias=True),
        *matrix(f"{path}self.key", _A, (hidden, seen), _COLUMN, bias=True),
        *matrix(f"{path}self.value", _A, (hidden, seen), _COLUMN, bias=True),
        *matrix(f"{path}output.dense", _A, (hidden, hidden), _ROW, bias=True),
        *norm(f"{path}output.LayerNorm", hidden, bias=True),
    ]
    cross = replace(own, kind=AttentionKind.CROSS, window=tokens)
    return Mixed([*mixed.tensors, *crossing], own, cross=cross)


def _blip_sees(facts: Facts) -> tuple[int, int]:
    """Width and number of the tokens of an image; the root's, where there is one.

    0 tokens where nothing says: as many as the input has.
    """
    root = facts.above
    if root is None:
        return facts.integer("encoder_hidden_size"), 0
    vision = root.sub("vision_config") or root.empty("vision_config")
    return vision.integer("hidden_size"), grid(vision) + 1


def _blip_doubts(facts: Facts) -> list[Doubt]:
    if facts.above is not None or not facts.flag("is_decoder"):
        return []
    reason = tr("its cross-attention keeps what the image yields: counted as long as the answer")
    return state_doubt(reason, Direction.EITHER)


GIT = Family(
    names=BERT.names, q_bias=True, o_bias=True, mlp_bias=True, gated=False, norms=BERT.norms,
    norm_bias=True, head_bias=True, head_dim=whole_heads, kv_heads=own_heads,
    positions=_tables,
)  # fmt: skip
BLIP = replace(GIT, attention=_blip, positions=_blip_outside, doubts=_blip_doubts)

_BIAS = "attention_bias"


def _image_words(facts: Facts, _family: Family) -> list[Tensor]:
    """None: which words stand for pieces of an image changes no weight."""
    facts.settle("vocabulary_map")
    return []


CHAMELEON = Family(
    q_bias=_BIAS, o_bias=_BIAS, mlp_bias="mlp_bias", qk_norm="full", qk_norm_bias=True,
    head_dim=whole_heads, positions=_image_words,
)  # fmt: skip

_GATED = "with cross-attention to the image"


def _idefics_pattern(facts: Facts, layers: int) -> tuple[str, ...]:
    every = facts.integer("cross_layer_interval")
    crossing = {every * index for index in range(layers // every)}
    return tuple(_GATED if index in crossing else FULL for index in range(layers))


def _gated_crossing(facts: Facts, family: Family, mixer: str, _feed: str) -> list[Tensor]:
    """A whole layer more that looks at the image, and the gates by which it is let in."""
    del family
    if mixer != _GATED:
        return []
    hidden, width = facts.integer("hidden_size"), facts.integer("intermediate_size")
    vision = facts.sub("vision_config") or facts.empty("vision_config")
    seen, path = vision.integer("hidden_size"), "gated_cross_attn."
    gate = hidden if facts.word("alpha_type", "float") == "vector" else 1
    found = [
        *matrix(f"{path}cross_attn.q_proj", _A, (hidden, hidden), _COLUMN),
        *matrix(f"{path}cross_attn.k_proj", _A, (hidden, seen), _COLUMN),
        *matrix(f"{path}cross_attn.v_proj", _A, (hidden, seen), _COLUMN),
        *matrix(f"{path}cross_attn.o_proj", _A, (hidden, hidden), _ROW),
        *matrix(f"{path}mlp.gate_proj", _MLP, (width, hidden), _COLUMN),
        *matrix(f"{path}mlp.up_proj", _MLP, (width, hidden), _COLUMN),
        *matrix(f"{path}mlp.down_proj", _MLP, (hidden, width), _ROW),
        *norm(f"{path}input_layernorm", hidden),
        *norm(f"{path}post_attention_layernorm", hidden),
        Tensor(f"{path}alpha_cross_attn", _A, (gate,)),
        Tensor(f"{path}alpha_dense", _MLP, (gate,)),
    ]
    if facts.flag("qk_layer_norms"):
        head = hidden // facts.integer("num_attention_heads")
        found += [*norm(f"{path}q_layer_norm", head), *norm(f"{path}k_layer_norm", head)]
    return found


def _additional(facts: Facts, _family: Family) -> list[Tensor]:
    """Rows of embedding and head that are stored apart from the vocabulary's."""
    rows, hidden = facts.count("additional_vocab_size"), facts.integer("hidden_size")
    if not rows:
        return []
    found = [Tensor("model.embed_tokens.additional_embedding.weight", _E, (rows, hidden))]
    if not facts.flag("tie_word_embeddings"):
        found += matrix("lm_head.additional_fc", _HEAD, (rows, hidden), Sharding.VOCAB)
    return found


IDEFICS = Family(
    head_dim=whole_heads, kv_heads=own_heads, pattern=_idefics_pattern, reads_layer_types=False,
    mixers={_GATED: attention.gqa}, layer_extra=_gated_crossing, positions=_additional,
)  # fmt: skip

_ADAPTED = "with an adapter to the protein"


def _evolla_pattern(facts: Facts, layers: int) -> tuple[str, ...]:
    every = max(layers // facts.integer("aligner_num_add_layers"), 1)
    return tuple(FULL if (index + 1) % every else _ADAPTED for index in range(layers))


def _adapter(facts: Facts, family: Family, mixer: str, _feed: str) -> list[Tensor]:
    del family
    if mixer != _ADAPTED:
        return []
    hidden, path = facts.integer("hidden_size"), "adapter."
    inner = hidden * facts.integer("aligner_ffn_mult")
    bias = facts.flag("aligner_enable_bias")
    heads = facts.integer("num_attention_heads")
    rows = hidden // heads * heads
    found: list[Tensor] = []
    for name in ("query", "key_protein", "value_protein"):
        found += matrix(path + name, _A, (rows, hidden), _COLUMN, bias=True)
    return [
        *found,
        *matrix(f"{path}out_proj", _A, (hidden, hidden), _ROW, bias=bias),
        *norm(f"{path}attention_norm", hidden),
        *norm(f"{path}ff.norm", hidden, bias=True),
        *matrix(f"{path}ff.fc1", _MLP, (inner, hidden), _COLUMN),
        *matrix(f"{path}ff.fc2", _MLP, (hidden, inner), _ROW),
        Tensor(f"{path}gate_attention", _A, (1,)),
        Tensor(f"{path}gate_ffw", _MLP, (1,)),
    ]


EVOLLA = Family(
    q_bias=_BIAS, o_bias=_BIAS, mlp_bias="mlp_bias", pattern=_evolla_pattern,
    reads_layer_types=False, mixers={_ADAPTED: attention.gqa}, layer_extra=_adapter,
    reads_tie=False,
)  # fmt: skip

FAMILIES = {
    "blip_text_model": BLIP, "chameleon": CHAMELEON, "evolla": EVOLLA, "git": GIT,
    "idefics": IDEFICS,
}  # fmt: skip
