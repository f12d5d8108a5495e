"""The runtimes that are seen, in the published answers of ``machine`` and ``watch``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.budget.model import Region
from engine.contract.shapes import SIZE, TEXT, TEXTS, closed, one_of, or_missing, or_null, said
from engine.seen import plain
from engine.seen.model import Known, Reach
from engine.telemetry.snapshot import Quality

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.contract.shapes import Schema
    from engine.seen.model import RuntimeSeen

_SHARE: Schema = {"type": "number", "minimum": 0, "maximum": 1}


def answer(runtimes: Iterable[RuntimeSeen]) -> dict[str, object]:
    """What ``--runtimes`` adds."""
    return {"runtimes": [plain.to_dict(seen) for seen in runtimes]}


def schema() -> Schema:
    """What ``answer`` makes."""
    stated = closed(
        region={"enum": ["", *(region.value for region in Region)]},
        rank=TEXT,
        on_device={"type": "boolean"},
        size_bytes=SIZE,
    )
    attributed = closed(
        uuid=TEXT, device=TEXT, size_bytes=or_missing(SIZE), quality=one_of(Quality)
    )
    model = closed(
        name=TEXT,
        context_tokens=said(or_missing(SIZE), "of one request"),
        slots=or_missing(SIZE),
        quantisation=TEXT,
        file=TEXT,
        expires=said(TEXT, "when it is unloaded; never, or empty where that is not told"),
    )
    pool = closed(
        tokens=said(or_missing(SIZE), "capacity"),
        tokens_known=one_of(Known),
        used_share=or_missing(_SHARE),
        used_tokens=or_missing(SIZE),
        evictable_tokens=said(or_missing(SIZE), "of the used ones, those given up on demand"),
        size_bytes=or_missing(SIZE),
        size_known=one_of(Known),
    )
    runtime = closed(
        runtime=said(TEXT, "key of the machine contract; empty where it is not recognised"),
        label=TEXT,
        reach=one_of(Reach),
        why=said(TEXT, "why it could not be asked"),
        address=TEXT,
        version=or_missing(TEXT),
        pids={"type": "array", "items": SIZE},
        model=or_missing(model),
        pool=or_missing(pool),
        requests_running=or_missing(SIZE),
        requests_waiting=or_missing(SIZE),
        requests_prefilling=or_missing(SIZE),
        prompt_tokens=said(or_missing(SIZE), "processed since its start"),
        output_tokens=said(or_missing(SIZE), "generated since its start"),
        stated_bytes=said(or_missing(SIZE), "by its own account, on accelerators if on any"),
        stated={"type": "array", "items": stated},
        attributed_bytes=said(or_missing(SIZE), "by the drivers, to its processes"),
        attributed={"type": "array", "items": attributed},
        difference=said(or_null(TEXT), "why both are more than 1 GiB and 15% apart"),
        notes=TEXTS,
        raw=said({"type": "object", "additionalProperties": TEXT}, "what is not understood"),
    )
    return {"type": "array", "items": runtime}
