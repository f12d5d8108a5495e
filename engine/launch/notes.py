"""What a person has to know before starting a plan: does it fit, and which flag keeps a margin."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.fit.verdict import Fit
from engine.source import by_hand, catalogue
from engine.text import printable
from engine.units import format_gib
from engine.words import figures, grouped, tr, tr_count, tr_later

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from engine.architecture.model import Model
    from engine.budget.model import Budget
    from engine.deployment.spec import Deployment
    from engine.sizing import Sizing


@dataclass(frozen=True, slots=True)
class _Margin:
    """A setting that is a share of the device, and what is said of it."""

    share: Callable[[Deployment], float | None]
    stated: str
    own: str
    """Where the plan leaves it to the runtime."""


_MARGINS = {
    "vllm": _Margin(
        lambda plan: plan.gpu_memory_utilization,
        stated=tr_later(
            "--gpu-memory-utilization {share} is a margin: vLLM takes up to {taken} of {total} "
            "and leaves {left} to others."
        ),
        own=tr_later(
            "vLLM’s own --gpu-memory-utilization is {share}: it takes up to {taken} of {total} "
            "and leaves {left} to others."
        ),
    ),
    "sglang": _Margin(
        lambda plan: plan.mem_fraction_static,
        stated=tr_later(
            "--mem-fraction-static {share} is a margin: weights and pool take up to {taken} of "
            "{total}, {left} is left for activations and graphs."
        ),
        own=tr_later(
            "SGLang’s own --mem-fraction-static is {share} here: weights and pool take up to "
            "{taken} of {total}, {left} is left for activations and graphs."
        ),
    ),
}


def of(sizing: Sizing, plan: Deployment, *, capacity_known: bool = True) -> tuple[str, ...]:
    """One sentence each, the gravest first.

    Args:
        sizing: the answer to the plan.
        plan: the plan as it was asked for, before defaults.
        capacity_known: whether the device is; else nothing is said of whether it fits.
    """
    budget = sizing.budget
    return (
        *(_verdict(sizing) if capacity_known else ()),
        _planned(budget, plan, capacity_known=capacity_known),
        *(_margin(budget, plan) if capacity_known else ()),
        *_scales(budget),
        *_named(budget.model),
    )


def _verdict(sizing: Sizing) -> Iterator[str]:
    verdict = sizing.verdict
    if verdict.outcome is Fit.FITS:
        return
    yield f"{verdict.headline}. {verdict.detail}".strip()


def _planned(budget: Budget, plan: Deployment, *, capacity_known: bool) -> str:
    context = plan.max_model_len or budget.deployment.max_model_len
    count = budget.deployment.concurrency
    shown = {"count": grouped(count), "tokens": grouped(context or 0)}
    if context and context > 0:
        words = tr_count(
            "{count} request of {tokens} tokens",
            "{count} requests of {tokens} tokens each at once",
            count,
        )
    else:
        words = tr_count("{count} request", "{count} requests at once", count)
    parts = [words.format(**shown)]
    if capacity_known:
        parts.append(tr("on {devices}").format(devices=_devices(budget)))
    return tr("Planned for {what}.").format(what=" ".join(parts))


def _devices(budget: Budget) -> str:
    counts = Counter(printable(rank.slot.device.name, 80) for rank in budget.ranks)
    return tr(" and ").join(n if k == 1 else f"{k} × {n}" for n, k in counts.items())


def _margin(budget: Budget, plan: Deployment) -> Iterator[str]:
    """What a share of the device leaves: it looks like a speed knob and is a margin."""
    margin = _MARGINS.get(plan.runtime)
    if margin is None or (plan.runtime == "vllm" and plan.kv_cache_memory_bytes is not None):
        return
    share = margin.share(budget.deployment)
    if share is None:
        return  # The plan's own rules decided, and nobody knows by which share.
    # Runtimes take their share of what the device states to programs, not of what is soldered on.
    line = budget.ranks[0].slot.device.allocatable.likely_bytes
    taken = int(line * share)
    words = tr(margin.own if margin.share(plan) is None else margin.stated)
    yield words.format(
        share=figures(f"{share:.3g}"),
        taken=format_gib(taken, digits=1),
        total=format_gib(line, digits=1),
        left=format_gib(line - taken, digits=1),
    )


def _scales(budget: Budget) -> Iterator[str]:
    name = budget.deployment.kv_cache_dtype
    if budget.deployment.runtime in ("vllm", "sglang") and name in ("fp8", "fp8_e4m3"):
        yield tr(
            "An FP8 KV cache takes its scales from the checkpoint; without any they are 1.0, so "
            "check the answers."
        )


def _named(model: Model) -> Iterator[str]:
    """What the name in the command needs of the person who runs it."""
    if model.source == by_hand.SOURCE:
        yield tr(
            "{model} stands for your model: put its name on the Hub or its folder there."
        ).format(model=model.id)
    entry = catalogue.find(model.id)
    if entry is not None and entry.gated and entry.id == model.id:
        yield tr(
            "{model} is gated: accept its terms on the Hub, and have a token that may read it in "
            "HF_TOKEN, never in the command."
        ).format(model=model.id)
