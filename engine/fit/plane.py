"""The plans that differ from one in context and requests only, and what part of them to show."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, log2, nan
from typing import TYPE_CHECKING

from engine.errors import DeploymentError
from engine.fit import solve
from engine.fit.judge import certain_margin, judge, rank_margin
from engine.fit.verdict import Fit
from engine.runtimes import registry

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.architecture.model import Model
    from engine.budget.model import Budget
    from engine.deployment.spec import Deployment
    from engine.devices.device import Machine

_LEAST_CONTEXT = 1024
_LONGEST_SHOWN = 2**20
"""Where the axis ends for models that state no longest context."""
_LEAST_TOP = 64
_HIGHEST_TOP = 1024


def nothing() -> None:
    """Nobody asks to stop."""


@dataclass(frozen=True, slots=True)
class Axes:
    """What part of the plane is shown; both axes are logarithmic and begin and end in a plan."""

    least_context: int
    most_context: int
    most_requests: int
    """The other end is a single request."""


def axes(model: Model, deployment: Deployment, machine: Machine) -> Axes:
    """Axes on which the plan has a place and, where there is one, the limit too.

    They do not depend on the plan's context and requests as long as these lie within.

    Raises:
        DeploymentError: the deployment itself is impossible.
    """
    plane = Plane(model, deployment, machine, nothing)
    settled = plane.runtime.plan(model, deployment, machine).deployment
    context = settled.max_model_len or _LEAST_CONTEXT
    longest = solve.longest_context(model, deployment, machine)
    if model.spec.max_position_embeddings is None:
        longest = min(longest, _LONGEST_SHOWN)
    most = max(2, longest, context)
    usual = _LEAST_CONTEXT if most >= 8 * _LEAST_CONTEXT else max(1, most // 16)
    least = 2 ** floor(log2(min(usual, context)))
    middle = round((least * most) ** 0.5)
    one, two = plane.margin(middle, 1), plane.margin(middle, 2)
    runs = 1 + one / (one - two) if one > two else 1
    # What more ask at once than are served only waits: the axis need not go there by itself.
    served = solve.most_requests(model, deployment, machine)
    top = 2 ** ceil(log2(min(max(_LEAST_TOP, 2 * runs), _HIGHEST_TOP)))
    return Axes(least, most, max(2, min(top, served), settled.concurrency))


class Plane:
    """The plans that differ from one in context and requests only, each planned once."""

    def __init__(
        self, model: Model, deployment: Deployment, machine: Machine, check: Callable[[], None]
    ) -> None:
        self.model, self.machine, self._check = model, machine, check
        self.runtime = registry.get(deployment.runtime)
        # A total of llama.cpp's would pin what varies here.
        self._plan = deployment.with_(n_ctx=None, batch_size=None)
        self._margins: dict[tuple[int, int], tuple[float, float, float]] = {}

    def margin(self, context: int, requests: int) -> float:
        """The likely margin in bytes; NaN where the runtime refuses the plan."""
        return self._margins_of(context, requests)[0]

    def most_margin(self, context: int, requests: int) -> float:
        """The most that a plan in doubt can have to spare."""
        return self._margins_of(context, requests)[1]

    def sure_margin(self, context: int, requests: int) -> float:
        """The least that a plan in doubt has to spare; NaN where something isn't counted."""
        return self._margins_of(context, requests)[2]

    def certain(self, context: int, requests: int) -> float:
        """The margin, of a plan in doubt only as far as it is certain, else NaN.

        Too much even at the least is certain, and so is room even at the most.
        """
        likely, most, sure = self._margins_of(context, requests)
        if likely == most == sure:
            return likely
        return most if most < 0 else sure if sure >= 0 else nan

    def _margins_of(self, context: int, requests: int) -> tuple[float, float, float]:
        key = (context, requests)
        if key not in self._margins:
            self._check()
            self._margins[key] = self._planned(context, requests)
        return self._margins[key]

    def _planned(self, context: int, requests: int) -> tuple[float, float, float]:
        plan = self._plan.with_(max_model_len=context, concurrency=requests)
        try:
            found = self.runtime.plan(self.model, plan, self.machine)
        except DeploymentError:
            return nan, nan, nan
        if found.refusals:
            return nan, nan, nan
        margins = [rank_margin(rank) for rank in found.ranks]
        likely = min(margin.likely_bytes for margin in margins)
        if not found.doubts:
            return likely, likely, likely
        most = min(certain_margin(found, rank).likely_bytes for rank in found.ranks)
        sure = min(margin.worst_bytes for margin in margins) if found.is_complete else nan
        return likely, most, sure

    def doubt(self, shown: Axes) -> tuple[str, bool]:
        """Why there are plans without a certain margin, and whether bounds are known of them.

        Empty and True where every margin is certain.

        Raises:
            DeploymentError: the deployment itself is impossible.
        """
        found = _doubt(self._budget(shown.least_context))
        if found[0]:
            return found
        try:
            return _doubt(self._budget(shown.most_context))
        except DeploymentError:
            return found

    def refusal(self, shown: Axes) -> str:
        """Why the runtime refuses even the least plan; empty where it doesn't."""
        return next(iter(self._budget(shown.least_context).refusals), "")

    def is_bounded(self, context: int) -> bool:
        """Whether plans of this context have a margin at all, or bounds of one.

        Raises:
            DeploymentError: the deployment itself is impossible.
        """
        return _doubt(self._budget(context))[1]

    def _budget(self, context: int) -> Budget:
        plan = self._plan.with_(max_model_len=context, concurrency=1)
        return self.runtime.plan(self.model, plan, self.machine)


def _doubt(budget: Budget) -> tuple[str, bool]:
    if budget.doubts:
        return budget.bounds[0], True
    verdict = judge(budget)
    return (verdict.detail, False) if verdict.fit is Fit.UNKNOWN else ("", True)
