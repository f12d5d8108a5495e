"""What would fit: the smallest changes of a plan, each checked on the real budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.devices.device import DeviceKind
from engine.errors import DeploymentError
from engine.fit.judge import judge
from engine.fit.solve import largest, max_concurrency, max_context, rungs
from engine.fit.verdict import Fit
from engine.formats.weights import FORMATS
from engine.runtimes import beneath, foreign, registry
from engine.runtimes.loading import loaded
from engine.words import grouped, tr

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from engine.architecture.model import Model
    from engine.deployment.spec import Deployment
    from engine.devices.device import Machine
    from engine.fit.verdict import Verdict

    _Search = Callable[[Model, Deployment, Machine], int]

_SHORTEST = 1024
"""A context under this is no longer the plan a person asked for."""
_MOST_SHOWN = 6
_MOST_PAIRS = 3


@dataclass(frozen=True, slots=True)
class Change:
    """One change that makes the plan fit."""

    label: str
    """``Context 21k``, ``FP8 KV cache``, ``1 at a time``."""
    deployment: Deployment
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class _Idea:
    label: str
    deployment: Deployment
    cost: float
    """How much it gives up; only the order matters."""


def changes(model: Model, deployment: Deployment, machine: Machine) -> tuple[Change, ...]:
    """The changes that make ``deployment`` fit, those that give up least first.

    Single changes are tried first; only when none of them helps, pairs. A change that does not
    truly fit (or is only tight and no better than none) is left out.
    """
    found = _kept(model, machine, _single_ideas(model, deployment, machine))
    if not found:
        pairs = _kept(model, machine, _paired_ideas(model, deployment, machine))
        found = pairs[:_MOST_PAIRS]
    found += _kept(model, machine, _other_runtime(model, deployment, machine))
    return tuple(change for _, change in found[:_MOST_SHOWN])


def _kept(model: Model, machine: Machine, ideas: Iterator[_Idea]) -> list[tuple[float, Change]]:
    kept: list[tuple[float, Change]] = []
    for idea in ideas:
        verdict = _verdict(model, idea.deployment, machine)
        if verdict is not None and verdict.fit in (Fit.FITS, Fit.TIGHT):
            kept.append((idea.cost, Change(idea.label, idea.deployment, verdict)))
    return sorted(kept, key=lambda entry: entry[0])


def _verdict(model: Model, deployment: Deployment, machine: Machine) -> Verdict | None:
    """The verdict on a plan; None where the runtime would not start it."""
    try:
        budget = registry.get(deployment.runtime).plan(model, deployment, machine)
    except DeploymentError:
        return None
    return None if budget.refusals else judge(budget)


def _single_ideas(model: Model, deployment: Deployment, machine: Machine) -> Iterator[_Idea]:
    yield from _that_starts(model, deployment, machine)
    yield from _first_that_fits(model, machine, _more_devices(deployment, machine))
    yield from _shorter(model, deployment, machine)
    yield from _smaller_cache(deployment)
    yield from _fewer(model, deployment, machine)
    yield from _smaller_weights(model, deployment, machine)
    yield from _offloaded(model, deployment, machine)


def _that_starts(model: Model, deployment: Deployment, machine: Machine) -> Iterator[_Idea]:
    """What lets a runtime start that has room: fewer sequences a step, or no graphs."""
    budget = registry.get(deployment.runtime).plan(model, deployment, machine)
    asked = budget.deployment.max_num_seqs
    if not budget.refusals or asked is None:
        return
    most = largest(
        lambda n: _verdict(model, deployment.with_(max_num_seqs=n), machine) is not None, asked
    )
    if deployment.concurrency <= most < asked:
        yield _Idea(
            tr("max_num_seqs {most}").format(most=most), deployment.with_(max_num_seqs=most), 0.05
        )
    if not deployment.enforce_eager:
        yield _Idea(tr("No CUDA graphs"), deployment.with_(enforce_eager=True), 0.06)


def _paired_ideas(model: Model, deployment: Deployment, machine: Machine) -> Iterator[_Idea]:
    """Two or three changes together: more devices, smaller weights, smaller cache, fewer."""
    wider = [_Idea("", deployment, 0), *_more_devices(deployment, machine)]
    for device_idea in wider:
        for rung, name in enumerate(rungs(model, deployment.runtime)):
            words = (
                tr("{format_words} weights").format(format_words=format_words(name))
                if name != "auto"
                else ""
            )
            base = device_idea.deployment.with_(weight_format=name)
            cost = device_idea.cost + 2 * rung
            label = _joined(device_idea.label, words)
            if device_idea.label and words:
                yield _Idea(label, base, cost)
            for cache in _smaller_cache(base):
                yield _Idea(_joined(label, cache.label), cache.deployment, cost + cache.cost)
                single = cache.deployment.with_(concurrency=1, batch_size=None)
                yield _Idea(_joined(label, cache.label, tr("1 at a time")), single, cost + 2.5)
            for idea in _shorter(model, base.with_(concurrency=1, batch_size=None), machine):
                parts = _joined(label, idea.label, tr("1 at a time"))
                yield _Idea(parts, idea.deployment, cost + 1 + idea.cost)


def _joined(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


def _more_devices(deployment: Deployment, machine: Machine) -> Iterator[_Idea]:
    if registry.family(deployment.runtime) == "llama.cpp":
        return
    there = len(machine.slots) // (
        deployment.pipeline_parallel_size * deployment.data_parallel_size
    )
    size = deployment.tensor_parallel_size * 2
    while size <= there:
        yield _Idea(
            tr("TP {size}").format(size=size),
            deployment.with_(tensor_parallel_size=size),
            0.1 * size,
        )
        size *= 2


def _first_that_fits(model: Model, machine: Machine, ideas: Iterator[_Idea]) -> Iterator[_Idea]:
    for idea in ideas:
        verdict = _verdict(model, idea.deployment, machine)
        if verdict is not None and verdict.fit in (Fit.FITS, Fit.TIGHT):
            yield idea
            return


def _shorter(model: Model, deployment: Deployment, machine: Machine) -> Iterator[_Idea]:
    asked = _context(model, deployment, machine)
    most = _round_down(_quietly(max_context, model, deployment, machine))
    if _SHORTEST <= most < asked:
        plan = deployment.with_(max_model_len=most, n_ctx=None)
        if deployment.prompt_len is not None:
            plan = plan.with_(prompt_len=min(deployment.prompt_len, most))
        yield _Idea(
            tr("Context {tokens_words}").format(tokens_words=tokens_words(most)),
            plan,
            2.5 * (1 - most / asked),
        )


def _context(model: Model, deployment: Deployment, machine: Machine) -> int:
    """The plan's context, the runtime's default where none was given."""
    asked = deployment.max_model_len
    if asked is not None and asked > 0 and not deployment.n_ctx:
        return asked
    plan = registry.get(deployment.runtime).plan(model, deployment, machine)
    return plan.deployment.max_model_len or 0


def _smaller_cache(deployment: Deployment) -> Iterator[_Idea]:
    family = registry.family(deployment.runtime)
    if family == "vllm" and deployment.kv_cache_dtype in ("auto", "bf16", "fp16"):
        yield _Idea(tr("FP8 KV cache"), deployment.with_(kv_cache_dtype="fp8"), 1.1)
    if family == "sglang" and deployment.kv_cache_dtype in ("auto", "bf16"):
        yield _Idea(tr("FP8 KV cache"), deployment.with_(kv_cache_dtype="fp8_e4m3"), 1.1)
    if family == "mlx" and deployment.kv_bits is None:
        yield _Idea(tr("8 bit KV cache"), deployment.with_(kv_bits=8), 1.1)
    if family == "llama.cpp" and deployment.cache_type_k in (None, "f16", "bf16"):
        plan = deployment.with_(cache_type_k="q8_0", cache_type_v="q8_0")
        yield _Idea(tr("Q8_0 KV cache"), plan, 1.1)


def _fewer(model: Model, deployment: Deployment, machine: Machine) -> Iterator[_Idea]:
    most = _quietly(max_concurrency, model, deployment, machine)
    if 0 < most < deployment.concurrency:
        label = tr("1 at a time") if most == 1 else tr("{most} at once").format(most=most)
        plan = deployment.with_(concurrency=most, batch_size=None)
        if deployment.n_ctx:
            context = _context(model, deployment, machine)
            plan = plan.with_(max_model_len=context, n_ctx=None)
        yield _Idea(label, plan, 1.2 + 1 - most / deployment.concurrency)


def _smaller_weights(model: Model, deployment: Deployment, machine: Machine) -> Iterator[_Idea]:
    names = rungs(model, deployment.runtime)
    after = names.index(deployment.weight_format) + 1 if deployment.weight_format in names else 0
    ideas = (
        _Idea(
            tr("{format_words} weights").format(format_words=format_words(name)),
            deployment.with_(weight_format=name),
            3 + rung,
        )
        for rung, name in enumerate(names[after:])
    )
    yield from _first_that_fits(model, machine, ideas)


def _offloaded(model: Model, deployment: Deployment, machine: Machine) -> Iterator[_Idea]:
    """llama.cpp's own way out: experts, then layers, in host RAM. It fits, and it is slower."""
    if registry.family(deployment.runtime) != "llama.cpp":
        return
    try:
        found = beneath.placements(model, deployment, machine)
    except DeploymentError:
        return
    for plan in found:
        if plan.n_cpu_moe != deployment.n_cpu_moe:
            layers = (
                tr("1 layer")
                if plan.n_cpu_moe == 1
                else tr("{n_cpu_moe} layers").format(n_cpu_moe=plan.n_cpu_moe)
            )
            label = tr("Experts of {layers} in RAM").format(layers=layers)
            yield _Idea(label, plan, 4.5)
        else:
            yield _Idea(
                tr("{n_gpu_layers} layers on the GPU").format(n_gpu_layers=plan.n_gpu_layers),
                plan,
                5,
            )


