"""What lies on the desk as one value: models, plans, and what they still wait for. No Qt."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from engine.contract.workspace import Workspace
from engine.units import UnitSystem
from gui import asking
from gui.sizing.comparison import Pinned

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from engine.architecture.model import Model
    from engine.contract.workspace import Asked
    from engine.deployment.spec import Deployment
    from engine.source.origin import Origin
    from gui.asking import Found
    from gui.sizing.plan import Plan


@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """What lies on the desk, and the file it belongs to."""

    model: Model | None
    plan: Plan
    pinned: tuple[Pinned, ...] = ()
    awaited: Asked | None = None
    """The plan as it was kept, where its model isn't here; in force while there is no model."""
    absent: tuple[tuple[int, Asked], ...] = ()
    """Compared plans whose models aren't here, each with its place."""
    reasons: Mapping[Origin, str] = field(default_factory=dict["Origin", str])
    """Why they aren't."""
    file: Path | None = None
    desk: object = field(default_factory=object)
    """The same for all that was on one desk, until another workspace takes its place."""

    @property
    def missing(self) -> dict[Origin, str]:
        """The models that are still waited for, each with the reason."""
        waiting = [kept for _, kept in self.absent]
        if self.awaited is not None and self.model is None:
            waiting.append(self.awaited)
        wanted = asking.needed(waiting)
        return {origin: why for origin, why in self.reasons.items() if origin in wanted}

    def models(self) -> dict[Origin, Model]:
        """The models there are, by where they came from."""
        return {one.origin: one for one in self._every_model() if one.origin is not None}

    def _every_model(self) -> Iterator[Model]:
        if self.model is not None:
            yield self.model
        yield from (one.model for one in self.pinned)
        for plan in (self.plan, *(one.plan for one in self.pinned)):
            yield from _draft(plan.deployment)
            for other in plan.beside:
                yield other.model
                yield from _draft(other.deployment)

    def kept(self, unit: UnitSystem, tab: str) -> Workspace:
        """The same as a file keeps it, beside how it is looked at."""
        plan = asking.asked(self.model, self.plan)
        if self.awaited is not None and self.model is None:
            waits = self.awaited
            plan = replace(plan, model=waits.model, draft=waits.draft, beside=waits.beside)
        compared = [asking.asked(one.model, one.plan) for one in self.pinned]
        for place, waiting in self.absent:
            compared.insert(place, waiting)
        return Workspace(plan, tuple(compared), unit, tab)


def contents_of(workspace: Workspace, found: Found, file: Path | None) -> Contents:
    """``workspace`` with the models there are."""
    models, plan = found.models, workspace.plan
    is_here = asking.is_whole(plan, models)
    pinned: list[Pinned] = []
    absent: list[tuple[int, Asked]] = []
    for place, kept in enumerate(workspace.compared):
        if kept.model is not None and asking.is_whole(kept, models):
            pinned.append(Pinned(models[kept.model], asking.plan_of(kept, models)))
        else:
            absent.append((place, kept))
    return Contents(
        model=models[plan.model] if is_here and plan.model is not None else None,
        plan=asking.plan_of(plan, models),
        pinned=tuple(pinned),
        awaited=None if is_here else plan,
        absent=tuple(absent),
        reasons=found.absent,
        file=file,
    )


def plans_of(workspace: Workspace) -> Workspace:
    """The plans alone: unit and tab are looks, and no work that could be lost."""
    return replace(workspace, unit=UnitSystem.BINARY, tab="", load=None)


def _draft(deployment: Deployment) -> tuple[Model, ...]:
    return (deployment.draft_model,) if deployment.draft_model is not None else ()
