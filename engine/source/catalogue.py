"""The bundled catalogue: well-known models as facts in our own schema, read in milliseconds.

An entry holds the config keys that sizing needs (and no others), exact parameters per module
class, and where the facts were checked. Runs of equal list items are stored as ``[item, count]``
pairs under ``{"runs": …}``, and a name that recurs layer by layer as ``{"each": "layers.#.mlp",
"over": [[first, last], …]}``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import date
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from engine.source.raw import RawModel
from engine.words import tr, tr_later
from resources import data

if TYPE_CHECKING:
    from collections.abc import Mapping

_SOURCE = tr_later("bundled catalogue")


@dataclass(frozen=True, slots=True, eq=False)
class CatalogueEntry:
    """One model of the catalogue. ``config`` keeps the stored form; ``raw`` unfolds it."""

    id: str
    """Hub id."""
    model_type: str
    parameters: int
    """Exact parameters of the built model."""
    weight_format: str
    """Format of the published weights (``engine.formats``)."""
    max_position_embeddings: int | None
    modality: str
    """``text``, ``image-text``, ``audio-text`` or ``embedding``."""
    gated: bool | None
    """Whether the Hub asks for consent; None where that is not known."""
    licence: str | None
    downloads: int | None
    """Downloads on the Hub when the catalogue was built."""
    verified: str
    """How the total was checked."""
    config: Mapping[str, Any] = field(repr=False)
    parameters_by_class: Mapping[str, int] = field(repr=False)

    @property
    def organisation(self) -> str:
        """The part of the id before the slash."""
        return self.id.partition("/")[0]

    @property
    def name(self) -> str:
        """The part of the id after the slash."""
        return self.id.rpartition("/")[2]


@cache
def entries() -> tuple[CatalogueEntry, ...]:
    """Every entry, most downloaded first."""
    return tuple(CatalogueEntry(**entry) for entry in data("catalogue")["models"])


@cache
def read_on() -> date:
    """The day on which the Hub was read for the catalogue: how old its facts are."""
    return date.fromisoformat(data("catalogue")["read"])


@cache
def _by_name() -> dict[str, CatalogueEntry]:
    names: dict[str, CatalogueEntry] = {}
    for entry in entries():
        names.setdefault(entry.name.lower(), entry)
    for entry in entries():
        names[entry.id.lower()] = entry
    return names


def find(name: str) -> CatalogueEntry | None:
    """The entry with the id ``name``, or whose name after the slash it is.

    Case does not matter, nor whether words are joined by spaces or by dashes.
    """
    names, key = _by_name(), name.strip().lower()
    return names.get(key) or names.get("-".join(key.split()))


MIRRORS = frozenset(
    {"huggyllama", "meta-llama", "neuralmagic", "nousresearch", "redhatai", "unsloth"}
)
"""Organisations on the Hub that publish copies of others' models under the same names."""
MIRRORED = "catalogue entry of "


def mirrored(name: str) -> RawModel | None:
    """The entry that ``name`` seems to copy: of a mirror, with the same name after the slash.

    Only the name is compared, so the source says that nothing else was checked.
    """
    organisation, _, rest = name.strip().partition("/")
    entry = _by_name().get(rest.lower()) if organisation.lower() in MIRRORS else None
    if entry is None or "/" in rest:
        return None
    return replace(
        raw(entry),
        id=name.strip(),
        source=tr("{mirrored}{id}; same name, not checked").format(mirrored=MIRRORED, id=entry.id),
    )


@cache
def raw(entry: CatalogueEntry) -> RawModel:
    """``entry`` as a source delivers it; the same object on every call."""
    return RawModel(
        id=entry.id,
        source=_SOURCE,
        config=unfold(entry.config),
        parameters_by_class=entry.parameters_by_class,
    )


def unfold(value: Any) -> Any:
    """``value`` with every run of equal items written out."""
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value)
        if pairs.keys() == {"runs"}:
            return [item for item, count in pairs["runs"] for _ in range(count)]
        if pairs.keys() == {"by_name"}:
            return {name: item for names, item in pairs["by_name"] for name in _names(names)}
        return {key: unfold(item) for key, item in pairs.items()}
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return [name for item in items for name in _names(item)]
    return value


def _names(item: Any) -> list[Any]:
    """A list item, or the names it stands for."""
    if isinstance(item, dict) and cast("dict[str, Any]", item).keys() == {"each", "over"}:
        pairs = cast("dict[str, Any]", item)
        each: str = pairs["each"]
        return [
            each.replace("#", str(n))
            for first, last in pairs["over"]
            for n in range(first, last + 1)
        ]
    return [unfold(item)]


def fold(value: Any) -> Any:
    """``value`` with long lists as runs of equal items, where that is shorter."""
    if isinstance(value, dict):
        return {key: fold(item) for key, item in cast("dict[str, Any]", value).items()}
    if not isinstance(value, list):
        return value
    items = cast("list[Any]", value)
    runs: list[list[Any]] = []
    for item in items:
        if runs and runs[-1][0] == item:
            runs[-1][1] += 1
        else:
            runs.append([item, 1])
    return {"runs": runs} if 2 * len(runs) < len(items) else items
