"""Text Generation Inference: ``/info`` and ``/metrics``. It states tokens and no bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.seen import figures
from engine.seen.gauges import names, whole
from engine.seen.model import NOT_STATED, ModelSeen, PoolSeen, Reach, RuntimeSeen
from engine.seen.openai import NO_MODEL
from engine.telemetry.snapshot import Missing
from engine.words import tr_later

if TYPE_CHECKING:
    from engine.seen.asker import Asker
    from engine.seen.gauges import Gauge
    from engine.telemetry.prometheus_text import Page

PREFIXES: Final = ("tgi_",)
_RUNNING = names("tgi_batch_current_size")
_WAITING = names("tgi_queue_size")
_PROMPT = names("tgi_request_input_length_sum")
_OUTPUT = names("tgi_request_generated_tokens_sum")
_USED = names("tgi_batch_current_max_tokens")
_TO_BE_INFERRED = 2**32 - 1
"""What stands for a capacity that is worked out at the warm-up (TGI's launcher)."""
_NOT_INFERRED = Missing(tr_later("the runtime has not worked out its capacity"))
_NO_BYTES = Missing(tr_later("TGI states its pool in tokens alone"))


def read(asker: Asker) -> tuple[RuntimeSeen, ...]:
    """What one server says."""
    info, page = asker.fields("/info"), asker.metrics()
    name = figures.text(info.get("model_id"))
    tokens = figures.positive(info.get("max_batch_total_tokens"))
    if tokens == _TO_BE_INFERRED:
        tokens = _NOT_INFERRED
    used = _of(_USED, page)
    fill = NOT_STATED
    if isinstance(tokens, int) and isinstance(used, int):
        fill = min(used / tokens, 1.0)
    context = figures.positive(info.get("max_total_tokens"))
    return (
        RuntimeSeen(
            runtime="tgi",
            label="TGI",
            reach=Reach.ANSWERS,
            address=asker.address,
            version=figures.version(info.get("version")),
            model=ModelSeen(name, context) if name else NO_MODEL,
            pool=PoolSeen(
                tokens=tokens,
                used_tokens=used,
                used_share=fill,
                size_bytes=_NO_BYTES,
            ),
            running=_of(_RUNNING, page),
            waiting=_of(_WAITING, page),
            prompt_tokens=_of(_PROMPT, page),
            output_tokens=_of(_OUTPUT, page),
            settings={"max_model_len": context} if isinstance(context, int) else {},
        ),
    )


def _of(gauge: Gauge, page: Page | Missing) -> int | Missing:
    return page if isinstance(page, Missing) else whole(gauge.total(page))
