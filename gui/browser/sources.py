"""Rows of the catalogue, the Hub, this computer and what one keeps. No Qt: some runs in workers."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from engine.architecture.read import read
from engine.architecture.spec import ModuleClass
from engine.errors import HubError, PlimsollError
from engine.source import catalogue, files, local
from engine.source.reference import is_hub_name, one_spelling
from engine.source.resolve import resolve
from engine.text import printable
from engine.units import format_bytes
from engine.words import tr, tr_count
from gui.browser import listing
from gui.browser.filters import IMAGES, SOUND, TEXT
from gui.browser.rows import Place, Row

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.cancel import CancelToken
    from engine.source.catalogue import CatalogueEntry
    from engine.source.hub import HubClient
    from engine.source.hub_models import HubFile, HubModel, HubPage
    from engine.source.local import LocalModel
    from engine.source.raw import RawModel


_NAMED_LIKE_THE_HUB = frozenset({local.HUB_CACHE, "LM Studio"})
_REMEMBERED = 64
"""Models of the Hub whose headers are kept for their badges."""
_TAKES: dict[str, tuple[str, ...]] = {
    "text": (TEXT,),
    "embedding": (TEXT,),
    "image-text": (TEXT, IMAGES),
    "audio-text": (TEXT, SOUND),
    "text-generation": (TEXT,),
    "text2text-generation": (TEXT,),
    "feature-extraction": (TEXT,),
    "sentence-similarity": (TEXT,),
    "text-classification": (TEXT,),
    "text-ranking": (TEXT,),
    "fill-mask": (TEXT,),
    "image-text-to-text": (TEXT, IMAGES),
    "video-text-to-text": (TEXT, IMAGES),
    "visual-question-answering": (TEXT, IMAGES),
    "audio-text-to-text": (TEXT, SOUND),
    "any-to-any": (TEXT, IMAGES, SOUND),
    "automatic-speech-recognition": (SOUND,),
    "audio-classification": (SOUND,),
    "image-classification": (IMAGES,),
}
"""By the catalogue's modality and by the Hub's task; of other tasks it isn't known."""


def catalogue_row(entry: CatalogueEntry) -> Row:
    """A row of the bundled catalogue."""
    return Row(
        key=entry.id,
        name=entry.name,
        owner=entry.organisation,
        fetch=lambda _token: catalogue.raw(entry),
        parameters=entry.parameters,
        weight_format=listing.format_label(entry.weight_format),
        context=entry.max_position_embeddings,
        downloads=entry.downloads,
        gated=entry.gated,
        takes=_TAKES[entry.modality],
        licence=entry.licence or "",
        model=partial(_catalogue_model, entry),
        places=frozenset({Place.CATALOGUE}),
    )


@cache
def _catalogue_model(entry: CatalogueEntry) -> Model:
    return read(catalogue.raw(entry))


def hub_row(found: HubModel, hub: HubClient) -> Row:
    """A row of the Hub, by what its list says; nothing is read of its files."""
    owner, _, name = found.id.rpartition("/")
    fetch = partial(resolved, f"{hub.endpoint}/{found.id}", hub)
    return Row(
        key=found.id,
        name=printable(name, 200),
        owner=printable(owner, 200),
        fetch=fetch,
        parameters=found.parameters,
        weight_format=found.weight_format,
        context=found.context,
        downloads=found.downloads,
        likes=found.likes,
        gated=found.gated,
        stored_bytes=found.stored_bytes,
        takes=_TAKES.get(found.pipeline_tag, ()),
        licence=found.licence,
        updated=found.last_modified,
        places=frozenset({Place.HUB}),
        afresh=fetch,
    )


def resolved(text: str, hub: HubClient, token: CancelToken) -> RawModel:
    """What ``text`` refers to; for a worker."""
    return resolve(text, token, hub)


def ask(hub: HubClient, query: str, after: HubPage | None, token: CancelToken) -> HubPage:
    """The page after ``after``, or the first; for a worker."""
    return hub.page(query, token, after=after)


def list_files(hub: HubClient, repo_id: str, token: CancelToken) -> tuple[Row, ...]:
    """A row for each GGUF model of a repository, by its size alone; for a worker."""
    return tuple(_file_row(hub, repo_id, file) for file in hub.files(repo_id, token))


def _file_row(hub: HubClient, repo_id: str, file: HubFile) -> Row:
    folder, _, name = file.path.rpartition("/")
    parts = len(file.parts)
    joined = tr_count("{number} file", "{number} files joined", parts).format(number=parts)
    about = joined if parts > 1 else ""
    if file.is_projector:
        about = tr("For images or sound, beside a model")
    return Row(
        key=f"{repo_id}:{file.path}",
        name=printable(name, 200),
        owner=printable(about or folder, 200),
        fetch=partial(resolved, f"{repo_id}:{file.path}", hub),
        stored_bytes=file.size_bytes,
        beside=about if file.is_projector else "",
        is_file=True,
        places=frozenset({Place.HUB}),
    )


def file_read(row: Row, token: CancelToken) -> Row:
    """``row`` with what its header says, or why it makes no sense; for a worker.

    Raises:
        HubError: the Hub gave no answer, and wouldn't to the next question either.
    """
    try:
        raw = row.fetch(token)
        read_row = _with_model(row, read(raw))
    except HubError:
        raise
    except PlimsollError as error:
        return replace(row, model=partial(_raise, error))
    elements = sum(prod(tensor.shape) for tensor in raw.tensors)
    stored = sum(tensor.size_bytes for tensor in raw.tensors)
    bits = 8 * stored / elements if elements else None
    return replace(read_row, bits=bits, fetch=partial(_as_read, raw))


