"""LoRA: the slots that vLLM keeps ready for adapters beside the weights.

Source:
    vLLM 0.33 ``lora/layers`` (``create_lora_weights`` of each) and ``lora/model_manager.py``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from engine.architecture.spec import ModuleClass, Sharding
from engine.budget.sequence_state import CACHED, layer_kinds
from engine.budget.sharding import is_expert, shard
from engine.runtimes.vllm.rules import Since

if TYPE_CHECKING:
    from engine.architecture.spec import ArchitectureSpec, Tensor
    from engine.budget.sharding import Split
    from engine.runtimes.vllm.rules import Version

_TABLES: Since[tuple[str, ...]] = Since(
    (
        (0,),
        (
            "llama", "granite", "bamba", "jamba", "exaone", "nemotron", "phimoe", "mixtral",
            "cohere", "minicpm", "solar", "mistral",
        ),
    ),
    (
        (0, 11),
        (
            "llama", "granite", "bamba", "jamba", "exaone", "nemotron", "phimoe", "mixtral",
            "cohere", "minicpm", "solar", "mistral", "lfm2", "falcon_h1", "apertus",
        ),
    ),
    (
        (0, 16),
        (
            "llama", "granite", "bamba", "jamba", "exaone", "nemotron", "phimoe", "mixtral",
            "cohere", "minicpm", "solar", "mistral", "lfm2", "falcon_h1", "apertus", "qwen3",
        ),
    ),
    (
        (0, 20),
        (
            "llama", "granite", "bamba", "jamba", "exaone", "nemotron", "phimoe", "mixtral",
            "cohere", "minicpm", "solar", "lfm2", "falcon_h1", "apertus", "qwen3",
        ),
    ),
)  # fmt: skip
"""How the types begin whose embedding and head take adapters (``embedding_modules``)."""
_WITHOUT_TABLES = ("llama4", "qwen3_next", "qwen3_vl")
"""Types that begin alike and have no such list."""

_EXTRA_WORDS = Since[int](((0,), 256), ((0, 12), 0))
"""Words that an adapter may add to the vocabulary (``lora_extra_vocab_size``)."""

_TIED_TWICE = Since[bool](((0,), True), ((0, 11), False))
"""Whether a tied head takes a slot of each kind: in two notebooks of 0.8, not in one of 0.11. The
release of the change is not established."""

_ADAPTS_EXPERTS = Since[bool](((0,), False), ((0, 11, 2), True))
"""Whether experts take adapters (``lora/layers/fused_moe.py``)."""


class Slots(NamedTuple):
    """What is kept ready."""

    adapters: int
    """``max_loras``."""
    rank: int
    """``max_lora_rank``."""
    version: Version


@lru_cache(maxsize=CACHED)
def slots_bytes(
    spec: ArchitectureSpec, layers: range, split: Split, slots: Slots, element_bytes: int
) -> int:
    """Bytes of the adapters' slots on one rank of the stage that holds ``layers``.

    A of a linear layer is rank × inputs, B outputs × rank; of each the side that tensor
    parallelism cuts is cut with the layer.
    """
    elements = 0
    for layer, count in layer_kinds(spec, layers.start, layers.stop):
        for tensor in layer.tensors:
            if _takes_adapter(tensor, slots.version):
                part = shard(tensor, layer, split)
                elements += (part.shape[0] + part.shape[1]) * part.copies * count
    elements *= slots.rank
    if _adapts_tables(spec, slots.version):
        elements += _table_elements(spec, layers, slots)
    return elements * slots.adapters * element_bytes


def _takes_adapter(tensor: Tensor, version: Version) -> bool:
    if len(tensor.shape) != 2 or tensor.sharding is Sharding.VOCAB:
        return False
    if is_expert(tensor.sharding) and not _ADAPTS_EXPERTS.at(version):
        return False
    return tensor.linear or tensor.module is ModuleClass.ROUTER


def _adapts_tables(spec: ArchitectureSpec, version: Version) -> bool:
    kind = spec.model_type
    return kind.startswith(_TABLES.at(version)) and not kind.startswith(_WITHOUT_TABLES)


def _table_elements(spec: ArchitectureSpec, layers: range, slots: Slots) -> int:
    """Embedding and head, whole on every rank."""
    extra = _EXTRA_WORDS.at(slots.version)
    one = slots.rank * (spec.vocab_size + extra + spec.hidden_size) + extra * spec.hidden_size
    first, last = layers.start == 0, layers.stop == len(spec.layers)
    # The embedding's own table has room for added words, too.
    room = extra * spec.hidden_size if first else 0
    twice = spec.tie_word_embeddings and _TIED_TWICE.at(slots.version)
    return one * (first + last * (2 if twice else 1)) + room