def _other_runtime(model: Model, deployment: Deployment, machine: Machine) -> Iterator[_Idea]:
    """llama.cpp with the best mix that fits."""
    if registry.family(deployment.runtime) == "llama.cpp" or "llama.cpp" not in registry.RUNTIMES:
        return
    if machine.slots[0].device.kind is not DeviceKind.HOST and deployment.ranks > 1:
        return
    plan = foreign.without(deployment, "llama.cpp").with_(
        runtime="llama.cpp",
        runtime_version=None,
        kv_cache_dtype="auto",
        max_model_len=_context(model, deployment, machine),
    )
    auto = loaded(model, "llama.cpp").name
    names = (auto if name == "auto" else name for name in rungs(model, "llama.cpp"))
    ideas = (
        _Idea(f"{name}, llama.cpp", plan.with_(weight_format=name), 6)
        for name in names
        if name not in ("BF16", "F16")
    )
    yield from _first_that_fits(model, machine, ideas)


def _quietly(search: _Search, model: Model, deployment: Deployment, machine: Machine) -> int:
    """The result of a search, 0 where the plan is impossible."""
    try:
        return search(model, deployment, machine)
    except DeploymentError:
        return 0


def format_words(name: str) -> str:
    """A weight format as a button says it: ``FP8``, ``AWQ 4-bit``, ``Q6_K``."""
    short = {"awq-int4": "AWQ 4-bit", "nf4": "NF4", "int8": "INT8", "fp8": "FP8", "bf16": "BF16"}
    if name in short:
        return short[name]
    known = FORMATS.get(name)
    return known.label if known else name


def tokens_words(tokens: int) -> str:
    """``21k`` for 21,504 tokens; the plain number where it is no whole number of thousands."""
    return f"{tokens // 1024}k" if tokens % 1024 == 0 else grouped(tokens)


def _round_down(tokens: int) -> int:
    """A length that people would type: a whole number of 1,024 tokens, or of 256 when short."""
    step = 1024 if tokens >= 4096 else 256
    return tokens // step * step
