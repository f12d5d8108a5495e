"""The whole arithmetic in one call: model, deployment and machine in, budget and verdict out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.budget.model import Budget
    from engine.fit.verdict import Verdict


@dataclass(frozen=True, slots=True, eq=False)
class Sizing:
    """One answer."""

    budget: Budget
    verdict: Verdict
