"""The smallest changes that would have let a run live, each checked by the sizing engine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.budget.model import Region
from engine.deployment.spec import Deployment
from engine.errors import DeploymentError
from engine.evidence import Basis, exactly
from engine.fit.changes import changes, tokens_words
from engine.fit.verdict import Fit
from engine.logs import ideas
from engine.logs.diagnosis import Cause, Kind
from engine.logs.reading import Phase
from engine.runtimes import foreign, registry
from engine.sizing import size
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.architecture.model import Model
    from engine.devices.device import Machine
    from engine.sizing import Sizing

_MOST = 4
_SHARES = ("gpu_memory_utilization", "mem_fraction_static")
_LEAST_SHARE, _MOST_SHARE = 50, 95
"""Hundredths: with less a server is hardly worth its card, with more nothing is left beside it."""
_STEPPED = frozenset({
    "max_num_seqs", "max_running_requests", "max_num_batched_tokens", "chunked_prefill_size",
    "n_ubatch", "prefill_step_size", "prefill_chunk_size", "gpu_memory_utilization",
    "mem_fraction_static", "max_model_len", "n_ctx", "concurrency", "batch_size",
})  # fmt: skip
"""Settings of which less is tried in steps."""
_LIMITS = ("max_num_seqs", "max_running_requests")
"""What the runtimes call the requests that they run at once."""
_CACHES = ("fp8", "fp8_e4m3")
_OF_THE_HOST = frozenset(
    {"killed", "killed_in_container", "killed_by_signal", "host_short", "host_out"}
)
"""Failures of the computer's own memory."""
_BESIDE_THE_POOL = frozenset({Region.ACTIVATIONS, Region.CUDA_GRAPHS, Region.RUNTIME})
_JOINED = "expandable_segments:True"
"""What PyTorch calls it in PYTORCH_CUDA_ALLOC_CONF."""
_FITS = (Fit.FITS, Fit.TIGHT)


@dataclass(frozen=True, slots=True)
class Remedy:
    """One change, and what it would have left."""

    label: str
    margin_bytes: int | None = None
    """To spare with it; None where the engine cannot work it out."""
    deployment: Deployment | None = None
    """The plan with it; None where it is no change of the plan."""
    fit: Fit | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """The run as a plan, on its device as it was when it failed."""

    model: Model
    deployment: Deployment
    machine: Machine
    cause: Cause

    def sized(self, deployment: Deployment, machine: Machine | None = None) -> Sizing | None:
        """The plan's sizing; None where it is impossible."""
        try:
            return size(self.model, deployment, machine or self.machine)
        except DeploymentError:
            return None

    def remedy(
        self, label: str, deployment: Deployment, machine: Machine | None = None
    ) -> Remedy | None:
        """``deployment`` as a remedy, if it fits."""
        found = self.sized(deployment, machine)
        if found is None or found.verdict.outcome not in _FITS:
            return None
        verdict = found.verdict
        changed = None if deployment == self.deployment else deployment
        return Remedy(label, verdict.margin_bytes, changed, verdict.fit)

    @property
    def wanted_bytes(self) -> int:
        """By how much a region has to shrink; by anything where nobody knows."""
        return max(1, self.cause.short_bytes or self.cause.asked_bytes or 0)

    def if_enough(
        self, label: str, deployment: Deployment, before: int, regions: tuple[Region, ...]
    ) -> Iterator[Remedy]:
        """``deployment`` as a remedy, if it fits and takes what was short from ``regions``."""
        found = self.sized(deployment)
        if found is None or found.verdict.outcome not in _FITS:
            return
        if before - _of(found, regions) >= self.wanted_bytes:
            yield self.checked(label, deployment, found)

    def checked(self, label: str, deployment: Deployment, found: Sizing) -> Remedy:
        """A change that makes the region smaller; whether by enough, the shortage says."""
        if self.cause.short_bytes is None:
            return Remedy(label, deployment=deployment)
        return Remedy(label, found.verdict.margin_bytes, deployment, found.verdict.fit)


