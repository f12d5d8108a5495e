"""Figures of a server with a pool: vLLM and SGLang."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.budget.model import Region
from engine.evidence import total
from engine.runtimes.vllm.loading import WHILE_READING
from engine.runtimes.vllm.rules import GRAPHS_INSIDE, parse_version
from tests.truth.scoring.scores import Missed, Score, law_of, span
from tests.truth.scoring.versions import range_of, release_of, version_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from engine.budget.model import Budget, RankBudget
    from engine.evidence import Estimate
    from tests.truth.scoring.ask import Asked

_INSIDE = {"workspaces", "collectives, workspaces", "sampler buffers"}
"""Parts of the runtime's region that vLLM charges to its budget and prints as non-torch."""
_OF_ALL = {"kv_pool", "card"}
"""Figures that every constant of a release moves."""
_BY_RELEASE = {"non_torch", "consumed"}
"""Figures with one constant per range of releases."""
_TABLES = ("h100/", "sweep/")
"""Starts that one project logged on one card, with every setting: rows, where others are logs."""
_APART = ("0.11.0", "0.19.0", "0.24.0")
"""Releases that count blocks and tokens of a pool otherwise than today's, and than each other."""
_UNSTATED = "its release is not stated, and releases count otherwise"
_STATES = {"state_conv", "state_ssm"}
_COUNTS = ("kv_blocks", "kv_tokens", "max_concurrency")


def scores(asked: Asked) -> Iterator[Score | Missed]:
    """Every figure of the record that is scored, and those that only its release would decide."""
    record, budget = asked.record, asked.sizing.budget
    rank = budget.ranks[record.facts.get("rank", 0)]
    inside = _graphs_are_inside(budget)
    for figure, estimate in _regions(rank).items():
        # Since 0.21 the region is vLLM's own estimate, which it charges before it captures.
        if figure in record.printed and figure != ("graphs" if inside else "graphs_estimated"):
            yield _score(asked, figure, estimate)
    if record.request.keys() & {"gpu", "gpu_total_bytes"}:
        yield from _from_scratch(asked, rank)
    if record.printed.get("kv_pool", (0,))[0] > 0:
        yield from _from_known_pool(asked)
    if "need" in record.printed:
        yield _need(asked)


def _from_scratch(asked: Asked, rank: RankBudget) -> Iterator[Score]:
    """Of a start whose device is named: what follows from the settings alone."""
    printed, budget = asked.record.printed, asked.sizing.budget
    if "kv_pool" in printed:
        yield _score(asked, "kv_pool", rank.regions[Region.KV_CACHE].estimate)
    if "max_concurrency" in printed:
        yield _count(asked, "max_concurrency", budget, "concurrency from scratch")
    if asked.record.runtime == "sglang" and "kv_tokens" in printed:
        yield _count(asked, "kv_tokens", budget, "tokens from scratch")
    if printed.keys() >= _STATES and "kv_pool" not in asked.record.left_out:
        # They are cut from the rest that the pool is cut from.
        states = tuple(map(sum, zip(*(printed[name] for name in sorted(_STATES)), strict=True)))
        ours = rank.regions[Region.RECURRENT_STATE].estimate
        made = _made(asked, "states", (states[0], states[1]), span(ours), is_region=True)
        yield replace(made, law=law_of([ours]))


def _from_known_pool(asked: Asked) -> Iterator[Score | Missed]:
    """The integers that follow from the bytes of the pool."""
    record, printed = asked.record, asked.record.printed
    pool_bytes, within = printed["kv_pool"]
    known = asked.again(kv_pool_bytes=pool_bytes).budget
    others: list[Budget] = []
    if record.runtime == "vllm" and "runtime_version" not in record.request:
        others = [asked.again(kv_pool_bytes=pool_bytes, runtime_version=v).budget for v in _APART]
    for figure in _COUNTS:
        if figure not in printed:
            continue
        label = f"{figure} from a known pool"
        score = _count(asked, figure, known, label)
        apart = (abs(_count(asked, figure, o, label).likely - score.likely) for o in others)
        is_decided = all(off <= score.within for off in apart)
        yield score if is_decided else Missed(record.id, record.runtime, label, _UNSTATED)
    if "longest" in printed:
        yield _longest(asked, pool_bytes, within)


def _graphs_are_inside(budget: Budget) -> bool:
    if budget.deployment.runtime != "vllm":
        return False
    return GRAPHS_INSIDE.at(parse_version(budget.deployment.runtime_version))


