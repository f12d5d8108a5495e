"""The byte latent transformer: what is around its local decoder.

Source:
    transformers 5.24.0, ``blt/modeling_blt.py``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.architecture.build import layers_of
from engine.architecture.families.base import Family, matrix
from engine.architecture.families.blt import crossing, head_widths, width_of
from engine.architecture.heads import is_bare
from engine.architecture.spec import ModuleClass, Sharding, Tensor

if TYPE_CHECKING:
    from engine.config.facts import Facts

_OTHER, _EMBEDDING, _HEAD = ModuleClass.OTHER, ModuleClass.EMBEDDING, ModuleClass.LM_HEAD
_WHOLE, _VOCAB = Sharding.REPLICATED, Sharding.VOCAB
_GROUPS = 6
"""Sizes of byte groups that are hashed, where the config names none: 3 to 8."""
_STACK = Family(head_dim=head_widths, width=width_of)


def blt(root: Facts, text: Facts) -> list[Tensor]:
    """The local encoder, the transformer over patches, the patcher, the hashes and the head."""
    encoder, patches = _part(root, "encoder_config"), _part(root, "global_config")
    encoder.settle("sliding_window")
    hidden, wide = encoder.integer("hidden_size"), patches.integer("hidden_size")
    joined = hidden * root.integer("cross_attn_k")
    groups = len(root.items("encoder_hash_byte_group_size") or ()) or _GROUPS
    hashed = root.integer("encoder_hash_byte_group_vocab")
    rows = hashed * root.integer("encoder_hash_byte_group_nb_functions") * groups
    # Tied, the head takes the place of the encoder's table, whatever that one's shape.
    table, head = (encoder.integer("vocab_size"), hidden), None
    if not is_bare(text):
        head = root.integer("vocab_size"), text.integer("hidden_size")
    if head and root.flag("tie_word_embeddings"):
        table, head = head, None
    tensors = [
        *_stack(encoder, "model.local_encoder."),
        _embedding("model.local_encoder.embed_tokens", *table),
        *_encoder_crossing(encoder),
        *_stack(patches, "model.global_transformer."),
        _embedding("model.encoder_hash_tok_embedding", rows, hidden),
    ]
    if joined != wide:
        path = "model.global_transformer.token_embedding_projection"
        tensors += matrix(path, _OTHER, (wide, joined), _WHOLE)
    if root.flag("patch_in_forward"):
        tensors += _patcher(_part(root, "patcher_config"))
    if head:
        tensors += matrix("lm_head", _HEAD, head, _VOCAB)
    return tensors


def _part(root: Facts, key: str) -> Facts:
    return root.sub(key) or root.empty(key)


def _embedding(path: str, rows: int, width: int) -> Tensor:
    return Tensor(f"{path}.weight", _EMBEDDING, (rows, width), 1, _VOCAB)


def _stack(facts: Facts, path: str) -> list[Tensor]:
    """Layers like a plain decoder's, under ``path``."""
    return [
        replace(tensor, name=f"{path}layers.*.{tensor.name}")
        for layer in layers_of(facts, _STACK)
        for tensor in layer.tensors
    ]


def _encoder_crossing(encoder: Facts) -> list[Tensor]:
    hidden = encoder.integer("hidden_size")
    layers = encoder.integer("num_hidden_layers")
    every = encoder.flag("cross_attn_all_layers")
    shape = (hidden * encoder.integer("cross_attn_k"), hidden)
    path = "model.local_encoder."
    tensors = matrix(path + "patch_embedding_projection", _OTHER, shape, _WHOLE)
    for _ in range(layers if every else 1):
        tensors += crossing(encoder, path + "cross_attn_layers.*.")
    return tensors


def _patcher(facts: Facts) -> list[Tensor]:
    hidden, vocab = facts.integer("hidden_size"), facts.integer("vocab_size")
    path = "model.patcher."
    return [
        *_stack(facts, path),
        _embedding(path + "embed_tokens", vocab, hidden),
        Tensor(path + "norm.weight", ModuleClass.NORM, (hidden,)),
        *matrix(path + "lm_head", _HEAD, (vocab, hidden), _VOCAB),
    ]


TOWERS = {"blt": blt}
