"""From a record to the engine's answer, through the machine contract and in this process."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from engine.cancel import CancelToken
from engine.contract.desk import Desk
from engine.contract.fields import BY_NAME
from engine.contract.request import parse
from engine.runtimes import registry
from engine.sizing import size

if TYPE_CHECKING:
    from engine.contract.desk import Plan
    from engine.sizing import Sizing
    from tests.truth.scoring.records import Record


@dataclass(frozen=True, slots=True)
class Asked:
    """A record's request, and the answer to it."""

    record: Record
    plan: Plan
    sizing: Sizing

    def again(self, **changes: Any) -> Sizing:
        """The answer to the same request with other settings."""
        plan = self.plan
        return size(plan.model, plan.deployment.with_(**changes), plan.machine)


@cache
def _desk() -> Desk:
    return Desk(CancelToken())


def is_offered(runtime: str) -> bool:
    """Whether the engine plans ``runtime`` by now."""
    return runtime in registry.RUNTIMES


def ask(record: Record) -> Asked:
    """The answer to ``record``, which it keeps from nobody's Hub or disk.

    Raises:
        PlimsollError: the request cannot be answered.
    """
    # What the contract has no key for yet stays in the record.
    request = {key: value for key, value in record.request.items() if key in BY_NAME}
    plan = _desk().plan(parse(request))
    return Asked(record, plan, size(plan.model, plan.deployment, plan.machine))
