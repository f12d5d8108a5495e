"""From what a person typed to a model: catalogue, this disk, or the Hub."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import (
    ConfigError,
    HubError,
    HubNotFoundError,
    HubOfflineError,
    HubTimeoutError,
    PlimsollError,
    SourceError,
)
from engine.source import adapters, catalogue, files, local, ollama
from engine.source.bounded_json import parse_object
from engine.source.derived import derived
from engine.source.raw import RawAdapter, RawModel
from engine.source.reference import (
    HubReference,
    OllamaReference,
    PathReference,
    is_hub_name,
    parse,
)
from engine.text import printable
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.cancel import CancelToken
    from engine.source.hub import HubClient

_NEAREST = 3
_WORD = re.compile(r"[a-z]{3,}|[0-9]+(?:\.[0-9]+)?b?")


def resolve(reference: str, token: CancelToken, hub: HubClient | None = None) -> RawModel:
    """The model that ``reference`` means.

    A config.json pasted as text is read as it stands. A path wins where it is written as one
    (``./name``, ``~``, a suffix). Then come the bundled catalogue, which needs no network; a
    folder or file of that name; a tag of Ollama's store on this computer; and the Hub. A tag that
    isn't in the store is the model of the catalogue that its name says. A Hub URL, a revision or
    a quantisation asks the Hub even where the catalogue has the name.

    Raises:
        SourceError: it means nothing.
        HubError: the Hub was asked, and one of its kinds says why there is no answer.
        ConfigError: the config found is no JSON object.
        HeaderError: the weights file found is truncated or lies.
    """
    token.raise_if_cancelled()
    if reference.lstrip()[:1] == "{":
        return _pasted(reference, token)
    meant = parse(reference, hub.endpoint if hub is not None else "")
    if isinstance(meant, PathReference):
        return files.read(_expanded(meant.path), token)
    name = reference.strip().strip("\"'").strip()
    if isinstance(meant, OllamaReference):
        name = f"{meant.name}:{meant.tag}"
    known = _known(name, token)
    if known is not None:
        return known
    if isinstance(meant, OllamaReference):
        return _from_ollama(meant)
    if meant is None:
        if hub is None or hub.offline or not is_hub_name(name):
            raise SourceError(
                tr("No model of the name {name}.{hint}").format(
                    name=printable(name, 80), hint=_hint(name)
                )
            )
        meant = HubReference(name)
    return _from_hub(meant, name, token, hub)


def _known(name: str, token: CancelToken) -> RawModel | None:
    """What needs no network: the catalogue's model, the file of that name, Ollama's tag."""
    entry = catalogue.find(name)
    if entry is not None:
        return catalogue.raw(entry)
    if _exists(Path(name)):
        return files.read(Path(name), token)
    stored = ollama.find(name)
    return replace(files.read(stored.weights, token), id=stored.name) if stored else None


def _from_ollama(meant: OllamaReference) -> RawModel:
    found = ollama.twin(meant)
    if found is not None:
        return found
    name = printable(f"{meant.name}:{meant.tag}", 80)
    raise SourceError(
        tr(
            "{name} is not in Ollama’s store on this computer, and no model of "
            "the catalogue is named like it.{hint}"
        ).format(name=name, hint=_hint(f"{meant.name}-{meant.tag}"))
    )


def _pasted(text: str, token: CancelToken) -> RawModel:
    data = text.encode("utf-8", errors="replace")
    if len(data) > files.MAX_CONFIG_BYTES:
        raise ConfigError(tr("The pasted text is far larger than any config.json."))
    config = parse_object(data, tr("The pasted text"), ConfigError)
    if "peft_type" in config:
        raw = RawModel(tr("pasted adapter"), tr("pasted text"), adapter=RawAdapter(config))
        return adapters.with_base(raw, None, lambda path: files.read(path, token))
    return RawModel(tr("pasted config"), tr("pasted text"), config=config)


def _from_hub(
    meant: HubReference, name: str, token: CancelToken, hub: HubClient | None
) -> RawModel:
    """The Hub's answer, else what this computer has of it."""
    # A mirror's copy is guessed only when the Hub has been tried, or may not be.
    copied = None
    if hub is not None and not meant.file and not meant.revision:
        copied = catalogue.mirrored(meant.repo_id) or derived(meant.repo_id)
    if hub is None or hub.offline:
        why = tr("it is not in the bundled catalogue, and the Hub was not asked")
        error = HubOfflineError(
            tr("{name} is not on this computer: {why}.").format(name=printable(name, 80), why=why)
        )
        return _without_hub(meant, name, token, error, copied)
    try:
        found = hub.fetch(meant.repo_id, token, meant.revision, file=meant.file)
    except HubNotFoundError as exc:
        hint = _hint(name) if exc.field == "model" else ""
        raise HubNotFoundError(exc.message + hint, field=exc.field) from exc
    except HubError as exc:
        # A pause that is asked for, or trouble of the Hub's own, is no reason to know nothing.
        return _without_hub(meant, name, token, exc, copied)
    return adapters.with_base(
        found, None, lambda path: files.read(path, token), lambda base: hub.fetch(base, token)
    )