def remedies(
    model: Model, deployment: Deployment, machine: Machine, cause: Cause
) -> tuple[Remedy, ...]:
    """What would have helped, the smallest change first.

    Args:
        model: the model that ran.
        deployment: the plan, as the log states it.
        machine: the device of the run, with what others held when it started.
        cause: why it failed.
    """
    run = _Run(model, deployment, at_failure(machine, cause), cause)
    if cause.kind is Kind.TAKEN or (cause.kind is Kind.REFUSED and cause.region is Region.FOREIGN):
        found = _beside_others(run, machine)
    elif cause.kind is Kind.SPILLED:
        found = _on_the_device(run)
    elif cause.kind is Kind.FRAGMENTATION:
        found = _in_larger_pieces(run)
    elif cause.code in _OF_THE_HOST:
        found = _off_the_host(run)
    elif cause.region is None or cause.kind is Kind.UNKNOWN:
        found = iter(())
    elif cause.code == "prompt_too_long" or (cause.code == "pool_short" and _is_fixed(deployment)):
        found = _longer(run)
    else:
        found = _smaller(run)
    kept: dict[object, Remedy] = {}
    for remedy in found:
        kept.setdefault(_key(remedy, deployment), remedy)
        if len(kept) == _MOST:
            break
    return tuple(kept.values())


def _key(remedy: Remedy, plan: Deployment) -> object:
    """What tells remedies apart: of steps of one setting the first is enough.

    Of formats each is an offer of its own, where it is known what it gives.
    """
    changed = remedy.deployment
    if changed is None:
        return remedy.label
    names = Deployment.__slots__
    found = tuple(name for name in names if getattr(changed, name) != getattr(plan, name))
    is_format = not set(found) <= _STEPPED and remedy.margin_bytes is not None
    return remedy.label if is_format else found


def at_failure(machine: Machine, cause: Cause) -> Machine:
    """``machine`` with what others held when the run failed."""
    held = cause.others_before_bytes if cause.others_bytes is None else cause.others_bytes
    return machine if held is None else with_others(machine, held)


def with_others(machine: Machine, held_bytes: int) -> Machine:
    """``machine`` where others hold so much of each device, as a log states it."""
    estimate = exactly(held_bytes, Basis.MEASURED, tr("stated by the log"))
    slots = tuple(replace(slot, foreign=estimate) for slot in machine.slots)
    return replace(machine, slots=slots)


def _beside_others(run: _Run, before: Machine) -> Iterator[Remedy]:
    """Without the others, or with a share that leaves them their part."""
    cause = run.cause
    # Those that took the memory while it ran are gone; those before it are, where it was refused.
    stays = cause.others_before_bytes is not None and cause.kind is not Kind.REFUSED
    without = before if stays else before.emptied()
    alone = run.remedy(tr("Without the others"), run.deployment, without)
    if alone is not None:
        yield alone
    starting: Deployment | None = None
    for label, deployment in _shares(run, falling=True):
        found = run.sized(deployment)
        if found is None or found.budget.refusals:
            continue
        if found.verdict.outcome in _FITS:
            yield Remedy(label, found.verdict.margin_bytes, deployment, found.verdict.fit)
            return
        if starting is None and found.verdict.binding_region is not Region.FOREIGN:
            starting = deployment
            for change in changes(run.model, deployment, run.machine):
                if change.deployment.runtime == deployment.runtime:
                    verdict = change.verdict
                    words = tr("{label}, {label_2}").format(label=label, label_2=change.label)
                    yield Remedy(words, verdict.margin_bytes, change.deployment, verdict.fit)
            return


def _is_fixed(deployment: Deployment) -> bool:
    """Whether the cache is as long as its user said, and no longer where there is room."""
    return registry.family(deployment.runtime) == ideas.LLAMA_CPP


def _longer(run: _Run) -> Iterator[Remedy]:
    """A context that holds what was asked for, or as long again; else a pool that holds more."""
    planned = run.sized(run.deployment)
    if planned is None:
        return
    now = planned.budget.deployment.max_model_len or 0
    context = 2 * now
    while context and context < (run.cause.prompt_tokens or 0):
        context *= 2
    plan = run.deployment.with_(max_model_len=context, n_ctx=None)
    words = tr("Context {tokens_words}").format(tokens_words=tokens_words(context))
    longer = run.remedy(words, plan) if context else None
    if longer is not None:
        yield longer
    elif planned.budget.ranks[0].has_pool:
        yield from _for_the_pool(run, planned)


