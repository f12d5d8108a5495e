"""Decoders of models that hear and speak at once: Moshi.

Source:
    transformers 5.24.0, ``moshi/modeling_moshi.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.families.base import SLIDING, Family, Names, state_doubt
from engine.architecture.spec import Direction, ModuleClass, Tensor
from engine.architecture.towers.codecs import CODECS
from engine.architecture.towers.parts import Tower
from engine.words import tr

if TYPE_CHECKING:
    from engine.architecture.spec import Doubt
    from engine.config.facts import Facts


def _width(facts: Facts) -> int:
    """Gate and up share ``ffn_dim`` rows."""
    rows = facts.integer("ffn_dim")
    if rows % 2:
        raise facts.bad("ffn_dim", rows, tr("an even number is needed"))
    return rows // 2


def _slides(_facts: Facts, layers: int) -> tuple[str, ...]:
    return (SLIDING,) * layers


def _speaks(facts: Facts) -> bool:
    """Whether the class is the whole model: those for text have neither ear nor voice."""
    named = facts.items("architectures") or ("MoshiForCausalLM",)
    return str(named[0]).endswith("ForConditionalGeneration")


def _beside(facts: Facts, _family: Family) -> list[Tensor]:
    """The codec, the embeddings of its codes and the decoder over the codebooks of one frame."""
    codec = facts.sub("audio_encoder_config") or facts.empty("audio_encoder_config")
    depth = facts.sub("depth_decoder_config") or facts.empty("depth_decoder_config")
    books = facts.integer("num_codebooks", 8)
    facts.settle("audio_vocab_size")
    if not _speaks(facts):
        return []
    codes = facts.integer("audio_vocab_size", codec.integer("codebook_size"))
    tower = Tower("audio_encoder.", ModuleClass.AUDIO)
    CODECS["mimi"](codec, tower)
    hidden = facts.integer("hidden_size")
    rows = Tensor("embed_tokens.weight", ModuleClass.EMBEDDING, (codes + 1, hidden), 2 * books)
    return [*tower.tensors, rows, *_depth(facts, depth, books, codes)]


def _depth(facts: Facts, depth: Facts, books: int, codes: int) -> list[Tensor]:
    """The depth decoder: a matrix of its own for each codebook, wherever there is one."""
    # The root's sizes are written into its config.
    depth.settle("audio_vocab_size", "input_size", "vocab_size", "num_codebooks")
    hidden, layers = depth.integer("hidden_size"), depth.integer("num_hidden_layers")
    heads = depth.integer("num_attention_heads")
    kv_heads = depth.integer("num_key_value_heads", heads)
    width, rows = depth.integer("head_dim", hidden // heads), depth.integer("ffn_dim")
    depth.settle("sliding_window")
    embedding, path = ModuleClass.EMBEDDING, "depth_decoder."
    inner = [
        ("self_attn.q_proj", heads * width, hidden), ("self_attn.k_proj", kv_heads * width, hidden),
        ("self_attn.v_proj", kv_heads * width, hidden), ("self_attn.o_proj", hidden, heads * width),
        ("mlp.fc1", rows, hidden), ("mlp.fc2", hidden, rows // 2),
    ]  # fmt: skip
    tower = Tower(path, ModuleClass.AUDIO)
    tower.weight("input_projections.weight", hidden, facts.integer("hidden_size"), copies=books)
    tower.weight("lm_heads.weight", codes, hidden, copies=books)
    for name, out, into in inner:
        tower.weight(f"layers.*.{name}.weight", out, into, copies=layers * books)
    tower.norm("layers.*.input_layernorm", hidden, bias=False, copies=layers)
    tower.norm("layers.*.post_attention_layernorm", hidden, bias=False, copies=layers)
    words = facts.integer("vocab_size") + 1
    return [
        *tower.tensors,
        Tensor(path + "text_embed_tokens.weight", embedding, (words, hidden)),
        Tensor(path + "embed_tokens.weight", embedding, (codes + 1, hidden), books - 1),
    ]


def _frame(facts: Facts) -> list[Doubt]:
    if not _speaks(facts):
        return []
    reason = tr("its codec and the decoder over codebooks keep caches of a few frames: not counted")
    return state_doubt(reason, Direction.LOWER)


MOSHI = Family(
    names=Names(
        query="q_proj.linear", key="k_proj.linear", value="v_proj.linear", output="o_proj.linear",
        gate="fc1", down="fc2",
    ),
    gate_up_fused=True, width=_width, pattern=_slides, embedding_extra=1, positions=_beside,
    doubts=_frame,
    tied=False, reads_tie=False,
)  # fmt: skip

FAMILIES = {"moshi": MOSHI}
