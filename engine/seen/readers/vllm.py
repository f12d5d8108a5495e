"""vLLM: ``/metrics`` under its names of V0, V1 and since 2025-10, ``/v1/models``, ``/version``.

Sources: vLLM ``v1/metrics/loggers.py`` and PRs 18354, 27133 (names), issue 51163 (blocks of hybrid
models), issue 26850 (no metric has the pool's bytes).
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from engine.budget.model import Region
from engine.seen import figures, openai
from engine.seen.gauges import Gauge, Name, names, share, whole
from engine.seen.model import NOT_STATED, Known, PoolSeen, Reach, RuntimeSeen, StatedBytes
from engine.telemetry.snapshot import Missing
from engine.words import grouped, tr, tr_count, tr_later

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from engine.seen.asker import Asker
    from engine.seen.model import ModelSeen
    from engine.telemetry.prometheus_text import Page, Sample

PREFIXES: Final = ("vllm:",)
_USED = Gauge((
    Name("vllm:kv_cache_usage_perc", since="0.9"),
    Name("vllm:gpu_cache_usage_perc", until="0.12"),
))  # fmt: skip
"""A ratio, whatever its name says."""
_RUNNING = names("vllm:num_requests_running")
_WAITING = names("vllm:num_requests_waiting")
_BY_REASON = names("vllm:num_requests_waiting_by_reason")
_PREEMPTED = names("vllm:num_preemptions_total", "vllm:num_preemptions")
_PROMPT = names("vllm:prompt_tokens_total", "vllm:prompt_tokens")
_OUTPUT = names("vllm:generation_tokens_total", "vllm:generation_tokens")
_SLEEP = names("vllm:engine_sleep_state")
_CONFIG = names("vllm:cache_config_info")

_KNOWN: Final = frozenset({
    "engine", "model_name", "block_size", "num_gpu_blocks", "kv_cache_size_tokens",
    "sliding_window", "kv_cache_max_concurrency", "kv_cache_memory_bytes",
    "gpu_memory_utilization", "cache_dtype", "enable_prefix_caching", "mamba_block_size",
    "user_specified_block_size",
})  # fmt: skip
_LEAST_BLOCK = 16
"""Below it a block size is a hybrid model's smallest group's, not what was asked for."""
_NEARLY_FULL = 0.9
_NO_BYTES = Missing(tr_later("vLLM states its pool in tokens alone"))
_NO_BLOCKS = Missing(tr_later("this release doesn’t tell how many blocks it has"))
_UNLIKE = Missing(
    tr_later("the layers of this model have blocks of different sizes, and this release states no "
             "tokens")
)  # fmt: skip
_ASLEEP = {
    "weights_offloaded": tr_later("The engine sleeps: its weights lie in the computer’s memory."),
    "discard_all": tr_later("The engine sleeps, and its weights are given up."),
}


def read(asker: Asker) -> tuple[RuntimeSeen, ...]:
    """What one server says."""
    page = asker.metrics()
    version = figures.version(asker.fields("/version").get("version"))
    model = openai.first_model(asker)
    common: dict[str, Any] = {
        "runtime": "vllm", "label": "vLLM", "reach": Reach.ANSWERS, "address": asker.address,
        "version": version, "model": model,
    }  # fmt: skip
    if isinstance(page, Missing):
        absent = dict.fromkeys(
            ("running", "waiting", "prompt_tokens", "output_tokens", "pool"), page
        )
        return (RuntimeSeen(**common, **absent),)
    configs = _CONFIG.series(page)
    pool = _pool(page, configs)
    labels: Mapping[str, str] = configs[0].labels if configs else {}
    stated = positive_bytes(s.labels.get("kv_cache_memory_bytes") for s in configs)
    return (
        RuntimeSeen(
            **common,
            pool=pool,
            running=whole(_RUNNING.total(page)),
            waiting=whole(_WAITING.total(page)),
            prompt_tokens=whole(_PROMPT.total(page)),
            output_tokens=whole(_OUTPUT.total(page)),
            stated=tuple(StatedBytes(size, Region.KV_CACHE) for size in stated),
            settings=_settings(labels, model),
            notes=tuple(_notes(page, pool)),
            raw=figures.raw(labels, _KNOWN),
        ),
    )


def positive_bytes(values: Iterable[object]) -> list[int]:
    """Those of ``values`` that are sizes."""
    return [size for value in values if isinstance(size := figures.positive(value), int)]


def _pool(page: Page, configs: tuple[Sample, ...]) -> PoolSeen:
    capacities = {s.labels.get("engine", ""): _capacity(s.labels) for s in configs}
    tokens = _sum(capacities.values()) if capacities else NOT_STATED
    used = {s.labels.get("engine", ""): s.value for s in _USED.series(page)}
    parts = [
        round(fill * size)
        for engine, fill in used.items()
        if isinstance(size := capacities.get(engine, NOT_STATED), int) and fill <= 1
    ]
    sizes = positive_bytes(s.labels.get("kv_cache_memory_bytes") for s in configs)
    is_own_label = all("kv_cache_size_tokens" in s.labels for s in configs)
    return PoolSeen(
        tokens=tokens,
        tokens_known=Known.STATED if is_own_label else Known.DERIVED,
        used_share=share(_USED.most(page)),
        used_tokens=sum(parts) if parts else NOT_STATED,
        size_bytes=sum(sizes) if sizes else _NO_BYTES,
    )


def _sum(values: Iterable[int | Missing]) -> int | Missing:
    found = list(values)
    absent = next((value for value in found if isinstance(value, Missing)), None)
    return absent or figures.total(found)


def _capacity(labels: Mapping[str, str]) -> int | Missing:
    """Tokens of one engine's pool: its own figure; blocks only where all layers have the same."""
    stated = figures.positive(labels.get("kv_cache_size_tokens"))
    if isinstance(stated, int):
        return stated
    blocks = figures.positive(labels.get("num_gpu_blocks"))
    block = figures.positive(labels.get("block_size"))
    if isinstance(blocks, Missing) or isinstance(block, Missing):
        return _NO_BLOCKS
    is_hybrid = isinstance(figures.positive(labels.get("mamba_block_size")), int)
    return _UNLIKE if is_hybrid or block < _LEAST_BLOCK else blocks * block


