"""The sizing workflow as five steps that fill themselves from what is seen.

Each says how it is known: read, modelled, or open; and what would turn it into a measurement.
Nothing here is kept: the steps come from the plan, the run and the log of now.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from engine.evidence import Basis
from engine.overlay.steps import ANSWERS, Answer, Asked, Evidence, Status
from engine.runtimes import registry
from engine.units import UnitSystem
from engine.words import tr, tr_later

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.budget.model import Budget


class Action(StrEnum):
    """What would turn a step into a measurement."""

    START = "start"
    PREFILL = "prefill"
    PLAN = "plan"
    LOG = "log"
    LOAD = "load"

    @property
    def label(self) -> str:
        """What a person is asked to do."""
        return tr(_ACTIONS[self])


_ACTIONS = {
    Action.START: tr_later("Start it here and let it load"),
    Action.PREFILL: tr_later("Start the server, then prefill once"),
    Action.PLAN: tr_later("Change the context or the number at once"),
    Action.LOG: tr_later("Drop a start-up log"),
    Action.LOAD: tr_later("Send requests for 10 minutes"),
}
_TITLES = {
    "weights": tr_later("Measure the weights after loading"),
    "prefill": tr_later("Measure the prefill peak at your prompt size"),
    "cache": tr_later("Work out the KV cache for the most live tokens"),
    "kept": tr_later("Count what the runtime and the allocator keep"),
    "headroom": tr_later("Leave headroom, then check it under steady load"),
}


@dataclass(frozen=True, slots=True)
class Step:
    """One of the five, for the rank that matters."""

    number: int
    key: str
    title: str
    answer: Answer
    action: Action | None
    """None where nothing is left to measure."""
    per_rank: Mapping[int, Answer]


@dataclass(frozen=True, slots=True)
class Checklist:
    """The five steps, and what they hold for."""

    steps: tuple[Step, ...]
    recorded: tuple[tuple[str, str], ...]
    """Name and value: model revision, release, kernel choice, cache precision."""

    @property
    def known(self) -> int:
        """How many are known."""
        return sum(step.answer.status is Status.KNOWN for step in self.steps)

    @property
    def count(self) -> str:
        """``2 of 5``."""
        return tr("{known} of {all}").format(known=self.known, all=len(self.steps))


def checklist(
    budget: Budget,
    chosen: int,
    evidence: Evidence | None = None,
    unit: UnitSystem = UnitSystem.BINARY,
) -> Checklist:
    """The five steps of ``budget``.

    Args:
        budget: the plan's.
        chosen: the rank whose answers are shown; those of the others stand beside them.
        evidence: what was seen and stated; without any, what the plan alone says.
        unit: of the sizes in words.
    """
    known = evidence or Evidence()
    steps: list[Step] = []
    for number, key in enumerate(ANSWERS, 1):
        answers = {
            rank.rank: ANSWERS[key](Asked(budget, rank, known, unit)) for rank in budget.ranks
        }
        answer = answers[chosen]
        measured = answer.status is Status.KNOWN and _is_measured(answer)
        action = None if measured else _DONE_BY[key]
        steps.append(Step(number, key, tr(_TITLES[key]), answer, action, answers))
    return Checklist(tuple(steps), _recorded(budget, known))


_DONE_BY = dict(
    zip(ANSWERS, (Action.START, Action.PREFILL, Action.PLAN, Action.LOG, Action.LOAD), strict=True)
)


def _is_measured(answer: Answer) -> bool:
    return answer.estimate is not None and answer.estimate.basis is Basis.MEASURED


def _recorded(budget: Budget, evidence: Evidence) -> tuple[tuple[str, str], ...]:
    """What the figures hold for."""
    plan = budget.deployment
    release = evidence.release or plan.runtime_version or tr("not known")
    flash = plan.flash_attn
    if isinstance(flash, bool):
        flash = "on" if flash else "off"
    kernel = evidence.kernel or plan.attn_implementation or (flash and f"flash-attn {flash}")
    cache = plan.kv_cache_dtype
    if cache == "auto":
        cache = tr("the model's own, {dtype}").format(dtype=budget.model.spec.dtype)
    if plan.cache_type_k:
        cache = "/".join(filter(None, (plan.cache_type_k, plan.cache_type_v)))
    return (
        (tr("Model revision"), budget.model.revision or tr("not known")),
        (tr("Runtime"), f"{registry.get(plan.runtime).label} {release}"),
        (tr("Attention kernel"), str(kernel) if kernel else tr("the runtime's own choice")),
        (tr("Cache precision"), cache),
    )
