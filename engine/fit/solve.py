"""The inverse: the largest plan that still fits, searched on the real budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from engine.errors import DeploymentError
from engine.fit.judge import judge, rank_margin
from engine.fit.verdict import Fit
from engine.formats.weights import FORMATS
from engine.runtimes import registry
from engine.runtimes.loading import loaded
from engine.runtimes.unpacking import held

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engine.architecture.model import Model
    from engine.budget.model import Budget
    from engine.deployment.spec import Deployment
    from engine.devices.device import Machine

LADDERS: Mapping[str, Mapping[str, float]] = {
    "vllm": {"bf16": 16, "fp8": 8, "awq-int4": 4.16},
    "sglang": {"bf16": 16, "fp8": 8, "awq-int4": 4.16},
    "transformers": {"bf16": 16, "int8": 8, "nf4": 4.13},
    "mlx": {
        "bf16": 16,
        "mlx-8bit": 8.5,
        "mlx-6bit": 6.5,
        "mlx-5bit": 5.5,
        "mlx-4bit": 4.5,
        "mlx-3bit": 3.5,
    },
    "llama.cpp": {
        "BF16": 16,
        "Q8_0": 8.5,
        "Q6_K": 6.6,
        "Q5_K_M": 5.7,
        "Q4_K_M": 4.8,
        "IQ4_XS": 4.3,
        "Q3_K_M": 3.9,
        "IQ3_XXS": 3.1,
        "Q2_K": 2.9,
    },
}
"""Weight formats that people choose among with their bits a weight, best first."""

_GGUF_BITS = {**LADDERS["llama.cpp"], "F16": 16, "MXFP4_MOE": 4.6}
_NO_LIMIT_STATED = 2**22
_MOST_REQUESTS = 2**16


class Limits(NamedTuple):
    """How far a plan can go before it stops fitting.

    0: not even the least fits. None: not known, and for the format also that none fits.
    """

    max_context: int | None
    """Tokens per request, at the plan's concurrency."""
    max_concurrency: int | None
    """Requests at once, at the plan's context."""
    best_weight_format: str | None
    """Of the stored format and those a rung lower."""


def limits(model: Model, deployment: Deployment, machine: Machine) -> Limits:
    """The largest context, the highest concurrency, the best weight format that still fit.

    A limit is exact: one token, or one request, more would not fit. Of a plan in doubt it is
    the least that is sure, and None where nothing is.

    Raises:
        DeploymentError: the deployment itself is impossible.
    """
    budget = registry.get(deployment.runtime).plan(model, deployment, machine)
    if judge(budget).fit is Fit.UNKNOWN:
        return Limits(None, None, None)
    context = max_context(model, deployment, machine)
    requests = max_concurrency(model, deployment, machine)
    best = best_weight_format(model, deployment, machine)
    if not budget.doubts:
        return Limits(context, requests, best)
    shortest = deployment.with_(max_model_len=1, n_ctx=None)
    single = deployment.with_(concurrency=1, n_ctx=None, batch_size=None)
    if not budget.is_complete:
        context, requests, best = 0, 0, None
    return Limits(
        context or _none_fits(model, shortest, machine),
        requests or _none_fits(model, single, machine),
        best,
    )


def _none_fits(model: Model, least: Deployment, machine: Machine) -> int | None:
    """0 where even the least plan certainly doesn't fit, else None: that is not known."""
    try:
        verdict = judge(registry.get(least.runtime).plan(model, least, machine))
    except DeploymentError:
        return None
    return 0 if verdict.fit is Fit.DOES_NOT_FIT else None


def margin_bytes(model: Model, deployment: Deployment, machine: Machine) -> int:
    """The likely margin of a plan, without its words.

    Raises:
        DeploymentError: the deployment is impossible.
    """
    return _margin_bytes(registry.get(deployment.runtime).plan(model, deployment, machine))


def _margin_bytes(budget: Budget) -> int:
    return min(rank_margin(rank).likely_bytes for rank in budget.ranks)


def max_context(model: Model, deployment: Deployment, machine: Machine) -> int:
    """The most tokens per request that fit, up to what the model's config allows.

    A plan may ask for more than that, which vLLM and SGLang refuse unless told to take it.
    """
    most = longest_context(model, deployment, machine)

    def fits(tokens: int) -> bool:
        # A total of llama.cpp's would pin what is searched for here.
        return _fits(model, deployment.with_(max_model_len=tokens, n_ctx=None), machine)

    try:
        state = registry.get(deployment.runtime).plan(model, deployment, machine).sequence_state
    except DeploymentError:
        return largest(fits, most)
    guess = None if state.pool_tokens is None else state.pool_tokens // deployment.concurrency
    return largest(fits, most, guess)


def longest_context(model: Model, deployment: Deployment, machine: Machine) -> int:
    """The most tokens per request that the config, or the plan beyond it, allows at all."""
    most = model.spec.max_position_embeddings or _NO_LIMIT_STATED
    asked = deployment.max_model_len
    family = registry.family(deployment.runtime)
    if family == "llama.cpp" and (asked or deployment.n_ctx):
        plan = registry.get(deployment.runtime).plan(model, deployment, machine)
        asked = plan.deployment.max_model_len
    return most if family in ("vllm", "sglang") else max(most, asked or 0)