def _shares(run: _Run, *, falling: bool) -> Iterator[tuple[str, Deployment]]:
    """The plan with other shares of the device, by hundredths away from its own."""
    planned = run.sized(run.deployment)
    for name in _SHARES:
        if planned is None or not foreign.has(run.deployment.runtime, name):
            continue
        share: float | None = getattr(planned.budget.deployment, name)
        if share is None:
            continue
        now = round(share * 100)
        steps = range(now - 1, _LEAST_SHARE - 1, -1) if falling else range(now + 1, _MOST_SHARE + 1)
        for hundredths in steps:
            words = tr("Share {share}").format(share=f"{hundredths / 100:.2f}")
            if name == "gpu_memory_utilization":
                words = tr("Utilisation {share}").format(share=f"{hundredths / 100:.2f}")
            yield words, run.deployment.with_(**{name: hundredths / 100})


def _on_the_device(run: _Run) -> Iterator[Remedy]:
    """All layers on the GPU, and what else that takes."""
    whole = ideas.all_on_the_gpu(run.deployment)
    alone = run.remedy(tr("All layers on the GPU"), whole)
    if alone is not None:
        yield alone
        return
    for change in changes(run.model, whole, run.machine):
        plan = change.deployment
        if plan.n_gpu_layers == whole.n_gpu_layers and plan.n_cpu_moe == whole.n_cpu_moe:
            yield Remedy(change.label, change.verdict.margin_bytes, plan, change.verdict.fit)


def _in_larger_pieces(run: _Run) -> Iterator[Remedy]:
    """An allocator that joins its pieces, or as much left beside the pool as was asked for."""
    yield Remedy(_JOINED)
    planned = run.sized(run.deployment)
    if planned is None:
        return
    if planned.budget.ranks[0].has_pool:
        yield from _beside_the_pool(run, planned)
    for label, deployment in ideas.shorter_steps(run.deployment, planned.budget.deployment):
        before = _of(planned, (Region.ACTIVATIONS,))
        yield from run.if_enough(label, deployment, before, (Region.ACTIVATIONS,))


def _off_the_host(run: _Run) -> Iterator[Remedy]:
    """What a plan keeps in the computer's own memory, moved to the GPU or made smaller."""
    planned = run.sized(run.deployment)
    before = None if planned is None else _on_the_host(planned)
    if planned is None or before is None:
        return
    for label, deployment in _host_ideas(run, planned):
        found = run.sized(deployment)
        if found is None or found.verdict.outcome not in _FITS:
            continue
        if before - (_on_the_host(found) or 0) >= run.wanted_bytes:
            yield run.checked(label, deployment, found)


def _host_ideas(run: _Run, planned: Sizing) -> Iterator[tuple[str, Deployment]]:
    if any(slot is not run.machine.host for slot in run.machine.slots):
        yield tr("All layers on the GPU"), ideas.all_on_the_gpu(run.deployment)
    yield from ideas.fewer_tokens(run.deployment, planned.budget.deployment)
    yield from ideas.of(run.model, run.deployment, planned, Region.WEIGHTS)


def _on_the_host(sizing: Sizing) -> int | None:
    """What the plan holds of the computer's own memory; None where it holds none that is known."""
    budget = sizing.budget
    host = next((rank for rank in budget.ranks if rank.slot is budget.machine.host), None)
    return None if host is None else host.planned.likely_bytes


def _smaller(run: _Run) -> Iterator[Remedy]:
    """The plan's own changes where it does not fit; else what shrinks the region by enough."""
    run = _as_short_as_it_was(run)
    planned = run.sized(run.deployment)
    if planned is None:
        return
    if planned.verdict.fit is Fit.DOES_NOT_FIT or planned.budget.refusals:
        yield from _first_that_fits(run, _shares(run, falling=False))
        if run.cause.region in _BESIDE_THE_POOL:
            # Nothing of this fits beside the pool: a smaller one, or smaller steps, do.
            yield from _first_that_fits(run, _shares(run, falling=True))
            steps = ideas.shorter_steps(run.deployment, planned.budget.deployment)
            yield from _first_that_fits(run, steps)
        for change in changes(run.model, run.deployment, run.machine):
            verdict = change.verdict
            yield Remedy(change.label, verdict.margin_bytes, change.deployment, verdict.fit)
        return
    yield from _by_region(run, planned)


