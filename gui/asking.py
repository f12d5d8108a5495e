"""Between the plans on the desk and the values of a workspace. No Qt."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.architecture.read import read
from engine.cancel import JobCancelledError
from engine.contract.workspace import Asked, keepable
from engine.errors import PlimsollError
from engine.source.origin import Located, Named
from engine.source.recall import recall
from gui.kit.messages import sentence
from gui.sizing.plan import Neighbour, Plan

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from engine.architecture.model import Model
    from engine.cancel import CancelToken
    from engine.contract.workspace import Workspace
    from engine.deployment.spec import Deployment
    from engine.source.origin import Origin

_log = logging.getLogger("plimsoll.gui")


@dataclass(frozen=True, slots=True)
class Found:
    """What this computer has of a workspace's models, and why not the others."""

    models: Mapping[Origin, Model]
    absent: Mapping[Origin, str]
    """The reason, a sentence each."""


def asked(model: Model | None, plan: Plan) -> Asked:
    """``plan`` for ``model`` as a workspace keeps it."""
    return keepable(
        replace(
            _asked(model, plan.deployment, assumed=plan.assumes_context),
            gpu=plan.device,
            host_total_bytes=plan.host_total_bytes,
            emptied=plan.emptied,
            beside=tuple(
                _asked(other.model, other.deployment, assumed=other.assumes_context)
                for other in plan.beside
            ),
        )
    )


def _asked(model: Model | None, deployment: Deployment, *, assumed: bool) -> Asked:
    draft = deployment.draft_model
    named = draft.origin if draft is not None else None
    return Asked(
        model=model.origin if model is not None else None,
        deployment=deployment.with_(draft_model=None) if draft else deployment,
        draft=named if isinstance(named, Named | Located) else None,
        context_assumed=assumed,
    )


def plan_of(kept: Asked, models: Mapping[Origin, Model]) -> Plan:
    """The plan of ``kept``, with what of it is among ``models``."""
    beside = tuple(
        Neighbour(models[other.model], _deployment(other, models), other.context_assumed)
        for other in kept.beside
        if other.model is not None and other.model in models
    )
    deployment = _deployment(kept, models)
    return Plan(
        deployment,
        device=kept.gpu,
        host_total_bytes=kept.host_total_bytes,
        emptied=kept.emptied,
        assumes_context=kept.context_assumed,
        beside=beside,
    )


def _deployment(kept: Asked, models: Mapping[Origin, Model]) -> Deployment:
    draft = models.get(kept.draft) if kept.draft is not None else None
    return kept.deployment.with_(draft_model=draft) if draft else kept.deployment


def needed(plans: Iterable[Asked]) -> tuple[Origin, ...]:
    """The models of ``plans``, of what runs beside them and drafts for them, each once."""
    every = [one for plan in plans for one in (plan, *plan.beside)]
    both = ((one.model, one.draft) for one in every)
    return tuple(dict.fromkeys(each for pair in both for each in pair if each is not None))


def is_whole(kept: Asked, models: Mapping[Origin, Model]) -> bool:
    """Whether ``models`` hold all that ``kept`` needs."""
    return all(origin in models for origin in needed((kept,)))


def look_here(workspace: Workspace, token: CancelToken) -> Found:
    """Read the workspace's models on this computer; for a worker."""
    models: dict[Origin, Model] = {}
    absent: dict[Origin, str] = {}
    for origin in needed((workspace.plan, *workspace.compared)):
        token.raise_if_cancelled()
        try:
            models[origin] = known(origin, token)
        except JobCancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - a stranger's model must not take the plans along
            if not isinstance(error, PlimsollError):
                _log.exception("a model of a workspace could not be read")
            absent[origin] = sentence(error)
    return Found(models, absent)


def known(origin: Origin, token: CancelToken) -> Model:
    """The model of ``origin``, from this computer alone.

    Raises:
        PlimsollError: it isn't here.
    """
    return replace(read(recall(origin, token)), origin=origin)
