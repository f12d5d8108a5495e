"""All inverse questions of one plan, each by search on the real budget, with what binds it.

No formula is turned around: every answer is the last plan that fits of a row of plans that want
more and more, and what stops it is read off the verdict on the next.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from engine.devices import catalogue
from engine.devices.device import DeviceKind
from engine.errors import DeploymentError
from engine.fit import solve
from engine.fit.judge import judge
from engine.fit.verdict import Fit
from engine.runtimes import registry
from engine.words import grouped, tr, tr_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from engine.architecture.model import Model
    from engine.budget.model import Region
    from engine.deployment.spec import Deployment
    from engine.devices.device import Machine
    from engine.fit.verdict import Verdict

_MOST_STEP_TOKENS = 2**20
_MOST_DEVICES = 64
"""Beyond that a plan is one of many machines."""
_QUANTISED = {"cache_implementation": "quantized"}
KV_LADDERS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "vllm": {"fp8": {"kv_cache_dtype": "fp8"}},
    "sglang": {"fp8_e4m3": {"kv_cache_dtype": "fp8_e4m3"}},
    "transformers": {
        "4 bit": {**_QUANTISED, "kv_bits": 4.0},
        "2 bit": {**_QUANTISED, "kv_bits": 2.0},
    },
    "mlx": {"8 bit": {"kv_bits": 8.0}, "4 bit": {"kv_bits": 4.0}},
    "llama.cpp": {
        "q8_0": {"cache_type_k": "q8_0", "cache_type_v": "q8_0"},
        "q5_1": {"cache_type_k": "q5_1", "cache_type_v": "q5_1"},
        "q4_0": {"cache_type_k": "q4_0", "cache_type_v": "q4_0"},
    },
}
"""KV types below the plan's own that people choose among, best first, and how each is set."""
_PARALLEL = frozenset({"vllm", "sglang"})
"""Runtimes that spread a model by parallel sizes; the others take every device there is."""
_STEP_FIELDS = {
    "vllm": ("max_num_batched_tokens",),
    "sglang": ("chunked_prefill_size",),
    "llama.cpp": ("n_ubatch", "n_batch"),
    "transformers": ("prefill_chunk_size",),
    "mlx": ("prefill_step_size",),
}
"""The settings that say how many tokens one forward pass takes."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one question."""

    question: str
    """Key of the machine contract: ``max_context``, ``fewest_devices`` …"""
    value: int | str | None
    """None where nothing fits, or nothing is known."""
    settings: Mapping[str, object]
    """What to set for it."""
    rank: int | None
    """The rank that binds: where the next plan would be over. None where no memory does."""
    region: Region | None
    reason: str
    """What stops it there, in one sentence."""


def inverse(model: Model, deployment: Deployment, machine: Machine) -> tuple[Answer, ...]:
    """Every question that makes sense for the plan's runtime.

    Largest context, most requests, largest forward pass, best weight format, best KV type,
    fewest devices, smallest device, and for llama.cpp the placement with most on the GPUs.

    Raises:
        DeploymentError: the deployment itself is impossible.
    """
    search = _Search(model, deployment, machine)
    answers = [
        search.context(),
        search.requests(),
        search.step(),
        search.weights(),
        search.cache(),
        search.devices(),
        search.device(),
        search.placement(),
    ]
    return tuple(answer for answer in answers if answer is not None)


def smaller_cache(
    model: Model, deployment: Deployment, machine: Machine
) -> tuple[str, Deployment] | None:
    """The next rung of the KV ladder below the plan's own: its name, and the plan with it.

    None where the runtime takes no smaller one.

    Raises:
        DeploymentError: the deployment itself is impossible.
    """
    runtime = registry.get(deployment.runtime)
    own = runtime.plan(model, deployment, machine)
    ladder = KV_LADDERS.get(registry.family(deployment.runtime), {})
    names = list(ladder)
    current = own.deployment.cache_type_k or own.deployment.kv_cache_dtype
    below = names[names.index(current) + 1 :] if current in names else names
    for name in below:
        plan = deployment.with_(**ladder[name])
        try:
            found = runtime.plan(model, plan, machine)
        except DeploymentError:
            continue
        pairs = zip(found.ranks, own.ranks, strict=True)
        if not found.refusals and any(
            a.needed.likely_bytes < b.needed.likely_bytes for a, b in pairs
        ):
            return name, plan
    return None


