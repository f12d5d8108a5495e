"""The contexts worth choosing, and whose word the one in force is. No Qt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.runtimes import registry
from engine.runtimes.own_context import has_own_context, is_stated
from engine.words import tr
from gui.kit import format as fmt
from gui.sizing.plan import first_context

if TYPE_CHECKING:
    from gui.sizing.view_model import State


@dataclass(frozen=True, slots=True)
class Offer:
    """One context to choose. ``tokens`` is None for the one that a plan begins with."""

    tokens: int | None
    words: str
    is_chosen: bool


def origin(state: State) -> tuple[str, str]:
    """A word for a context that nobody chose, and a sentence; empty for one that was chosen."""
    plan = state.plan
    if not plan.assumes_context or state.context is None:
        return "", tr("Other contexts")
    runtime = registry.get(plan.deployment.runtime)
    if not has_own_context(runtime.name, plan.deployment.runtime_version):
        sentence = tr(
            "Assumed, since {runtime} by itself reserves for the most that the model takes"
        ).format(runtime=runtime.label)
        return tr("assumed"), sentence
    if not is_stated(runtime.name):
        return tr("assumed"), tr("Assumed: {runtime} has no context setting").format(
            runtime=runtime.label
        )
    return tr("default"), tr("What {runtime} takes here by itself").format(runtime=runtime.label)


def offers(state: State) -> tuple[Offer, ...]:
    """The first context, the longest that fits, and the most that the model takes."""
    if state.model is None:
        return ()
    plan, context = state.plan, state.context
    runtime = registry.get(plan.deployment.runtime)
    has_own = has_own_context(runtime.name, plan.deployment.runtime_version)
    found = [Offer(None, _first_words(state), plan.assumes_context)]
    longest = state.limits.max_context if state.limits else None
    most = state.model.spec.max_position_embeddings
    of_most = tr("{tokens}: the most the model takes")
    if not has_own:
        of_most = tr("{tokens}: {runtime}’s default, the most the model takes")
    offered = {longest: tr("{tokens}: the longest that fits"), most: of_most}
    for tokens, words in offered.items():
        if tokens and not (plan.assumes_context and tokens == context):
            shown = words.format(tokens=fmt.count(tokens), runtime=runtime.label)
            found.append(Offer(tokens, shown, tokens == context))
    return tuple(found)


def _first_words(state: State) -> str:
    plan = state.plan
    runtime = registry.get(plan.deployment.runtime)
    first = first_context(runtime.name, plan.deployment.runtime_version, state.model)
    if first is None and plan.assumes_context:
        first = state.context
    if first is None:
        return tr("{runtime}’s own on this machine").format(runtime=runtime.label)
    if not is_stated(runtime.name) or not has_own_context(
        runtime.name, plan.deployment.runtime_version
    ):
        return tr("{tokens}: what a new plan begins with").format(tokens=fmt.count(first))
    return tr("{tokens}: {runtime}’s default on this machine").format(
        tokens=fmt.count(first), runtime=runtime.label
    )