def _as_read(raw: RawModel, _token: CancelToken) -> RawModel:
    return raw


def look_here(folders: tuple[str, ...], token: CancelToken) -> tuple[Row, ...]:
    """Models of this computer and of ``folders``, their headers read; for a worker.

    Only the stores whose folders are named like the Hub's repositories say by an id which model
    theirs is; elsewhere the same words may mean another.
    """
    rows: dict[str, Row] = {}
    for found in local.find(token, map(Path, folders)):
        token.raise_if_cancelled()
        row = _local_row(found, token)
        is_other = found.kind not in _NAMED_LIKE_THE_HUB and catalogue.find(row.key) is not None
        key = f"{row.key} ({found.kind})" if is_other or row.key in rows else row.key
        # Files of one name in several folders are models of their own.
        rows[f"{row.key} ({row.path})" if key in rows else key] = row
    return tuple(replace(row, key=key) for key, row in rows.items())


def _local_row(found: LocalModel, token: CancelToken) -> Row:
    fetch = partial(_read_local, found)
    row = Row(
        key=found.id,
        name=printable(found.id.rsplit("/", 1)[-1], 200),
        owner=tr(found.kind),
        fetch=fetch,
        size_bytes=found.size_bytes or None,
        path=str(found.path),
        beside=_beside(found),
        places=frozenset({Place.HERE}),
    )
    try:
        model = read(fetch(token))
    except PlimsollError as error:
        return replace(row, model=partial(_raise, error))
    return _with_model(row, model)


def _beside(found: LocalModel) -> str:
    """``With 0.8 GiB for images or sound beside it``."""
    projector = format_bytes(found.projector_bytes or 0, digits=1)
    adapters = format_bytes(found.adapter_bytes or 0, digits=1)
    match bool(found.projector_bytes), bool(found.adapter_bytes):
        case True, True:
            words = tr("With {size} for images or sound and {adapters} of adapters beside it")
        case True, False:
            words = tr("With {size} for images or sound beside it")
        case False, True:
            words = tr("With {adapters} of adapters beside it")
        case _:
            words = ""
    return words.format(size=projector, adapters=adapters)


def own_row(reference: str, hub: HubClient) -> Row:
    """The row of a favourite, or of what was opened, that nothing else tells of.

    Args:
        reference: the text that finds it.
        hub: asked when the row is opened.
    """
    owner, _, name = reference.replace("\\", "/").rstrip("/").rpartition("/")
    return Row(
        key=reference,
        name=printable(name, 200),
        owner=printable(owner, 200),
        fetch=partial(resolved, reference, hub),
    )


def here_too(row: Row, here: Row) -> Row:
    """``row`` as it lies on this computer: what can be read of the files here is more than said."""
    is_read = here.parameters is not None
    return replace(
        here if is_read else row,
        key=row.key,
        name=row.name,
        owner=row.owner,
        context=here.context or row.context,
        downloads=row.downloads,
        gated=row.gated,
        takes=row.takes or here.takes,
        licence=row.licence,
        size_bytes=here.size_bytes,
        path=here.path,
        beside=here.beside,
        places=row.places | here.places,
    )


def on_the_hub_too(row: Row, found: Row) -> Row:
    """``row`` with what the Hub's list adds; what is known stays, and so its place by it."""
    return replace(
        row,
        parameters=row.parameters or found.parameters,
        weight_format=row.weight_format or found.weight_format,
        context=row.context or found.context,
        downloads=row.downloads if row.downloads is not None else found.downloads,
        likes=found.likes,
        gated=found.gated if row.gated is None else row.gated,
        stored_bytes=row.stored_bytes or found.stored_bytes,
        takes=row.takes or found.takes,
        licence=row.licence or found.licence,
        updated=found.updated,
        model=row.model or found.model,
        places=row.places | found.places,
        afresh=found.afresh,
    )


def _with_model(row: Row, model: Model) -> Row:
    stored = model.stored.format_label if model.stored else model.spec.weight_format
    return replace(
        row,
        parameters=model.parameters,
        weight_format=listing.format_label(stored),
        context=model.spec.max_position_embeddings,
        takes=row.takes or _taken_in(model),
        model=lambda: model,
    )


def _taken_in(model: Model) -> tuple[str, ...]:
    """What the model's parts take in: text, and what it has a tower for."""
    parts = {tensor.module for tensor in model.spec.outer}
    towers = ((ModuleClass.VISION, IMAGES), (ModuleClass.AUDIO, SOUND))
    return (TEXT, *(word for module, word in towers if module in parts))


def remembering(row: Row, memory: dict[str, RawModel]) -> Row:
    """``row``, whose reading from the Hub leaves what was read in ``memory`` under its key."""
    if not is_hub_name(row.key):
        return row
    afresh = row.afresh or row.fetch

    def fetch(token: CancelToken) -> RawModel:
        raw = afresh(token)
        while len(memory) >= _REMEMBERED:
            del memory[next(iter(memory))]
        memory[one_spelling(row.key)] = raw
        return raw

    return replace(row, fetch=fetch, afresh=fetch)


def learned(row: Row, raw: RawModel) -> Row:
    """``row`` with what its files said."""
    try:
        return _with_model(row, read(raw))
    except PlimsollError as error:
        return replace(row, model=partial(_raise, error))


def _read_local(found: LocalModel, token: CancelToken) -> RawModel:
    """The model under the name that its store gives it, by which its row is marked."""
    return replace(files.read(found.path, token), id=found.id)


def _raise(error: PlimsollError) -> Model:
    raise error


def is_command(text: str) -> bool:
    """Whether ``text`` starts a runtime, and names no model."""
    from engine.launch.read import looks_like_one  # noqa: PLC0415 - only when it is asked for

    return looks_like_one(text)
