"""llama.cpp's ``llama-server``: ``/health``, ``/props``, ``/slots``, ``/metrics``, ``/memory``.

``/slots`` holds what people asked in some versions: its counts are read and nothing else is kept.
The gauges of the cache's fill were removed in mid-2025 (llama.cpp PR 13660), so the fill is that of
the slots. ``/memory`` is an open PR (26130); where it answers, it states bytes per device.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from engine.budget.model import Region
from engine.seen import figures, openai
from engine.seen.gauges import names, share, whole
from engine.seen.model import (
    NO_MODEL,
    NOT_STATED,
    Known,
    ModelSeen,
    PoolSeen,
    Reach,
    RuntimeSeen,
    StatedBytes,
)
from engine.telemetry.snapshot import Missing
from engine.words import tr, tr_later

if TYPE_CHECKING:
    from engine.seen.asker import Asker
    from engine.telemetry.prometheus_text import Page

PREFIXES: Final = ("llamacpp:",)
_RUNNING = names("llamacpp:requests_processing")
_WAITING = names("llamacpp:requests_deferred")
_PROMPT = names("llamacpp:prompt_tokens_total")
_OUTPUT = names("llamacpp:tokens_predicted_total")
_USED = names(
    "llamacpp:kv_cache_usage_ratio",
    absent=tr_later("llama-server has stated no fill of its cache since mid-2025"),
)
_CELLS = names("llamacpp:kv_cache_tokens")
_NO_SLOTS = Missing(tr_later("llama-server was started without /slots"))
_REGIONS: Final = {
    "model": Region.WEIGHTS, "weights": Region.WEIGHTS, "context": Region.KV_CACHE,
    "compute": Region.ACTIVATIONS,
}  # fmt: skip


def read(asker: Asker) -> tuple[RuntimeSeen, ...]:
    """What one server says."""
    common: dict[str, Any] = {
        "runtime": "llama.cpp", "label": "llama.cpp", "address": asker.address,
    }  # fmt: skip
    if asker.is_loading():
        why = tr("the model is being loaded")
        absent = dict.fromkeys(("model", "pool", "running", "waiting"), Missing(why))
        return (RuntimeSeen(**common, reach=Reach.LOADING, why=why, **absent),)
    if asker.fields("/props").get("role") == "router":
        loaded = [name for entry in openai.models(asker) if (name := _loaded(entry))]
        rows = tuple(
            _served(asker, common, f"?model={quote(name, safe='')}", name) for name in loaded
        )
        return rows or (RuntimeSeen(**common, reach=Reach.ANSWERS, model=NO_MODEL),)
    return (_served(asker, common),)


def _loaded(entry: dict[str, Any]) -> str:
    """The name of a model that a router has loaded; empty of one that it could load."""
    is_loaded = figures.fields(entry.get("status")).get("value") == "loaded"
    return figures.text(entry.get("id")) if is_loaded else ""


def _served(asker: Asker, common: dict[str, Any], query: str = "", name: str = "") -> RuntimeSeen:
    """One model: the only one, or that of a router which ``query`` names."""
    props, page = asker.fields("/props" + query), asker.metrics("/metrics" + query)
    slots = figures.rows(asker.json("/slots" + query))
    listed = ModelSeen(name) if name else openai.first_model(asker)
    model = _model(props, slots, listed)
    pool = _pool(props, slots, page)
    context = model.context_tokens if isinstance(model, ModelSeen) else NOT_STATED
    return RuntimeSeen(
        **common,
        reach=Reach.ANSWERS,
        version=_version(props.get("build_info")),
        model=model,
        pool=pool,
        running=_running(page, slots),
        waiting=_of(page, _WAITING),
        prompt_tokens=_of(page, _PROMPT),
        prefilling=_prefilling(slots),
        output_tokens=_output(page, slots),
        stated=() if query else tuple(_stated(asker.fields("/memory"))),
        settings={"max_model_len": context} if isinstance(context, int) else {},
    )


def _of(page: Page | Missing, gauge: Any) -> int | Missing:
    return page if isinstance(page, Missing) else whole(gauge.total(page))


def _model(
    props: dict[str, Any], slots: list[dict[str, Any]], listed: ModelSeen | Missing
) -> ModelSeen | Missing:
    path = figures.text(props.get("model_path"))
    name = figures.text(props.get("model_alias")) or path
    if not name and isinstance(listed, Missing):
        return listed
    defaults = figures.fields(props.get("default_generation_settings"))
    context = figures.positive(defaults.get("n_ctx"))
    if isinstance(context, Missing) and slots:
        context = figures.positive(slots[0].get("n_ctx"))
    return ModelSeen(
        name=name or (listed.name if isinstance(listed, ModelSeen) else ""),
        context_tokens=context,
        slots=_slot_count(props, slots),
        quantisation=figures.text(props.get("model_ftype")),
        file=path,
    )


def _slot_count(props: dict[str, Any], slots: list[dict[str, Any]]) -> int | Missing:
    return figures.positive(props.get("total_slots") or len(slots))


def _pool(props: dict[str, Any], slots: list[dict[str, Any]], page: Page | Missing) -> PoolSeen:
    """The cache of all slots; they have equal parts of it unless ``--kv-unified`` shares it."""
    count = _slot_count(props, slots)
    defaults = figures.fields(props.get("default_generation_settings"))
    context = figures.positive(defaults.get("n_ctx"))
    tokens = NOT_STATED
    if isinstance(count, int) and isinstance(context, int):
        shared = Missing(tr("it doesn’t say whether its slots share one cache"))
        tokens = context if count == 1 else shared
    cells = page if isinstance(page, Missing) else whole(_CELLS.total(page))
    used = cells if isinstance(cells, int) else _used(slots)
    fill = page if isinstance(page, Missing) else share(_USED.total(page))
    pool = PoolSeen(tokens=tokens, used_share=fill, used_tokens=used)
    return with_capacity(pool, tokens, Known.STATED) if isinstance(tokens, int) else pool


def with_capacity(pool: PoolSeen, tokens: int, known: Known) -> PoolSeen:
    """``pool`` of ``tokens`` tokens, its fill worked out where it is not stated."""
    used = pool.used_tokens
    fill = pool.used_share
    if isinstance(fill, Missing) and isinstance(used, int):
        fill = min(used / tokens, 1.0)
    return replace(pool, tokens=tokens, tokens_known=known, used_share=fill)


def _used(slots: list[dict[str, Any]]) -> int | Missing:
    """Tokens of the requests that are worked on: prompt and answer of each slot.

    ``n_prompt_tokens`` grows with the answer (b11549), so the prompt is what was processed of it
    and what was found in the cache.
    """
    if not slots:
        return _NO_SLOTS
    busy = [slot for slot in slots if slot.get("is_processing")]
    counts = [
        figures.total((
            figures.count(slot.get("n_prompt_tokens_processed", slot.get("n_past"))),
            figures.count(slot.get("n_prompt_tokens_cache")),
            _decoded(slot),
        ))
        for slot in busy
    ]  # fmt: skip
    return figures.total(counts) if counts else 0


def _decoded(slot: dict[str, Any]) -> int | Missing:
    """Tokens of a slot's answer so far; one object in older releases, a list in newer ones."""
    said = slot.get("next_token")
    tokens = figures.rows(said) or [figures.fields(said)]
    return figures.count(tokens[0].get("n_decoded"))


