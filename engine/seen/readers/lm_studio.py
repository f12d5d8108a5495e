"""LM Studio: ``/api/v1/models`` (0.4.0 on), else ``/api/v0/models`` (0.3.6 on).

Its interface states no memory: settings come from it, bytes from the driver. What it would load is
asked for by nobody (``POST /api/v1/models/load`` loads).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.seen import figures
from engine.seen.model import NO_MODEL, ModelSeen, PoolSeen, Reach, RuntimeSeen
from engine.telemetry.snapshot import Missing
from engine.words import tr, tr_later

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.seen.asker import Asker

_NOTHING = Missing(tr_later("LM Studio doesn’t state it"))
_SETTINGS = {
    "context_length": "max_model_len", "eval_batch_size": "n_batch",
    "flash_attention": "flash_attn", "offload_kv_cache_to_gpu": "offload_kqv",
}  # fmt: skip
"""Whether ``parallel`` multiplies the cache is not known, so no plan takes it."""


def read(asker: Asker) -> tuple[RuntimeSeen, ...]:
    """What one server says: a row per loaded instance, one without a model where none is loaded."""
    common: dict[str, Any] = {
        "runtime": "lmstudio", "label": "LM Studio", "reach": Reach.ANSWERS,
        "address": asker.address, "version": _NOTHING, "running": _NOTHING, "waiting": _NOTHING,
        "pool": PoolSeen(_NOTHING, used_share=_NOTHING, used_tokens=_NOTHING, size_bytes=_NOTHING),
        "prompt_tokens": _NOTHING, "output_tokens": _NOTHING,
    }  # fmt: skip
    newer = asker.fields("/api/v1/models")
    if "models" in newer:
        found = tuple(_newer(figures.rows(newer["models"]), common))
    else:
        found = tuple(_older(figures.rows(asker.fields("/api/v0/models").get("data")), common))
    return found or (RuntimeSeen(**common, model=NO_MODEL),)


def _newer(models: list[dict[str, Any]], common: dict[str, Any]) -> Iterator[RuntimeSeen]:
    for model in models:
        quantisation = figures.text(figures.fields(model.get("quantization")).get("name"))
        for instance in figures.rows(model.get("loaded_instances")):
            config = figures.fields(instance.get("config"))
            yield RuntimeSeen(
                **common,
                model=ModelSeen(
                    name=figures.text(instance.get("id")) or figures.text(model.get("key")),
                    context_tokens=figures.positive(config.get("context_length")),
                    slots=figures.positive(config.get("parallel")),
                    quantisation=quantisation,
                ),
                settings={
                    ours: config[theirs]
                    for theirs, ours in _SETTINGS.items()
                    if isinstance(config.get(theirs), int)
                },
            )


def _older(models: list[dict[str, Any]], common: dict[str, Any]) -> Iterator[RuntimeSeen]:
    for model in models:
        if model.get("state") not in {"loaded", "loading"}:
            continue
        is_loading = model.get("state") == "loading"
        late: dict[str, Any] = {"reach": Reach.LOADING, "why": tr("the model is being loaded")}
        context = figures.positive(model.get("loaded_context_length"))
        yield RuntimeSeen(
            **(common | late if is_loading else common),
            model=ModelSeen(
                name=figures.text(model.get("id")),
                context_tokens=context,
                quantisation=figures.text(model.get("quantization")),
            ),
            settings={"max_model_len": context} if isinstance(context, int) else {},
        )