class _Search:
    """The questions about one plan."""

    def __init__(self, model: Model, deployment: Deployment, machine: Machine) -> None:
        self.model, self.plan, self.machine = model, deployment, machine
        self.runtime = registry.get(deployment.runtime)
        budget = self.runtime.plan(model, deployment, machine)
        verdict = judge(budget)
        self.settled = budget.deployment
        incomplete = bool(budget.doubts) and not budget.is_complete
        self.is_open = incomplete or verdict.fit is Fit.UNKNOWN
        """Whether something is left out, so that no plan is known to fit."""
        self.why_open = budget.bounds[0] if budget.bounds else verdict.detail

    def context(self) -> Answer:
        most = solve.max_context(self.model, self.plan, self.machine)
        limit = solve.longest_context(self.model, self.plan, self.machine)
        return self._number(
            "max_context",
            most,
            limit,
            tr("the model's config ends at {limit} tokens").format(limit=grouped(limit)),
            lambda n: self.plan.with_(max_model_len=n, n_ctx=None),
            "max_model_len",
        )

    def requests(self) -> Answer:
        most = solve.max_concurrency(self.model, self.plan, self.machine)
        limit = solve.most_requests(self.model, self.plan, self.machine)
        return self._number(
            "max_concurrency",
            most,
            limit,
            tr_count(
                "no more than {limit} request at once under this plan",
                "no more than {limit} requests at once under this plan",
                limit,
            ).format(limit=grouped(limit)),
            lambda n: self.plan.with_(
                max_model_len=self.settled.max_model_len, concurrency=n, n_ctx=None, batch_size=None
            ),
            "concurrency",
        )

    def step(self) -> Answer | None:
        names = _STEP_FIELDS.get(registry.family(self.plan.runtime))
        if names is None:
            return None
        limit, said = (
            _MOST_STEP_TOKENS,
            tr("more than {most_step_tokens} tokens were not tried").format(
                most_step_tokens=grouped(_MOST_STEP_TOKENS)
            ),
        )
        if self.settled.n_ctx:
            limit, said = self.settled.n_ctx, tr("a step takes no more than the whole context")

        def planned(tokens: int) -> Deployment:
            return self.plan.with_(**dict.fromkeys(names, tokens))

        # vLLM takes no step of fewer tokens than requests.
        below = (self.settled.max_num_seqs or 1) - 1 if self.plan.max_num_seqs else 0
        most = solve.largest(lambda n: self._fits(planned(below + n)), max(limit - below, 1))
        most += below if most else 0
        return self._number("max_num_batched_tokens", most, limit, said, planned, *names)

    def weights(self) -> Answer:
        names = solve.rungs(self.model, self.plan.runtime)
        row = [(name, self.plan.with_(weight_format=name), self.machine) for name in names]
        return self._row("best_weight_format", row, lambda name, _: {"weight_format": name})

    def cache(self) -> Answer:
        ladder = KV_LADDERS[registry.family(self.plan.runtime)]
        own = self.settled.cache_type_k or self.settled.kv_cache_dtype
        row = [(own, self.plan, self.machine)]
        row += [
            (name, self.plan.with_(**settings), self.machine)
            for name, settings in ladder.items()
            if name != own
        ]
        return self._row("best_kv_cache_dtype", row, lambda name, _: ladder.get(str(name), {}))

    def devices(self) -> Answer | None:
        if self.machine.slots[0].device.kind is DeviceKind.HOST:
            return None
        row = ((n, plan, _of(self.machine, n)) for n, plan in self._spreads())
        return self._row("fewest_devices", row, _parallel)

    def _spreads(self) -> Iterator[tuple[int, Deployment]]:
        """Every number of devices with each way to spread the model over it, few stages first."""
        for count in range(1, _MOST_DEVICES + 1):
            if registry.family(self.plan.runtime) not in _PARALLEL:
                yield count, self.plan
                continue
            for stages in (n for n in range(1, count + 1) if count % n == 0):
                plan = self.plan.with_(data_parallel_size=1, pipeline_parallel_size=stages)
                yield count, plan.with_(tensor_parallel_size=count // stages)

    def device(self) -> Answer:
        count = len(self.machine.slots)
        smallest_first = sorted(
            catalogue.devices(), key=lambda d: (d.allocatable.likely_bytes, d.total_bytes)
        )
        row = ((d.name, self.plan, catalogue.machine(d, count)) for d in smallest_first)
        return self._row("smallest_device", row, lambda name, _: {"gpu": name, "gpu_count": count})

    def placement(self) -> Answer | None:
        if registry.family(self.plan.runtime) != "llama.cpp":
            return None
        if self.is_open:
            return self._unknown("best_placement")
        if self._fits(self.plan):
            return Answer("best_placement", "all", {}, None, None, tr("everything fits as planned"))
        layers = len(self.model.spec.layers)
        if any(layer.moe for layer in self.model.spec.layers):
            # Experts go to the host first, from layer 0 (``--n-cpu-moe``).
            kept = solve.largest(lambda n: self._placed(n_cpu_moe=layers - n), layers - 1)
            if kept or self._placed(n_cpu_moe=layers):
                moved = layers - kept
                nearer = self.plan.with_(n_cpu_moe=moved - 1)
                settings = {"n_cpu_moe": moved}
                value = f"--n-cpu-moe {moved}"
                return self._stopped("best_placement", value, settings, nearer, self.machine)
        placed = solve.largest(lambda n: self._placed(n_gpu_layers=n), layers)
        if placed or self._placed(n_gpu_layers=0):
            nearer = self.plan.with_(n_gpu_layers=placed + 1)
            settings = {"n_gpu_layers": placed}
            return self._stopped("best_placement", f"-ngl {placed}", settings, nearer, self.machine)
        return Answer("best_placement", None, {}, None, None, tr("no placement fits"))

    def _placed(self, **placement: int) -> bool:
        return self._fits(self.plan.with_(**placement))

    def _number(
        self,
        question: str,
        value: int,
        limit: int,
        at_limit: str,
        planned: Callable[[int], Deployment],
        *names: str,
    ) -> Answer:
        """A number that was searched: what binds is what the next larger one runs into."""
        if self.is_open:
            return self._unknown(question)
        settings = dict.fromkeys(names, value) if value else {}
        if value and value >= limit:
            return Answer(question, value, settings, None, None, at_limit)
        shown = value or None
        return self._stopped(question, shown, settings, planned(value + 1), self.machine)

    def _row(
        self,
        question: str,
        row: Iterable[tuple[int | str, Deployment, Machine]],
        settings: Callable[[int | str, Deployment], Mapping[str, object]],
    ) -> Answer:
        """The first of a row of plans that fits; what binds is what the one before runs into."""
        if self.is_open:
            return self._unknown(question)
        nearest: tuple[int, Deployment, Machine] | None = None
        why_none = tr("the runtime takes none of the choices")
        for value, plan, machine in row:
            verdict = self._verdict(plan, machine)
            if verdict is not None and _fits(verdict):
                chosen = settings(value, plan)
                if nearest is None:
                    return Answer(question, value, chosen, None, None, tr("the first choice fits"))
                return self._stopped(question, value, chosen, nearest[1], nearest[2])
            if verdict is None or verdict.fit is not Fit.DOES_NOT_FIT:
                why_none = verdict.refusals[0] if verdict and verdict.refusals else why_none
                continue
            if nearest is None or verdict.margin_bytes > nearest[0]:
                nearest = (verdict.margin_bytes, plan, machine)
        if nearest is None:
            return Answer(question, None, {}, None, None, why_none)
        return self._stopped(question, None, {}, nearest[1], nearest[2])

    def _stopped(
        self,
        question: str,
        value: int | str | None,
        settings: Mapping[str, object],
        beyond: Deployment,
        machine: Machine,
    ) -> Answer:
        try:
            verdict = judge(self.runtime.plan(self.model, beyond, machine))
        except DeploymentError as error:
            return Answer(question, value, settings, None, None, error.message)
        reason = verdict.refusals[0] if verdict.refusals else verdict.headline
        return Answer(
            question, value, settings, verdict.binding_rank, verdict.binding_region, reason
        )

    def _unknown(self, question: str) -> Answer:
        return Answer(question, None, {}, None, None, self.why_open)

    def _verdict(self, plan: Deployment, machine: Machine) -> Verdict | None:
        try:
            return judge(self.runtime.plan(self.model, plan, machine))
        except DeploymentError:
            return None

    def _fits(self, plan: Deployment, machine: Machine | None = None) -> bool:
        verdict = self._verdict(plan, machine or self.machine)
        return verdict is not None and _fits(verdict)


def _fits(verdict: Verdict) -> bool:
    return verdict.fit in (Fit.FITS, Fit.TIGHT) and not verdict.refusals


def _parallel(_: int | str, plan: Deployment) -> Mapping[str, object]:
    if registry.family(plan.runtime) not in _PARALLEL:
        return {}
    return {
        "tensor_parallel_size": plan.tensor_parallel_size,
        "pipeline_parallel_size": plan.pipeline_parallel_size,
    }


def _of(machine: Machine, count: int) -> Machine:
    """``machine`` with its first ``count`` devices, or with further ones like its last."""
    slots = (*machine.slots, *(machine.slots[-1:] * count))[:count]
    return replace(machine, name=f"{count} × {slots[0].device.name}", slots=slots)
