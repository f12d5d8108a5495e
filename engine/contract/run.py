"""A run explained: what its log states, what the same plan predicts, and why it failed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.budget.model import Region
from engine.contract.request import parse
from engine.contract.run_plan import NoPlanError, plan_of, says_device
from engine.errors import PlimsollError
from engine.logs.diagnosis import Cause, Kind, diagnose
from engine.logs.reconcile import RankRows, reconcile
from engine.logs.remedies import Remedy, remedies
from engine.runtimes import foreign
from engine.sizing import Sizing, size

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.contract.desk import Desk, Plan
    from engine.deployment.spec import Deployment
    from engine.logs.reading import LogReading


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """Everything that is said of a log."""

    reading: LogReading
    cause: Cause | None
    rows: tuple[RankRows, ...]
    remedies: tuple[Remedy, ...] = ()
    plan: Plan | None = None
    sizing: Sizing | None = None
    unplanned: str = ""
    """Why nothing is predicted, in one sentence."""
    notes: tuple[str, ...] = ()
    """What was taken on trust to make the plan."""

    @property
    def has_failed(self) -> bool:
        """Whether it stopped; one that is slow or short of cache goes on."""
        return self.cause is not None and not self.cause.is_soft


def explain(reading: LogReading, desk: Desk, given: Mapping[str, object]) -> Run:
    """``reading`` against the plan of the same run.

    Args:
        reading: what the log states.
        desk: finds the model.
        given: keys of the machine contract that go before the log's.

    Raises:
        PlimsollError: a key of ``given`` is wrong.
    """
    cause = diagnose(reading)
    parse({"model": "-", **given})  # A slip in what is given is told, whatever the log says.
    try:
        plan, notes = plan_of(reading, desk, given)
        sizing = size(plan.model, plan.deployment, plan.machine)
    except PlimsollError as error:
        if _is_about(error, given):
            raise
        return Run(reading, cause, reconcile(reading, None), unplanned=error.message)
    known = plan.notes.capacity_known and says_device(reading, given)
    rows = reconcile(reading, sizing.budget, capacity_known=known)
    return Run(
        reading=reading,
        cause=cause,
        rows=rows,
        remedies=_remedies(plan, reading, cause, known=known),
        plan=plan,
        sizing=sizing,
        notes=(*notes, *plan.notes.assumptions),
    )


def _is_about(error: PlimsollError, given: Mapping[str, object]) -> bool:
    """Whether what is ``given`` is wrong, and not what the log says or leaves out."""
    if isinstance(error, NoPlanError):
        return False
    return error.field in given if error.field else "model" in given


def _remedies(
    plan: Plan, reading: LogReading, cause: Cause | None, *, known: bool
) -> tuple[Remedy, ...]:
    if cause is None:
        return ()
    deployment = plan.deployment
    pool = reading.stated("kv_pool")
    # A pool that the log states is the one that was too small, whatever we would have given it.
    decided = cause.kind in (Kind.REFUSED, Kind.CONCURRENCY) and cause.region is Region.KV_CACHE
    takes_pool = foreign.has(deployment.runtime, "kv_pool_bytes")
    if decided and pool is not None and takes_pool:
        deployment = deployment.with_(kv_pool_bytes=max(1, pool.size_bytes))
    elif not known:
        return ()
    found = remedies(plan.model, deployment, plan.machine, cause)
    if not known:
        # Of a device of unknown size only what the stated pool decides can be promised.
        found = tuple(one for one in found if _same_runtime(one, deployment))
    return tuple(
        replace(one, deployment=one.deployment.with_(kv_pool_bytes=plan.deployment.kv_pool_bytes))
        if one.deployment is not None
        else one
        for one in found
    )


def _same_runtime(remedy: Remedy, deployment: Deployment) -> bool:
    return remedy.deployment is not None and remedy.deployment.runtime == deployment.runtime
