"""TensorRT-LLM's ``trtllm-serve``: iteration statistics at ``/metrics``, and Triton's page.

The statistics are JSON: a list of the iterations since they were last asked for, which may be
empty. ``gpuMemUsage`` and its like are bytes. Tokens per block is a label in the Prometheus page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from engine.seen import figures, openai
from engine.seen.gauges import names, share, whole
from engine.seen.model import NOT_STATED, Known, PoolSeen, Reach, RuntimeSeen, StatedBytes
from engine.telemetry.snapshot import Missing
from engine.words import tr

if TYPE_CHECKING:
    from engine.seen.asker import Asker
    from engine.telemetry.prometheus_text import Page

PREFIXES: Final = ("trtllm_", "nv_trt_llm_")
_USED = names("trtllm_kv_cache_utilization")
_BLOCKS = names("trtllm_kv_cache_max_blocks")
_CONFIG = names("trtllm_cache_config_info")


def read(asker: Asker) -> tuple[RuntimeSeen, ...]:
    """What one server says."""
    last = _last(asker)
    cache = figures.fields(last.get("kvCacheStats"))
    idle = Missing(tr("no iteration ran since the last look")) if not last else NOT_STATED
    page = asker.metrics("/prometheus/metrics")
    pool = _pool(cache, idle) if cache or isinstance(page, Missing) else _of_page(page)
    running = figures.count(last.get("numActiveRequests"))
    waiting = figures.count(last.get("numQueuedRequests"))
    return (
        RuntimeSeen(
            runtime="tensorrt-llm",
            label="TensorRT-LLM",
            reach=Reach.ANSWERS,
            address=asker.address,
            version=figures.version(asker.fields("/version").get("version")),
            model=openai.first_model(asker),
            pool=pool,
            running=idle if isinstance(running, Missing) else running,
            waiting=idle if isinstance(waiting, Missing) else waiting,
            prompt_tokens=NOT_STATED,
            output_tokens=NOT_STATED,
            stated=tuple(_stated(last)),
        ),
    )


def _last(asker: Asker) -> dict[str, Any]:
    """The newest iteration; empty where there is none."""
    said = asker.json("/metrics")
    listed = figures.rows(said) or [figures.fields(said)]
    return listed[-1]


def _pool(cache: dict[str, Any], idle: Missing) -> PoolSeen:
    blocks, used = (
        figures.positive(cache.get("maxNumBlocks")),
        figures.count(cache.get("usedNumBlocks")),
    )
    block = figures.positive(cache.get("tokensPerBlock"))
    if isinstance(blocks, Missing) or isinstance(used, Missing) or isinstance(block, Missing):
        return PoolSeen(idle, used_share=idle, used_tokens=idle)
    return PoolSeen(
        tokens=blocks * block,
        tokens_known=Known.DERIVED,
        used_share=share(used / blocks),
        used_tokens=used * block,
    )


def _of_page(page: Page) -> PoolSeen:
    configs = _CONFIG.series(page)
    block = figures.positive(configs[0].labels.get("block_size")) if configs else NOT_STATED
    blocks = whole(_BLOCKS.total(page))
    tokens = blocks * block if isinstance(block, int) and isinstance(blocks, int) else NOT_STATED
    return PoolSeen(
        tokens=tokens,
        tokens_known=Known.DERIVED,
        used_share=share(_USED.most(page)),
    )


def _stated(last: dict[str, Any]) -> list[StatedBytes]:
    found: list[StatedBytes] = []
    for key, on_device in (
        ("gpuMemUsage", True),
        ("cpuMemUsage", False),
        ("pinnedMemUsage", False),
    ):
        size = figures.positive(last.get(key))
        if isinstance(size, int):
            found.append(StatedBytes(size, on_device=on_device))
    return found
