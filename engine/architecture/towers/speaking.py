"""CSM: a Llama over text and codes of sound, a small one behind it for the further codes.

Source:
    transformers 5.24.0, ``csm/modeling_csm.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.spec import ModuleClass, Sharding, Tensor
from engine.architecture.towers.audio import audio_of
from engine.architecture.towers.codecs import CODECS
from engine.architecture.towers.parts import Encoder, Tower
from engine.architecture.towers.registry import UnknownTowerError

if TYPE_CHECKING:
    from engine.config.facts import Facts


def _csm(root: Facts, text: Facts) -> list[Tensor]:
    """Tables for text and codes in place of one, a head over one code, a depth decoder, a codec."""
    hidden, codes = text.integer("hidden_size"), text.integer("vocab_size")
    depth = audio_of(root, "depth_decoder_config")
    own, deep = (codes * text.integer("num_codebooks"), hidden), _table(depth)
    tied = text.flag("tie_codebooks_embeddings")
    embedding, vocabulary = ModuleClass.EMBEDDING, Sharding.VOCAB
    tables = [
        # Where it is tied, the depth decoder's table is the one that both have.
        Tensor("model.embed_tokens.weight", embedding, deep if tied else own, 1, vocabulary),
        Tensor(
            "embed_text_tokens.weight",
            embedding,
            (text.integer("text_vocab_size"), hidden),
            1,
            vocabulary,
        ),
        # Never tied: what ``tie_codebooks_embeddings`` ties is the depth decoder's table.
        Tensor("lm_head.weight", ModuleClass.LM_HEAD, (codes, hidden), 1, vocabulary, linear=True),
    ]
    text.settle("tie_word_embeddings")
    codec = audio_of(root, "codec_config")
    if codec.model_type not in CODECS:
        raise UnknownTowerError(codec.model_type)
    tower = Tower("codec_model.", ModuleClass.AUDIO)
    CODECS[codec.model_type](codec, tower)
    return [*tables, *_depth(depth, tied=tied), *tower.tensors]


def _table(facts: Facts) -> tuple[int, int]:
    rows = facts.integer("num_codebooks") * facts.integer("vocab_size")
    return rows, facts.integer("backbone_hidden_size")


def _depth(facts: Facts, *, tied: bool) -> list[Tensor]:
    """The decoder over the codebooks: a Llama with a head for every codebook but the first."""
    tower = Tower("depth_decoder.", ModuleClass.AUDIO)
    hidden, layers = facts.integer("hidden_size"), facts.integer("num_hidden_layers")
    books, codes = facts.integer("num_codebooks"), facts.integer("vocab_size")
    source, heads = facts.integer("backbone_hidden_size"), facts.integer("num_attention_heads")
    head = facts.integer("head_dim", hidden // heads)
    bias = facts.flag("attention_bias")
    style = Encoder(
        gated=True, qkv_bias=bias, o_bias=bias, mlp_bias=facts.flag("mlp_bias"), norm_bias=False
    )
    wide = (heads * head, facts.integer("num_key_value_heads", heads) * head)
    style.add(tower, layers, hidden, facts.integer("intermediate_size"), wide)
    tower.norm("model.norm", hidden, bias=False)
    tower.linear("model.inputs_embeds_projector", hidden, source, bias=False)
    if not tied:
        tower.weight("model.embed_tokens.weight", *_table(facts))
    if books > 1:
        tower.weight("codebooks_head.weight", hidden, codes, copies=books - 1)
    return tower.tensors


TOWERS = {"csm": _csm}
