"""An adapter and the model it was made for: where that base is found."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.errors import HubError, SourceError
from engine.source import catalogue, local
from engine.source.reference import is_elsewhere, is_hub_name
from engine.text import printable
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from engine.source.raw import RawModel

    Read = Callable[[Path], RawModel]
    Ask = Callable[[str], RawModel]


def with_base(raw: RawModel, place: Path | None, read: Read, ask: Ask | None = None) -> RawModel:
    """``raw`` on top of its base: what lies beside it, the catalogue's, the computer's, the Hub's.

    Args:
        raw: what a source found; a model without an adapter, or with its config, stays as it is.
        place: the adapter's folder, if it has one.
        read: reads a path without looking for the base of an adapter.
        ask: fetches a model of the Hub, where that may be asked.

    Raises:
        SourceError: the base is not found, or is an adapter itself.
        HubError: the Hub was asked for the base, and says why there is no answer.
    """
    adapter = raw.adapter
    if adapter is None or raw.config is not None:
        return raw
    name = adapter.base
    base = _found(name, place, read)
    if base is None and ask is not None and is_hub_name(name):
        try:
            base = ask(name)
        except HubError as error:
            message = tr("{what}: {message}").format(what=_what(raw), message=error.message)
            raise type(error)(message, field=error.field) from error
    if base is None:
        raise SourceError(
            tr(
                "{what}, which was not found beside it, in the catalogue or in "
                "the Hub cache; put the config.json of that model into the "
                "adapter's folder."
            ).format(what=_what(raw))
        )
    if base.adapter is not None:
        raise SourceError(
            tr("{what}, which is an adapter itself; merge that one first.").format(what=_what(raw))
        )
    return replace(base, id=raw.id, adapter=adapter, notes=(*raw.notes, *base.notes))


def _what(raw: RawModel) -> str:
    base = raw.adapter.base if raw.adapter else ""
    return tr("{id} is an adapter for {value}").format(
        id=printable(raw.id, 80), value=printable(base, 80) or "a base not named"
    )


def _found(name: str, place: Path | None, read: Read) -> RawModel | None:
    """The base on this computer; a path before the catalogue, and the Hub cache last."""
    if not name:
        return None
    # A name that leads to another computer is not looked up there.
    if place is not None and not is_elsewhere(name):
        for path in (place / name, place.parent / name):
            with suppress(SourceError, OSError):
                if path.is_dir() and not path.samefile(place):
                    return read(path)
    entry = catalogue.find(name)
    if entry is not None:
        return catalogue.raw(entry)
    cached = local.snapshot(name, None) if is_hub_name(name) else None
    return read(cached) if cached is not None else catalogue.mirrored(name)


def refuse(metadata: Mapping[str, object], name: str) -> None:
    """Refuse a GGUF file that is an adapter: it has neither layers of its own nor a path to some.

    Raises:
        SourceError: it is one.
    """
    if metadata.get("general.type") == "adapter":
        kind = str(metadata.get("adapter.type") or "lora").replace("lora", "LoRA")
        made_for = metadata.get("general.base_model.0.name") or metadata.get("general.architecture")
        raise SourceError(
            tr("{name} is a {kind} adapter in GGUF, made for {value}; open that model.").format(
                name=name,
                kind=printable(kind, 40),
                value=printable(str(made_for or "another model"), 80),
            )
        )