def max_concurrency(model: Model, deployment: Deployment, machine: Machine) -> int:
    """The most requests at once that fit at the plan's context."""
    budget = registry.get(deployment.runtime).plan(model, deployment, machine)
    settled = budget.deployment

    def fits(requests: int) -> bool:
        plan = deployment.with_(
            max_model_len=settled.max_model_len,
            concurrency=requests,
            n_ctx=None,
            batch_size=None,
        )
        return _fits(model, plan, machine)

    pooled = budget.sequence_state.max_concurrency
    guess = None if pooled is None else int(pooled)
    return largest(fits, most_requests(model, deployment, machine), guess)


def most_requests(model: Model, deployment: Deployment, machine: Machine) -> int:
    """The most requests that run at once whatever the memory.

    Raises:
        DeploymentError: the deployment itself is impossible.
    """
    runtime = registry.get(deployment.runtime)
    settled = runtime.plan(model, deployment, machine).deployment
    family = registry.family(settled.runtime)
    if family == "vllm" and settled.max_num_seqs is not None:
        return settled.max_num_seqs * settled.data_parallel_size
    if family == "sglang" and settled.max_running_requests is not None:
        copies = 1 if settled.enable_dp_attention else settled.data_parallel_size
        return settled.max_running_requests * copies
    if family == "llama.cpp" and deployment.n_parallel is not None:
        return deployment.n_parallel
    if family == "llama.cpp":
        # Some programs, and some models in them, never serve more than one at once.
        more = deployment.with_(n_ctx=None, concurrency=settled.concurrency + 1)
        try:
            slots = runtime.plan(model, more, machine).deployment.n_parallel or more.concurrency
        except DeploymentError:
            return _MOST_REQUESTS
        return slots if slots < more.concurrency else _MOST_REQUESTS
    return _MOST_REQUESTS


def best_weight_format(model: Model, deployment: Deployment, machine: Machine) -> str | None:
    """What ``auto`` loads if it fits, else the best lower rung that does."""
    for name in rungs(model, deployment.runtime):
        if _fits(model, deployment.with_(weight_format=name), machine):
            return _loaded_name(model, deployment.runtime, machine) if name == "auto" else name
    return None


def _loaded_name(model: Model, runtime: str, machine: Machine) -> str:
    """What ``auto`` comes to in memory: Transformers unpacks what the device can't compute in."""
    if runtime == "transformers":
        found = held(model, "auto", machine.slots[0].device)
        if found.unpacked_from:
            return found.weight_format
    return loaded(model, runtime).name


def _fits(model: Model, plan: Deployment, machine: Machine) -> bool:
    """Whether the runtime would take ``plan`` and it fits: what it refuses doesn't."""
    try:
        budget = registry.get(plan.runtime).plan(model, plan, machine)
    except DeploymentError:
        return False
    if budget.refusals or _margin_bytes(budget) < 0:
        return False
    return not budget.doubts or judge(budget).fit is not Fit.UNKNOWN


def rungs(model: Model, runtime: str) -> tuple[str, ...]:
    """``auto`` and the formats below what it loads that ``runtime`` loads, best first."""
    offered = registry.get(runtime).weight_formats(model)
    bits = _bits(model, loaded(model, runtime).name)
    lower = tuple(
        name
        for name, rung in LADDERS.get(registry.family(runtime), {}).items()
        if rung < bits - 0.2 and name in offered
    )
    return ("auto", *lower) if "auto" in offered else lower


def _bits(model: Model, name: str) -> float:
    """Bits a weight of what is loaded where no format is chosen."""
    known = FORMATS.get(name)
    if known is not None:
        return known.bits
    if name in _GGUF_BITS and not model.is_gguf:
        return _GGUF_BITS[name]
    if model.stored and model.stored.parameters:
        return 8 * model.stored.size_bytes / model.stored.parameters
    return 16.0


def largest(fits: Callable[[int], bool], most: int, guess: int | None = None) -> int:
    """The largest number up to ``most`` that fits; 0 when 1 doesn't. ``fits`` is monotone.

    Args:
        fits: asked as seldom as possible.
        most: nothing beyond it is tried.
        guess: where to look first, in steps that double; any guess gives the same answer.
    """
    if fits(most):
        return most
    low, high = 0, most
    if guess is not None and low < guess < high:
        low, high = _around(fits, guess, most)
    while high - low > 1:
        middle = (low + high) // 2
        if fits(middle):
            low = middle
        else:
            high = middle
    return low


def _around(fits: Callable[[int], bool], guess: int, most: int) -> tuple[int, int]:
    """A number that fits (or 0) and one that doesn't, near ``guess``; ``most`` doesn't."""
    step = 1
    if fits(guess):
        low = guess
        while low + step < most and fits(low + step):
            low, step = low + step, 2 * step
        return low, min(most, low + step)
    high = guess
    while high > step and not fits(high - step):
        high, step = high - step, 2 * step
    return max(0, high - step), high