def _prefilling(slots: list[dict[str, Any]]) -> int | Missing:
    busy = [slot for slot in slots if slot.get("is_processing")]
    return sum(_decoded(slot) == 0 for slot in busy) if slots else _NO_SLOTS


def _output(page: Page | Missing, slots: list[dict[str, Any]]) -> int | Missing:
    """Tokens generated, those of unfinished answers too: the counter moves when one ends."""
    ended = _of(page, _OUTPUT)
    going = figures.total(_decoded(slot) for slot in slots if slot.get("is_processing"))
    return ended + going if isinstance(ended, int) and isinstance(going, int) else ended


def _running(page: Page | Missing, slots: list[dict[str, Any]]) -> int | Missing:
    if not isinstance(page, Missing) and _RUNNING.series(page):
        return whole(_RUNNING.total(page))
    if slots:
        return sum(bool(slot.get("is_processing")) for slot in slots)
    return page if isinstance(page, Missing) else NOT_STATED


def _stated(memory: dict[str, Any]) -> list[StatedBytes]:
    """Bytes per device of ``/memory``, under any of the names that its drafts have used."""
    found: list[StatedBytes] = []
    for device in figures.rows(memory.get("devices")):
        name = figures.text(device.get("name")) or figures.text(device.get("device"))
        for key, region in _REGIONS.items():
            size = figures.positive(device.get(key, device.get(f"{key}_bytes")))
            if isinstance(size, int):
                on_device = not name.upper().startswith(("CPU", "HOST"))
                found.append(StatedBytes(size, region, name, on_device=on_device))
    return found


def _version(build: object) -> str | Missing:
    """``b9181-0123abc`` as ``b9181``; a build outside its repository calls itself b0."""
    name = figures.text(build).partition("-")[0]
    return NOT_STATED if name in {"", "b0"} else name
