"""A draft model of its own: what it takes beside the model that it drafts for.

Source:
    SGLang 0.5.23 ``speculative/eagle_worker_v2.py``: the draft is loaded whole, then its tables
    are dropped for its target's.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from engine.architecture.drafts import EAGLE3, MEDUSA, MLP
from engine.architecture.spec import Direction, ModuleClass, Subject
from engine.budget.bounds import counted
from engine.budget.sequence_state import CACHED
from engine.budget.sharding import VOCAB_MULTIPLE
from engine.budget.weights import WeightLayout, weights
from engine.errors import DeploymentError
from engine.evidence import Basis, Estimate, exactly, total
from engine.runtimes.checks import splits_evenly
from engine.runtimes.kept import doubts_in
from engine.runtimes.sglang import buffers
from engine.words import tr, tr_later

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from engine.architecture.model import Model
    from engine.architecture.spec import Doubt
    from engine.deployment.spec import Deployment
    from engine.runtimes.sglang.loading import Split

_SOURCE, _LABEL = "SGLang speculative/eagle_worker_v2.py", tr_later("draft model")
_UNKNOWN = (MEDUSA, MLP)
"""Kinds of draft that SGLang does not run."""


class Drafted(NamedTuple):
    """A draft on one rank."""

    held: Estimate
    loading: tuple[Estimate, ...]
    """Beside it until its target's tables take the place of its own."""


def check_draft(deployment: Deployment, attention_tp: int) -> None:
    """Refuse a draft that cannot run.

    Raises:
        DeploymentError: naming ``speculative_tokens`` or ``draft_model``.
    """
    draft = deployment.draft_model
    if draft is None:
        return
    if not deployment.speculative_tokens:
        message = tr("draft_model needs speculative_tokens: how many tokens it drafts a step.")
        raise DeploymentError(message, field="speculative_tokens")
    if draft.is_gguf or draft.spec.draft in _UNKNOWN:
        kind = (
            tr("it is a GGUF file") if draft.is_gguf else tr("it runs EAGLE, MTP and DFlash drafts")
        )
        message = tr("SGLang doesn't load the draft {id}: {kind}, or a small model.").format(
            id=draft.id, kind=kind
        )
        raise DeploymentError(message, field="draft_model")
    if not splits_evenly(draft.spec, attention_tp):
        message = tr("{attention_tp} ranks of attention don't divide the heads of {id}.").format(
            attention_tp=attention_tp, id=draft.id
        )
        raise DeploymentError(message, field="draft_model")


def draft_doubts(deployment: Deployment) -> tuple[Doubt, ...]:
    """What is in doubt of the draft, but for the tables that it may share, which are counted."""
    draft = deployment.draft_model
    if draft is None:
        return ()
    found = doubts_in(draft.spec, "SGLang")
    return tuple(d for d in found if not (draft.spec.draft and _is_upper(d)))


def _is_upper(doubt: Doubt) -> bool:
    return doubt.subject is Subject.WEIGHTS and doubt.direction is Direction.UPPER


@lru_cache(maxsize=CACHED)
def drafted(target: Model, draft: Model, split: Split) -> Drafted:
    """Weights of the draft on one rank.

    It is cut like attention: where that is split by data, every rank has the whole draft.
    """
    layout = WeightLayout(
        tensor_parallel_size=split.attention_tp, vocab_multiple=VOCAB_MULTIPLE, halve_float32=True
    )
    found = weights(draft, layout)
    (stage,) = found.stages
    dropped = sum(stage.by_module.get(module, 0) for module in _shared(target, draft))
    is_read = bool(draft.spec.draft)
    direction = None if is_read and found.direction is Direction.UPPER else found.direction
    size = stage.size_bytes - dropped
    parts = [counted(size, direction, found.basis, found.source, label=tr(_LABEL))]
    table = buffers.rotary_tables(draft, split)
    if table is not None and table != buffers.rotary_tables(target, split):
        parts.append(table)
    held = total(parts).named(tr(_LABEL))
    if not dropped:
        return Drafted(held, ())
    # Files that hold no tables, too: they are made empty.
    own = exactly(dropped, Basis.EXACT, _SOURCE, label=tr("the draft's own tables"))
    return Drafted(held, (own,))


def _shared(target: Model, draft: Model) -> tuple[ModuleClass, ...]:
    """Tables for which the draft takes its target's."""
    width = draft.spec.hidden_size
    if not draft.spec.draft or width != target.spec.hidden_size:
        return ()
    config: Mapping[str, Any] = draft.config or {}
    own_head = draft.spec.draft == EAGLE3 and config.get("draft_vocab_size") is not None
    embedding = (ModuleClass.EMBEDDING,)
    return embedding if own_head else (*embedding, ModuleClass.LM_HEAD)
