"""Changes of a plan that make one of its regions smaller, the smallest change first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.budget.model import Region
from engine.fit.changes import format_words, tokens_words
from engine.fit.solve import rungs
from engine.runtimes import foreign, registry
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.architecture.model import Model
    from engine.deployment.spec import Deployment
    from engine.sizing import Sizing

_STEPS = (
    "max_num_batched_tokens", "chunked_prefill_size", "n_ubatch", "prefill_step_size",
    "prefill_chunk_size",
)  # fmt: skip
"""What the runtimes call the tokens that they read in one pass."""
_SHORTEST_STEP = 256
LLAMA_CPP = "llama.cpp"


def of(
    model: Model, plan: Deployment, planned: Sizing, region: Region
) -> Iterator[tuple[str, Deployment]]:
    """Changes that make ``region`` smaller, the smallest first."""
    full = planned.budget.deployment
    if region is Region.ACTIVATIONS:
        yield from shorter_steps(plan, full)
    elif region is Region.CUDA_GRAPHS:
        yield tr("No CUDA graphs"), plan.with_(enforce_eager=True)
    elif region in (Region.KV_CACHE, Region.RECURRENT_STATE):
        yield from fewer_tokens(plan, full)
    elif region is Region.WEIGHTS:
        there = len(planned.budget.machine.slots) // plan.pipeline_parallel_size
        if 2 * plan.tensor_parallel_size <= there:
            wider = 2 * plan.tensor_parallel_size
            yield tr("TP {size}").format(size=wider), plan.with_(tensor_parallel_size=wider)
        for name in rungs(model, plan.runtime):
            words = tr("{format_words} weights").format(format_words=format_words(name))
            yield words, plan.with_(weight_format=name)


def shorter_steps(plan: Deployment, full: Deployment) -> Iterator[tuple[str, Deployment]]:
    """Passes of fewer tokens, and of fewer sequences; ``full`` has the runtime's own sizes."""
    for name in _STEPS:
        step: int | None = getattr(full, name) if foreign.has(plan.runtime, name) else None
        while step is not None and step // 2 >= _SHORTEST_STEP:
            step //= 2
            words = tr("Steps of {tokens} tokens").format(tokens=tokens_words(step))
            yield words, plan.with_(**{name: step})
    yield from fewer_sequences(plan, full)


def fewer_sequences(plan: Deployment, full: Deployment) -> Iterator[tuple[str, Deployment]]:
    """Fewer sequences a step, down to those that the plan is for."""
    if full.max_num_seqs and full.max_num_seqs > 1 and foreign.has(plan.runtime, "max_num_seqs"):
        seqs = full.max_num_seqs // 2
        while seqs >= max(1, plan.concurrency):
            yield tr("max_num_seqs {seqs}").format(seqs=seqs), plan.with_(max_num_seqs=seqs)
            seqs //= 2


def fewer_tokens(plan: Deployment, full: Deployment) -> Iterator[tuple[str, Deployment]]:
    """Shorter contexts, then fewer requests at once."""
    context = full.max_model_len or 0
    while context >= 2048:
        context //= 2
        words = tr("Context {tokens_words}").format(tokens_words=tokens_words(context))
        yield words, plan.with_(max_model_len=context, n_ctx=None)
    at_once = plan.concurrency
    while at_once > 1:
        at_once //= 2
        words = tr("{most} at once").format(most=at_once)
        yield words, plan.with_(concurrency=at_once, batch_size=None)


def all_on_the_gpu(plan: Deployment) -> Deployment:
    """``plan`` with nothing left to the computer's own memory, where its runtime can say so."""
    if registry.family(plan.runtime) == LLAMA_CPP:
        return plan.with_(n_gpu_layers=-2, n_cpu_moe=0)
    return plan.with_(device_map="none") if foreign.has(plan.runtime, "device_map") else plan