def _settings(labels: Mapping[str, str], model: ModelSeen | Missing) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if not isinstance(model, Missing) and isinstance(model.context_tokens, int):
        found["max_model_len"] = model.context_tokens
    with suppress(KeyError, ValueError):
        found["gpu_memory_utilization"] = float(labels["gpu_memory_utilization"])
    if labels.get("cache_dtype"):
        found["kv_cache_dtype"] = labels["cache_dtype"]
    if labels.get("enable_prefix_caching") in {"True", "False"}:
        found["enable_prefix_caching"] = labels["enable_prefix_caching"] == "True"
    return found


def _notes(page: Page, pool: PoolSeen) -> Iterable[str]:
    for sample in _SLEEP.series(page):
        words = _ASLEEP.get(sample.labels.get("sleep_state", ""))
        if words and sample.value:
            yield tr(words)
    waiting = sum(s.value for s in _BY_REASON.series(page) if s.labels.get("reason") == "capacity")
    fill = pool.used_share
    if waiting and isinstance(fill, float) and fill < _NEARLY_FULL:
        words = tr_count(
            "{number} request waits though the pool is {percent}% full: max_num_seqs is the limit, "
            "not memory.",
            "{number} requests wait though the pool is {percent}% full: max_num_seqs is the limit, "
            "not memory.",
            round(waiting),
        )
        yield words.format(number=grouped(round(waiting)), percent=round(fill * 100))
    preempted = _PREEMPTED.total(page)
    if isinstance(preempted, float) and preempted:
        words = tr_count(
            "{number} request was set back since the start: the pool is too small for this load.",
            "{number} requests were set back since the start: the pool is too small for this load.",
            round(preempted),
        )
        yield words.format(number=grouped(round(preempted)))
