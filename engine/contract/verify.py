"""A verification as a mapping for JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.spec import ModuleClass
from engine.words import grouped, tr, tr_count

if TYPE_CHECKING:
    from engine.verify.meta import Verification

SCHEMA = "plimsoll.verify/1"


def classes_of(found: Verification) -> list[tuple[ModuleClass, int, int]]:
    """(class, ours, built) of every class that either side has, in the usual order."""
    return [
        (module, found.ours.get(module, 0), found.built.get(module, 0))
        for module in ModuleClass
        if found.ours.get(module) or found.built.get(module)
    ]


def outcome(found: Verification) -> str:
    """How far both counts are apart, in one sentence."""
    apart = abs(found.our_parameters - found.built_parameters)
    if apart:
        return tr_count(
            "They differ by {n} parameter.", "They differ by {n} parameters.", apart
        ).format(n=grouped(apart))
    return tr("Equal to the parameter.")


def remark(found: Verification) -> str:
    """What classes that differ mean where the counts do not; empty elsewhere."""
    if found.agrees and any(ours != built for _module, ours, built in classes_of(found)):
        return tr("The class of what was built follows from the tensors’ names alone.")
    return ""


def verify_answer(found: Verification) -> dict[str, object]:
    """The answer to ``plimsoll verify``."""
    return {
        "schema": SCHEMA,
        "model": found.model,
        "agrees": found.agrees,
        "parameters": found.our_parameters,
        "built_parameters": found.built_parameters,
        "basis": "bound" if found.doubts else "exact",
        "classes": [
            {"class": module.value, "parameters": ours, "built_parameters": built}
            for module, ours, built in classes_of(found)
        ],
        "model_class": found.model_class,
        "transformers": found.transformers,
        "torch": found.torch,
        "warnings": list(found.doubts),
    }
