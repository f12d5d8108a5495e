"""A draft model of its own: what it takes beside the model that it drafts for.

Source:
    vLLM 0.33 ``v1/spec_decode/llm_base_proposer.py`` and ``config/speculative.py``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from engine.architecture.spec import Direction, ModuleClass, Subject
from engine.budget.bounds import counted
from engine.budget.sequence_state import CACHED
from engine.budget.sharding import VOCAB_MULTIPLE
from engine.budget.weights import WeightLayout, weights
from engine.errors import DeploymentError
from engine.evidence import Basis, Estimate, total
from engine.runtimes.checks import splits_evenly
from engine.runtimes.kept import doubts_in
from engine.runtimes.vllm.rotary import rotary_table
from engine.words import tr, tr_later

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.architecture.spec import Doubt
    from engine.deployment.spec import Deployment

_SOURCE, _LABEL = "vLLM v1/spec_decode/llm_base_proposer.py", tr_later("draft model")


def check_draft(deployment: Deployment) -> None:
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
    if draft.is_gguf:
        message = tr("vLLM doesn't load the draft {id}: it is a GGUF file.").format(id=draft.id)
        raise DeploymentError(message, field="draft_model")
    tp = deployment.tensor_parallel_size
    if not splits_evenly(draft.spec, tp):
        message = tr(
            "tensor_parallel_size {tp} doesn't divide the heads or widths of {id}."
        ).format(tp=tp, id=draft.id)
        raise DeploymentError(message, field="draft_model")


def draft_doubts(deployment: Deployment) -> tuple[Doubt, ...]:
    """What is in doubt of the draft, but for the tables that it may share, which are counted."""
    draft = deployment.draft_model
    if draft is None:
        return ()
    found = doubts_in(draft.spec, "vLLM")
    return tuple(d for d in found if not (_reads(draft) and _is_upper(d)))


def _is_upper(doubt: Doubt) -> bool:
    return doubt.subject is Subject.WEIGHTS and doubt.direction is Direction.UPPER


def _reads(draft: Model) -> bool:
    """Whether the draft reads the hidden states of its target, and is no model of its own."""
    return bool(draft.spec.draft)


@lru_cache(maxsize=CACHED)
def draft_weights(
    target: Model, draft: Model, tp: int, stages: int, element_bytes: int
) -> Estimate:
    """Weights of the draft on one rank of the last stage, cut as its target is.

    A draft that reads its target's hidden states takes the target's embeddings where its files
    hold none, or the same ones, and where both lie on one stage.
    """
    layout = WeightLayout(
        tensor_parallel_size=tp, vocab_multiple=VOCAB_MULTIPLE, halve_float32=True
    )
    found = weights(draft, layout)
    stage = found.stages[0]
    embeddings = stage.by_module.get(ModuleClass.EMBEDDING, 0)
    spec = target.spec
    alike = (draft.spec.hidden_size, draft.spec.vocab_size) == (spec.hidden_size, spec.vocab_size)
    shared = embeddings if _reads(draft) and stages == 1 and alike else 0
    own = 0 if draft.stored is None else shared
    size = stage.size_bytes - shared
    direction = None if _reads(draft) and found.direction is Direction.UPPER else found.direction
    parts = [counted(size, direction, found.basis, found.source, label=tr(_LABEL))]
    if shared:
        source = tr("{source}: kept where they differ from the target's").format(source=_SOURCE)
        parts.append(
            Estimate(0, own, shared, Basis.FITTED, source, "", tr("the draft's embeddings"))
        )
    table = rotary_table(draft, element_bytes)
    if table is not None and table != rotary_table(target, element_bytes):
        parts.append(table)
    return total(parts).named(tr(_LABEL))
