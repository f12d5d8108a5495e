"""Experts under data parallelism: shared out over all ranks of all replicas.

Source:
    vLLM 0.33 ``model_executor/layers/fused_moe/config.py``: the expert-parallel size is the
    tensor-parallel times the data-parallel size.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from engine.architecture.spec import Direction, Doubt, Subject
from engine.budget.sequence_state import CACHED

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.deployment.spec import Deployment


def sharing_experts(model: Model, deployment: Deployment) -> Model:
    """``model``, with its experts marked as a bound where replicas share them out."""
    if deployment.data_parallel_size == 1 or not any(layer.moe for layer in model.spec.layers):
        return model
    return _bounded(model)


# The same model each time: what is worked out from it is cached by its identity.
@lru_cache(maxsize=CACHED)
def _bounded(model: Model) -> Model:
    reason = "data-parallel ranks share the experts out among all of them: each is counted with "
    reason += "its replica's whole share"
    doubt = Doubt(Subject.WEIGHTS, reason, Direction.UPPER)
    return replace(model, spec=replace(model.spec, doubts=(*model.spec.doubts, doubt)))
