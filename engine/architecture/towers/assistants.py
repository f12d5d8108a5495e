"""Draft models that read their target's states: Gemma 4's assistants.

Source:
    transformers 5.24.0, ``gemma4_assistant`` and ``gemma4_unified_assistant``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.families.base import matrix
from engine.architecture.spec import ModuleClass, Sharding

if TYPE_CHECKING:
    from engine.architecture.spec import Tensor
    from engine.config.facts import Facts

_OTHER, _WHOLE = ModuleClass.OTHER, Sharding.REPLICATED


def assistant(root: Facts, text: Facts) -> list[Tensor]:
    """The projections from and to the target, and the centroids that narrow the vocabulary."""
    hidden, target = text.integer("hidden_size"), root.integer("backbone_hidden_size")
    tensors = [
        *matrix("pre_projection", _OTHER, (hidden, 2 * target), _WHOLE),
        *matrix("post_projection", _OTHER, (target, hidden), _WHOLE),
    ]
    if root.flag("use_ordered_embeddings"):
        shape = (root.integer("num_centroids"), hidden)
        tensors += matrix("masked_embedding.centroids", _OTHER, shape, _WHOLE)
    return tensors


TOWERS = {"gemma4_assistant": assistant, "gemma4_unified_assistant": assistant}
