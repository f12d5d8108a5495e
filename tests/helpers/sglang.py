"""Plans of SGLang for models of the bundled catalogue, through the machine contract."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from engine.cancel import CancelToken
from engine.contract.desk import Desk
from engine.contract.request import parse
from engine.sizing import size

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.sizing import Sizing


@cache
def _desk() -> Desk:
    return Desk(CancelToken())


def sized(name: str, **settings: Any) -> Sizing:
    """The answer for a catalogue model on ``gpu``, an RTX 4090 where it isn't given."""
    request = {"model": name, "runtime": "sglang", "gpu": "RTX 4090"} | settings
    plan = _desk().plan(parse(request))
    return size(plan.model, plan.deployment, plan.machine)


def catalogued(name: str) -> Model:
    """A model of the catalogue."""
    return _desk().plan(parse({"model": name, "gpu": "RTX 4090"})).model