def _without_hub(
    meant: HubReference,
    name: str,
    token: CancelToken,
    error: PlimsollError,
    copied: RawModel | None,
) -> RawModel:
    """What this computer has: the Hub's cache, else the catalogue, whose models need no files.

    ``copied`` is the catalogue's model of the same name, where there is one.

    Raises:
        PlimsollError: ``error``, with the nearest names, where there is nothing.
    """
    place = local.cached(meant.repo_id, meant.revision, meant.file)
    if place is not None:
        words = tr("Read from the Hub cache, as of {day}: {why}")
        note = words.format(day=_day_of(place), why=error.message)
        return _noted(files.read(place, token), note)
    entry = catalogue.find(meant.repo_id)
    if entry is not None and not meant.file and not meant.revision:
        return _noted(
            catalogue.raw(entry),
            tr("Sized by the bundled catalogue: {message}").format(message=error.message),
        )
    if copied is not None:
        return _noted(
            copied, tr("Sized by the bundled catalogue: {message}").format(message=error.message)
        )
    if isinstance(error, HubOfflineError | HubTimeoutError):
        raise type(error)(error.message + _hint(name), field=error.field) from error
    raise error


def _day_of(place: Path) -> str:
    """When a file of the Hub cache, or the newest of a folder there, was fetched."""
    try:
        found = [place] if place.is_file() else list(place.iterdir())
        newest = max((file.stat().st_mtime for file in found), default=place.stat().st_mtime)
    except OSError:
        return tr("an unknown day")
    return f"{datetime.fromtimestamp(newest, UTC):%Y-%m-%d}"


def _noted(raw: RawModel, note: str) -> RawModel:
    return replace(raw, notes=(*raw.notes, note))


def _expanded(path: str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise SourceError(
            tr("{path} names a user who isn't known here.").format(path=printable(path, 80))
        ) from None


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _hint(name: str) -> str:
    near = nearest(name)
    return tr(" Nearest: {names}.").format(names=", ".join(near)) if near else ""


def nearest(name: str) -> tuple[str, ...]:
    """Names of the catalogue that are most like ``name``, the best first."""
    wanted = name.casefold()[:200]
    full = {entry.id.casefold(): entry.id for entry in catalogue.entries()}
    short = {key.rsplit("/", 1)[-1]: value for key, value in full.items()}
    close = _alike(wanted, full, _NEAREST, 0.6)
    close += _alike(wanted.rsplit("/", 1)[-1], short, _NEAREST, 0.6)
    close = close or _by_words(wanted, full)
    found = dict.fromkeys((full | short)[key] for key in close)
    return tuple(found)[:_NEAREST]


def _by_words(wanted: str, names: Iterable[str]) -> list[str]:
    """Names that share words with ``wanted``, mistyped ones too; the most shared first.

    Who publishes it says little: ``org`` is part of several names.
    """
    words = {name: set(_WORD.findall(name)) for name in names}
    known = {word for found in words.values() for word in found}
    meant = {
        match
        for word in _WORD.findall(wanted.rsplit("/", 1)[-1])[:20]
        for match in _alike(word, known, 1, 0.75)
    }
    sharing = [name for name, found in words.items() if found & meant]
    return sorted(sharing, key=lambda name: -len(words[name] & meant))[:_NEAREST]


def _alike(name: str, names: Iterable[str], most: int, share: float) -> list[str]:
    """At most ``most`` of ``names``, each with ``share`` of its letters in common with ``name``."""
    from difflib import get_close_matches  # noqa: PLC0415 - for a slip only

    return get_close_matches(name, names, most, share)
