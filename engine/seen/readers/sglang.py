"""SGLang: ``/server_info``, ``/v1/loads`` and ``/metrics``: the one that states its bytes.

What it writes as GB is bytes / 2^30 (``managers/scheduler_components/memory_usage.py``). Sizes are
per rank. ``/server_info`` holds every argument of the server, its key among them: what is read here
is picked by name, and nothing else leaves this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from engine.budget.model import Region
from engine.seen import figures, openai
from engine.seen.gauges import Gauge, share, whole
from engine.seen.gauges import names as plain_names
from engine.seen.model import (
    NOT_STATED,
    ModelSeen,
    PoolSeen,
    Reach,
    RuntimeSeen,
    StatedBytes,
)
from engine.telemetry.snapshot import Missing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.seen.asker import Asker
    from engine.telemetry.prometheus_text import Page, Sample

PREFIXES: Final = ("sglang:", "sglang_")


def _names(*said: str) -> Gauge:
    """Under both prefixes: gateways turn the colon into an underscore (smg PR 813)."""
    return plain_names(*(f"{prefix}{name}" for name in said for prefix in PREFIXES))


_RUNNING = _names("num_running_reqs")
_WAITING = _names("num_queue_reqs")
_USED = _names("kv_used_tokens", "num_used_tokens")
_SHARE = _names("token_usage")
_EVICTABLE = _names("kv_evictable_tokens")
_CAPACITY = _names("max_total_num_tokens")
_CONTEXT = _names("context_len")
_PROMPT = _names("prompt_tokens_total")
_OUTPUT = _names("generation_tokens_total")
_SIZES: Final = (
    (_names("weight_memory_usage_gb"), Region.WEIGHTS),
    (_names("kv_cache_memory_usage_gb"), Region.KV_CACHE),
    (_names("graph_memory_usage_gb"), Region.CUDA_GRAPHS),
)
_KEYS: Final = (
    (("weight", "weight_gb"), Region.WEIGHTS),
    (("kvcache", "kv_cache_gb"), Region.KV_CACHE),
    (("graph", "graph_gb"), Region.CUDA_GRAPHS),
)
_SETTINGS: Final = {
    "tp_size": "tensor_parallel_size", "pp_size": "pipeline_parallel_size",
    "dp_size": "data_parallel_size", "mem_fraction_static": "mem_fraction_static",
    "chunked_prefill_size": "chunked_prefill_size", "max_running_requests": "max_running_requests",
    "max_total_tokens": "max_total_tokens", "cuda_graph_max_bs": "cuda_graph_max_bs",
    "page_size": "page_size", "kv_cache_dtype": "kv_cache_dtype",
    "context_length": "max_model_len",
}  # fmt: skip
"""Arguments of the server that are read, and what a ``Deployment`` calls them."""


def read(asker: Asker) -> tuple[RuntimeSeen, ...]:
    """What one server says."""
    info = asker.fields("/server_info") or asker.fields("/get_server_info")
    loads = asker.fields("/v1/loads")
    page = asker.metrics()
    states = figures.rows(info.get("internal_states"))
    per_rank = figures.rows(loads.get("loads"))
    found = None if isinstance(page, Missing) else page
    return (
        RuntimeSeen(
            runtime="sglang",
            label="SGLang",
            reach=Reach.ANSWERS,
            address=asker.address,
            version=figures.version(info.get("version") or loads.get("version")),
            model=_model(asker, info, found),
            pool=_pool(info, states, per_rank, found),
            running=_either(per_rank, "num_running_reqs", _RUNNING, page),
            waiting=_either(per_rank, "num_waiting_reqs", _WAITING, page),
            prompt_tokens=_gauge(_PROMPT, page),
            output_tokens=_gauge(_OUTPUT, page),
            stated=tuple(_stated(states, per_rank, found)),
            settings={
                ours: info[theirs] for theirs, ours in _SETTINGS.items() if _plain(info, theirs)
            },
        ),
    )


def _plain(info: dict[str, Any], name: str) -> bool:
    value = info.get(name)
    return isinstance(value, (int, float, str)) and not isinstance(value, bool)


def _model(asker: Asker, info: dict[str, Any], page: Page | None) -> ModelSeen | Missing:
    listed = openai.first_model(asker)
    path = figures.text(info.get("model_path"))
    name = figures.text(info.get("served_model_name")) or path
    if isinstance(listed, ModelSeen):
        name = listed.name
    context = figures.positive(info.get("context_length"))
    if isinstance(context, Missing) and isinstance(listed, ModelSeen):
        context = listed.context_tokens
    if isinstance(context, Missing) and page is not None:
        context = whole(_CONTEXT.most(page))
    if not name and page is not None:
        name = _model_label(page)
    return ModelSeen(name, context, file=path) if name else openai.NO_MODEL


def _model_label(page: Page) -> str:
    """The label of the first gauge that has one: ``model_name``, ``name`` in the first release."""
    for sample in page.samples:
        if sample.name.startswith(PREFIXES):
            name = sample.labels.get("model_name") or sample.labels.get("name")
            if name:
                return figures.text(name)
    return ""


def _pool(
    info: dict[str, Any],
    states: list[dict[str, Any]],
    per_rank: list[dict[str, Any]],
    page: Page | None,
) -> PoolSeen:
    tokens = figures.total(figures.positive(r.get("max_total_num_tokens")) for r in per_rank)
    used = figures.total(figures.count(row.get("num_used_tokens")) for row in per_rank)
    fills = [row["token_usage"] for row in per_rank if isinstance(row.get("token_usage"), float)]
    if isinstance(tokens, Missing):
        capacities = (figures.fields(s.get("memory_usage")).get("token_capacity") for s in states)
        tokens = figures.total(map(figures.positive, capacities))
    if isinstance(tokens, Missing):
        tokens = figures.positive(info.get("max_total_num_tokens"))
    fill: float | Missing | None = share(max(fills)) if fills else None
    evictable: int | Missing = NOT_STATED
    if page is not None:
        # Ranks of one tensor-parallel group share the tokens: the group's are any rank's.
        tokens = whole(_CAPACITY.most(page)) if isinstance(tokens, Missing) else tokens
        used = whole(_USED.most(page)) if isinstance(used, Missing) else used
        fill = share(_SHARE.most(page)) if fill is None else fill
        evictable = whole(_EVICTABLE.most(page))
    sizes = [s.size_bytes for s in _stated(states, per_rank, page) if s.region is Region.KV_CACHE]
    return PoolSeen(
        tokens=tokens,
        used_share=NOT_STATED if fill is None else fill,
        used_tokens=used,
        evictable_tokens=evictable,
        size_bytes=sum(sizes) if sizes else NOT_STATED,
    )


def _either(
    per_rank: list[dict[str, Any]], key: str, gauge: Gauge, page: Page | Missing
) -> int | Missing:
    """From ``/v1/loads``, a row per data-parallel rank; else from the metrics."""
    found = figures.total(figures.count(row.get(key)) for row in per_rank)
    return found if isinstance(found, int) else _gauge(gauge, page, per_group=True)


def _gauge(gauge: Gauge, page: Page | Missing, *, per_group: bool = False) -> int | Missing:
    """The sum over data-parallel ranks; ranks that work together count the same requests."""
    if isinstance(page, Missing):
        return page
    if not per_group:
        return whole(gauge.total(page))
    groups: dict[str, float] = {}
    for sample in gauge.series(page):
        group = sample.labels.get("dp_rank", "")
        groups[group] = max(groups.get(group, 0.0), sample.value)
    return round(sum(groups.values())) if groups else NOT_STATED


def _stated(
    states: list[dict[str, Any]], per_rank: list[dict[str, Any]], page: Page | None
) -> Iterator[StatedBytes]:
    """Weights, cache and graphs of each rank: from the first of the sources that states any."""
    for source in (
        _of_gauges(page),
        _of_memory(per_rank, "memory"),
        _of_memory(states, "memory_usage"),
    ):
        found = tuple(source)
        if found:
            yield from found
            return


def _of_memory(rows: list[dict[str, Any]], key: str) -> Iterator[StatedBytes]:
    for at, row in enumerate(rows):
        memory = figures.fields(row.get(key))
        rank = f"DP{row.get('dp_rank', at)}" if len(rows) > 1 else ""
        for names, region in _KEYS:
            size = next((s for name in names if (s := _total_bytes(memory.get(name)))), None)
            if size:
                yield StatedBytes(size, region, rank)


def _total_bytes(value: object) -> int | None:
    """A size, or those of all phases (``graph: {phase: GB}`` since 0.5.23) together."""
    phases = figures.fields(value)
    if phases:
        return sum(size for one in phases.values() if (size := figures.gib_bytes(one))) or None
    return figures.gib_bytes(value)


def _of_gauges(page: Page | None) -> Iterator[StatedBytes]:
    if page is None:
        return
    for gauge, region in _SIZES:
        by_rank: dict[str, int] = {}
        for sample in gauge.series(page):
            rank = _rank(sample)
            by_rank[rank] = by_rank.get(rank, 0) + (figures.gib_bytes(sample.value) or 0)
        yield from (StatedBytes(size, region, rank) for rank, size in by_rank.items() if size)


def _rank(sample: Sample) -> str:
    parts = [
        f"{short}{value}"
        for short, label in (("DP", "dp_rank"), ("PP", "pp_rank"), ("TP", "tp_rank"))
        if (value := sample.labels.get(label, ""))
    ]
    return " ".join(parts)
