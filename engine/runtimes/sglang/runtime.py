"""SGLang's budget: a static share for weights and pool, the rest for its work."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.budget import sequence_state as state
from engine.budget.model import Budget, SequenceState
from engine.budget.weights import AS_STORED
from engine.formats.weights import FORMATS
from engine.runtimes.checks import too_long
from engine.runtimes.sglang import rules
from engine.runtimes.sglang.kv_dtypes import KV_DTYPES, architectural
from engine.runtimes.sglang.pool import pool_of, room_of, stages
from engine.runtimes.sglang.rank import Need, Place, rank_budget
from engine.runtimes.sglang.settings import Settings, settle
from engine.runtimes.taught import taught
from engine.units import align_up, ceil_div
from engine.words import tr

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.budget.model import RankBudget
    from engine.deployment.spec import Deployment
    from engine.devices.device import Machine
    from engine.runtimes.sglang.pool import Pool, Stage


class Sglang:
    """SGLang with the rules of 0.4.0 to 0.5.23."""

    name = "sglang"
    label = "SGLang"
    versions: tuple[str, ...] = rules.VERSIONS
    kv_cache_dtypes: tuple[str, ...] = KV_DTYPES

    def weight_formats(self, model: Model) -> tuple[str, ...]:
        """As stored, and every format SGLang loads or quantises to."""
        names = (n for n in FORMATS if not n.startswith("mlx") and n != model.spec.weight_format)
        return () if model.is_gguf else (AS_STORED, *names)

    @taught
    def plan(self, model: Model, deployment: Deployment, machine: Machine) -> Budget:
        """The budget of every rank.

        Raises:
            DeploymentError: the deployment is impossible; names the field to correct.
        """
        settings = settle(model, deployment, machine)
        need = _need(settings)
        found = stages(model, settings, need.tokens)
        ranks = settings.deployment.ranks
        tp = settings.deployment.tensor_parallel_size
        pools: list[Pool] = []
        budgets: list[RankBudget] = []
        # Equal devices are one object: each is worked out once.
        free = {id(slot): room_of(slot, settings) for slot in machine.slots}
        for replica in range(settings.parallel.replicas):
            slots = machine.slots[replica * ranks : (replica + 1) * ranks]
            rooms = [(found[i // tp], free[id(slot)]) for i, slot in enumerate(slots)]
            pool = pool_of(model, settings, found, rooms)
            pools.append(pool)
            known: dict[tuple[int, int], RankBudget] = {}
            for i, (slot, (stage, room)) in enumerate(zip(slots, rooms, strict=True)):
                key, rank = (id(slot), i // tp), replica * ranks + i
                if key not in known:
                    place = Place(rank, slot, stage, room)
                    known[key] = rank_budget(model, settings, pool, need, place)
                budgets.append(replace(known[key], rank=rank))
        poorest = min(pools, key=lambda pool: pool.tokens)
        filled = settings.deployment.with_(
            max_running_requests=poorest.running * settings.parallel.attention_dp,
        )
        return Budget(
            model=model,
            deployment=filled,
            machine=machine,
            ranks=tuple(budgets),
            sequence_state=_sequence_state(model, settings, found, poorest),
            assumptions=settings.assumptions,
            warnings=(*settings.warnings, *_waiting(settings, need, poorest)),
            refusals=_refusals(model, settings),
            doubts=poorest.doubts,
        )


def _refusals(model: Model, settings: Settings) -> tuple[str, ...]:
    switch = "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN"
    reason = too_long(model.spec, settings.deployment, "SGLang", switch)
    return (reason,) if reason else ()


def _need(settings: Settings) -> Need:
    """Requests of one scheduler and the tokens each of them holds."""
    deployment = settings.deployment
    requests = ceil_div(deployment.concurrency, settings.parallel.data_ranks)
    tokens = settings.context
    if deployment.live_tokens is not None:
        tokens = min(tokens, ceil_div(deployment.live_tokens, deployment.concurrency))
    return Need(requests, max(tokens, 1))


def _waiting(settings: Settings, need: Need, pool: Pool) -> list[str]:
    # Without room for one, the verdict says why it doesn't start.
    if not pool.running or need.requests <= pool.running:
        return []
    most = pool.running * settings.parallel.data_ranks
    why = tr("the states there is room for") if pool.states is not None else "max_running_requests"
    asked = settings.deployment.concurrency
    return [
        tr("No more than {most} at once, by {why}: of the {asked} requests the rest waits.").format(
            most=most, why=why, asked=asked
        )
    ]


def _sequence_state(
    model: Model, settings: Settings, found: tuple[Stage, ...], pool: Pool
) -> SequenceState:
    """The pool's arithmetic, for the stage whose tokens are dearest."""
    spec, context = model.spec, settings.context
    dtype = architectural(spec, settings.kv_dtype)
    least = state.architecture_bytes(spec, dtype, context, settings.dtype)
    formula = state.sequence_equation(spec, dtype, context, settings.dtype)
    layouts = [stage.layout for stage in found if stage.layout is not None]
    states = pool.states
    held = states.per_request * states.slot_bytes if states is not None else 0
    if not layouts:
        return SequenceState(least, held, 0, formula=formula)
    layout = max(layouts, key=lambda one: one.cell)
    growth = layout.full_cell
    if layout.sliding_cell and context < layout.window:
        growth += layout.sliding_cell
    given = settings.deployment.kv_pool_bytes
    size = given if given is not None else layout.size_bytes(pool.tokens) if pool.tokens else 0
    each = align_up(context, layout.page)
    return SequenceState(
        architecture_bytes_per_sequence=least,
        reserved_bytes_per_sequence=layout.request_bytes(context) + held,
        bytes_per_token=growth,
        pool_bytes=size,
        num_blocks=pool.tokens // layout.page,
        block_size=layout.page,
        bytes_per_block=round(layout.cell * layout.page),
        pool_tokens=pool.tokens,
        max_concurrency=min(pool.tokens / each, float(pool.running)),
        formula=formula,
    )