def _regions(rank: RankBudget) -> dict[str, Estimate]:
    runtime = rank.regions[Region.RUNTIME].estimate
    inside = total(part for part in runtime.parts if part.label in _INSIDE)
    weights = rank.regions[Region.WEIGHTS].estimate
    whole = (r.estimate for kind, r in rank.regions.items() if kind is not Region.HEADROOM)
    reading = (part for part in rank.moments.load if part.label in WHILE_READING)
    return {
        "weights": weights,
        "load peak": total([weights, *reading]),
        "activations": rank.regions[Region.ACTIVATIONS].estimate,
        "graphs": rank.regions[Region.CUDA_GRAPHS].estimate,
        "graphs_estimated": rank.regions[Region.CUDA_GRAPHS].estimate,
        "non_torch": inside,
        "consumed": total((weights, inside)),
        "card": total(whole),
    }


def traits(asked: Asked) -> frozenset[str]:
    """What bars ask of a record: plain or quantised weights, a dense model, a row of a table."""
    spec = asked.plan.model.spec
    chosen = asked.sizing.budget.deployment.weight_format
    stored = spec.weight_format if chosen == "auto" else chosen
    found = {"16-bit" if stored in ("bf16", "fp16", "fp32") else "quantised"}
    if all(layer.moe is None and layer.state is None for layer in spec.layers):
        found.add("dense")
    if asked.record.id.startswith(_TABLES):
        found.add("row")
    return frozenset(found)


def _score(asked: Asked, figure: str, estimate: Estimate) -> Score:
    printed = asked.record.printed[figure][:2]
    made = _made(asked, figure, printed, span(estimate), is_region=True)
    return replace(made, law=_law(made, estimate))


def _law(score: Score, estimate: Estimate) -> str:
    if score.figure in _OF_ALL:
        return f"{score.figure} of {score.versions}"
    law = law_of([estimate])
    return f"{law} ({score.versions})" if law and score.figure in _BY_RELEASE else law


def _made(
    asked: Asked,
    figure: str,
    printed: tuple[float, float],
    ours: tuple[float, float, float],
    *,
    is_region: bool,
) -> Score:
    record = asked.record
    version = version_of(record)
    return Score(
        record.id,
        record.runtime,
        range_of(record.runtime, version),
        asked.plan.model.spec.model_type,
        figure,
        printed[0],
        *ours,
        printed[1],
        is_region,
        traits(asked),
        release_of(version),
    )


def _count(asked: Asked, figure: str, budget: Budget, label: str) -> Score:
    state = budget.sequence_state
    ours = {
        "kv_blocks": state.num_blocks,
        "kv_tokens": state.pool_tokens,
        "max_concurrency": state.max_concurrency,
    }[figure]
    wanted, within = asked.record.printed[figure]
    got = float(ours or 0)
    if label.endswith("pool"):
        within += _slack(asked, figure, wanted, budget)
    return _made(asked, label, (wanted, within), (got, got, got), is_region=False)


def _slack(asked: Asked, figure: str, wanted: float, budget: Budget) -> float:
    """What the pool's own last digit is worth in ``figure``: it decides whole blocks."""
    pool, within = asked.record.printed["kv_pool"]
    worth = within / pool * wanted
    state = budget.sequence_state
    if figure == "kv_blocks":
        return worth + 1
    if figure == "kv_tokens":
        return worth + (state.block_size or 16)
    return worth * 1.0 + (wanted / state.num_blocks if state.num_blocks else 0)


def _need(asked: Asked) -> Score:
    wanted, within, length = asked.record.printed["need"]
    got = _need_bytes(asked, length)
    return _made(asked, "need of one request", (wanted, within), (got, got, got), is_region=False)


def _need_bytes(asked: Asked, length: int) -> int:
    """What one request of ``length`` tokens takes of the pool of one rank."""
    if not asked.record.facts.get("whole_need"):
        state = asked.again(max_model_len=length).budget.sequence_state
        return state.reserved_bytes_per_sequence
    # One refusal of a pipeline, by 0.15, counts all stages together: a fault of its own.
    even = asked.again(max_model_len=length, pp_layer_partition=None).budget
    need = even.sequence_state.reserved_bytes_per_sequence
    return need * even.deployment.pipeline_parallel_size


def _longest(asked: Asked, pool_bytes: float, within: float) -> Score:
    """The longest request that a refusal says would fit, exact but for the pool's last digit."""
    wanted = asked.record.printed["longest"][0]
    low, likely, high = (
        _last(lambda length, size=size: _need_bytes(asked, length) <= size, 2 * int(wanted))
        for size in (pool_bytes - within, pool_bytes, pool_bytes + within)
    )
    off = max(likely - low, high - likely)
    ours = (likely, likely, likely)
    return _made(asked, "longest", (wanted, off), ours, is_region=False)


def _last(holds: Callable[[int], bool], most: int) -> int:
    """The last of 1 to ``most`` for which ``holds``, which all below do; 0 if none."""
    return bisect_left(range(1, most + 1), True, key=lambda number: not holds(number))