def _first_that_fits(run: _Run, tried: Iterator[tuple[str, Deployment]]) -> Iterator[Remedy]:
    for label, deployment in tried:
        found = run.remedy(label, deployment)
        if found is not None:
            yield found
            return


def _as_short_as_it_was(run: _Run) -> _Run:
    """The run on a device on which its plan is short by what the log says.

    What was short beyond our figures counts as held, so that no change is promised that would
    have been too small. A pool takes what is left, and hides no such thing.
    """
    planned, short = run.sized(run.deployment), run.cause.short_bytes
    if planned is None or not short or planned.budget.ranks[0].has_pool:
        return run
    beyond = planned.verdict.margin_bytes + short
    if beyond <= 0:
        return run
    held = max(slot.foreign.likely_bytes for slot in run.machine.slots)
    return replace(run, machine=with_others(run.machine, held + beyond))


def _by_region(run: _Run, planned: Sizing) -> Iterator[Remedy]:
    """The plan fits by our figures and yet it failed: take from the region what was short."""
    cause = run.cause
    if cause.kind is Kind.CONCURRENCY and planned.budget.ranks[0].has_pool:
        yield from _for_the_pool(run, planned)
        return
    region = cause.region or Region.WEIGHTS
    # Before the pool is taken, whatever makes room for the step does.
    early = not cause.was_up and cause.phase not in (Phase.SERVE, Phase.CAPTURE, Phase.POOL)
    regions = (region, Region.WEIGHTS) if early and region is Region.ACTIVATIONS else (region,)
    for each in regions:
        found = ideas.of(run.model, run.deployment, planned, each)
        if cause.phase is Phase.SAMPLER or cause.code == "sampler":
            found = (*ideas.fewer_sequences(run.deployment, planned.budget.deployment), *found)
        for label, deployment in found:
            yield from run.if_enough(label, deployment, _of(planned, regions), regions)
    if cause.was_up or cause.phase in (Phase.SERVE, Phase.CAPTURE) or region is Region.RUNTIME:
        yield from _beside_the_pool(run, planned)


def _beside_the_pool(run: _Run, planned: Sizing) -> Iterator[Remedy]:
    """The pool is taken by then: a smaller share leaves the rest to what grows beside it."""
    headroom = (Region.HEADROOM,)
    for label, deployment in _shares(run, falling=True):
        found = run.sized(deployment)
        if found is None or found.verdict.outcome not in _FITS:
            return
        if _of(found, headroom) - _of(planned, headroom) >= run.wanted_bytes:
            yield run.checked(label, deployment, found)
            return


def _for_the_pool(run: _Run, planned: Sizing) -> Iterator[Remedy]:
    """As many requests as the pool holds at full length, or tokens that take less of it."""
    most = int(planned.budget.sequence_state.max_concurrency or 0)
    name = next((n for n in _LIMITS if foreign.has(run.deployment.runtime, n)), "")
    if most and name:
        plan = run.deployment.with_(concurrency=most, **{name: most})
        found = run.remedy(f"{name} {most}", plan)
        if found is not None:
            yield found
    for cache in _CACHES:
        if cache in registry.get(run.deployment.runtime).kv_cache_dtypes:
            found = run.remedy(tr("FP8 KV cache"), run.deployment.with_(kv_cache_dtype=cache))
            if found is not None and run.deployment.kv_cache_dtype != cache:
                yield found
            return


def _of(sizing: Sizing, regions: tuple[Region, ...]) -> int:
    """What the fullest rank holds of ``regions``; of the cache what the plan needs."""
    return sum(_held(sizing, region) for region in regions)


def _held(sizing: Sizing, region: Region) -> int:
    """What the fullest rank holds of ``region``; of the cache what the plan needs."""
    if region in (Region.KV_CACHE, Region.RECURRENT_STATE):
        return max(rank.needed.likely_bytes for rank in sizing.budget.ranks)
    return max(rank.regions[region].estimate.likely_bytes for rank in sizing.budget.ranks)
