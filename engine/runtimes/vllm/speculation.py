"""Speculative decoding without prediction blocks, or with some whose layout is not known."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from engine.architecture.spec import Direction, Doubt, ModuleClass, Subject
from engine.budget.sequence_state import CACHED
from engine.words import tr

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.deployment.spec import Deployment


def opened(model: Model, deployment: Deployment) -> Model:
    """``model``, in doubt where it is to speculate with blocks that are not counted."""
    uncounted = drafts_itself(deployment) and model.spec.uncounted_mtp
    return _opened(model) if uncounted else model


def drafts_itself(deployment: Deployment) -> bool:
    """Whether the model's own prediction blocks draft, if it has any."""
    return bool(deployment.speculative_tokens) and deployment.draft_model is None


def without_blocks(model: Model, deployment: Deployment) -> list[str]:
    """A word on speculation where neither config nor files have prediction layers for it."""
    spec = model.spec
    if not drafts_itself(deployment):
        return []
    if not (spec.mtp or spec.uncounted_mtp):
        lacking = tr("the config states no prediction layers")
    elif model.stored is not None and not _holds_blocks(model):
        lacking = tr("the files hold no prediction layers")
    else:
        return []
    return [
        tr("speculative_tokens: {lacking}; the memory of a draft model is not counted.").format(
            lacking=lacking
        )
    ]


def _holds_blocks(model: Model) -> bool:
    groups = model.stored.groups if model.stored is not None else ()
    return any(group.module is ModuleClass.MTP for group in groups)


# The same model each time: what is worked out from it is cached by its identity.
@lru_cache(maxsize=CACHED)
def _opened(model: Model) -> Model:
    """Blocks in the file header count as stored, tables they may share included."""
    stored = _holds_blocks(model)
    reason = tr("speculative decoding loads prediction blocks of a layout that is not known here: ")
    reason += tr("counted as their file stores them") if stored else tr("not counted")
    doubts = (
        Doubt(Subject.WEIGHTS, reason, Direction.EITHER if stored else Direction.LOWER),
        Doubt(Subject.SEQUENCE_STATE, reason, Direction.LOWER),
    )
    return replace(model, spec=replace(model.spec, doubts=(*model.spec.doubts, *doubts)))
