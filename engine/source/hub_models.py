"""What the Hub says about a model in its lists: summary facts, each of which may be missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

EXPAND = (
    "safetensors", "gguf", "config", "gated", "downloads", "likes", "lastModified", "pipeline_tag",
    "tags",
)  # fmt: skip
"""Asked for with each page, so that a row needs no request of its own."""

_PLAIN_BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2}
"""Of one weight, where an element is a weight."""
_LICENCE = "license:"
_MAX_COUNT = 10**15


@dataclass(frozen=True, slots=True)
class HubModel:
    """One model of a list."""

    id: str
    parameters: int | None
    """Only where the weights are plain: the Hub counts packed ones now by element, now by
    logical weight."""
    stored_bytes: int | None
    """Of those weights as stored."""
    weight_format: str
    """``BF16``, ``FP8``, ``GPTQ`` … or ``GGUF``; empty where unknown."""
    context: int | None
    model_type: str
    gated: bool | None
    downloads: int | None
    likes: int | None
    last_modified: str
    """ISO 8601, as stated; empty where unknown."""
    pipeline_tag: str
    licence: str = ""
    """As its page states it; empty where it states none."""


@dataclass(frozen=True, slots=True)
class HubPage:
    """One page of answers, in the Hub's order."""

    models: tuple[HubModel, ...]
    next_url: str
    """Where the next page is; empty at the end."""

    @property
    def has_more(self) -> bool:
        """Whether another page follows."""
        return bool(self.next_url)


@dataclass(frozen=True, slots=True)
class HubFile:
    """One file of a repository, or all parts of a split GGUF model as one."""

    path: str
    """Of the first part."""
    size_bytes: int | None
    """Of all parts together; None where the Hub doesn't say."""
    parts: tuple[str, ...]
    is_projector: bool = False
    """Whether it is the part for images or sound that goes with a model."""


def model_from(item: object) -> HubModel | None:
    """The row for one entry of a list; None for an entry that names no model."""
    if not isinstance(item, dict):
        return None
    fields = cast("dict[str, object]", item)
    name = fields.get("id")
    if not isinstance(name, str) or not name:
        return None
    config = _object(fields.get("config"))
    gguf = _object(fields.get("gguf"))
    counts = _counts(_object(fields.get("safetensors")))
    method = _text(_object(config.get("quantization_config")).get("quant_method"))
    if counts:
        weight_format = method.upper() or max(counts, key=counts.__getitem__)
        is_plain = not method and set(counts) <= _PLAIN_BYTES.keys()
        parameters = sum(counts.values()) if is_plain else None
        stored = sum(n * _PLAIN_BYTES[k] for k, n in counts.items()) if is_plain else None
    else:
        weight_format = "GGUF" if gguf else ""
        stored = None
        parameters = _count(gguf.get("total"))
    gated = fields.get("gated")
    return HubModel(
        id=name,
        parameters=parameters,
        stored_bytes=stored,
        weight_format=weight_format,
        context=_count(gguf.get("context_length")),
        model_type=_text(config.get("model_type")) or _text(gguf.get("architecture")),
        gated=gated is not False if isinstance(gated, bool | str) else None,
        downloads=_count(fields.get("downloads")),
        likes=_count(fields.get("likes")),
        last_modified=_text(fields.get("lastModified")),
        pipeline_tag=_text(fields.get("pipeline_tag")),
        licence=_licence(fields.get("tags")),
    )


def _object(value: object) -> Mapping[str, object]:
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value[:200] if isinstance(value, str) else ""


def _licence(tags: object) -> str:
    """The licence that the Hub makes a tag of: ``license:apache-2.0``."""
    names = cast("list[object]", tags) if isinstance(tags, list) else []
    stated = (_text(name).removeprefix(_LICENCE) for name in names[:200] if _is_licence(name))
    return next(stated, "")


def _is_licence(tag: object) -> bool:
    return isinstance(tag, str) and tag.startswith(_LICENCE)


def _count(value: object) -> int | None:
    """A count that can be true; anything else is unknown, never 0."""
    return value if type(value) is int and 0 <= value <= _MAX_COUNT else None


def _counts(safetensors: Mapping[str, object]) -> dict[str, int]:
    """Elements by dtype; empty unless all of them are sensible."""
    counts = {k: _count(v) for k, v in _object(safetensors.get("parameters")).items()}
    kept = {k: v for k, v in counts.items() if v}
    return kept if None not in counts.values() else {}
