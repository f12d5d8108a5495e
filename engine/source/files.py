"""Models on this disk: a config.json, a model folder, a safetensors or a GGUF file.

Only headers are read, whatever the size of the file; what a file is follows from its
first bytes, its name only decides what is said when it turns out to be something else.
"""

from __future__ import annotations

import os
import re
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING

from engine.errors import ConfigError, HeaderError, SourceError
from engine.source import adapters, companions, gguf, safetensors, shards
from engine.source.bounded_json import parse_object
from engine.source.gguf_cursor import FileSource
from engine.source.raw import RawAdapter, RawModel
from engine.text import printable
from engine.units import format_bytes
from engine.words import tr, tr_later

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from pathlib import Path
    from typing import BinaryIO

    from engine.cancel import CancelToken
    from engine.source.raw import HeaderTensor

MAX_CONFIG_BYTES = 16 * 2**20
"""The largest published ones (with long lists of unquantised modules) take some 1 MB."""
MAX_INDEX_BYTES = 64 * 2**20
MAX_NAME = 300
"""Characters of a name; no file system allows longer ones, and the Hub far shorter."""
_COMMIT = re.compile(r"[0-9a-f]{40}")
_CONFIG_OF_FOLDER = tr_later("config.json of a folder")
_LFS = b"version https://git-lfs"


def read(path: Path, token: CancelToken) -> RawModel:
    """The model that ``path`` holds; reads configs and headers, never weights.

    An adapter comes on top of the model it was made for, where this computer has that.

    Raises:
        SourceError: no model there, or not readable.
        ConfigError: a config that is no JSON object.
        HeaderError: a weights file whose header is truncated or lies.
    """
    raw = _read(path, token)
    place = path if path.is_dir() else path.parent
    return adapters.with_base(raw, place, lambda base: _read(base, token))


def _read(path: Path, token: CancelToken) -> RawModel:  # noqa: PLR0911 - one for each kind of file
    token.raise_if_cancelled()
    if _mode(path) == stat.S_IFDIR:
        return _folder(path, token)
    with opened(path) as (file, size):
        first = file.read(64)
        file.seek(0)
        match _kind(path, first):
            case "gguf":
                return _gguf(path, token)
            case "safetensors":
                return _safetensors(path, token)
            case "index":
                return _folder(path.parent, token)
            case "adapter":
                return _adapter(path.parent)
            case _:
                config = _config(path, file, size)
    identity, revision = _named(path)
    if path.name == "config.json":
        return RawModel(identity, path.name, revision, _completed(path.parent, config))
    return RawModel(identity, path.name, revision, config)


def begins_object(first: bytes) -> bool:
    """Whether text that begins like this may be a config: an object in braces."""
    return first.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{"


def _kind(path: Path, first: bytes) -> str:
    """What a file is, by its first bytes.

    Raises:
        SourceError: it is none of them.
    """
    suffix = path.suffix.lower()
    if first.startswith(gguf.MAGIC) or (suffix == ".gguf" and not first.startswith(_LFS)):
        return "gguf"
    if first.startswith(_LFS):
        raise SourceError(
            tr("{name} is a Git LFS pointer; the file itself was not downloaded.").format(
                name=path.name
            )
        )
    if path.name == shards.INDEX:
        return "index"
    if path.name in (shards.ADAPTER_CONFIG, shards.ADAPTER_WEIGHTS):
        return "adapter"
    if suffix == ".json" or (begins_object(first) and suffix != ".safetensors"):
        return "config"
    if suffix == ".safetensors" or first[8:9] == b"{":
        return "safetensors"
    if suffix in {".bin", ".pt", ".pth", ".ckpt"}:
        raise SourceError(
            tr(
                "{name} is a pickle of PyTorch, which cannot be read safely; "
                "open the config.json beside it."
            ).format(name=path.name)
        )
    raise SourceError(
        tr("{name} is no model: a config.json, a folder, a .safetensors or a .gguf is.").format(
            name=path.name
        )
    )


def _mode(path: Path) -> int:
    """Kind of file at ``path``: a folder or a regular file.

    Raises:
        SourceError: nothing there, or something else.
    """
    try:
        mode = stat.S_IFMT(path.stat().st_mode)
    except (OSError, ValueError) as exc:
        raise _unreadable(path, exc) from exc
    if mode not in {stat.S_IFDIR, stat.S_IFREG}:
        raise SourceError(tr("{path} is a device, pipe or socket, not a file.").format(path=path))
    return mode


def _unreadable(path: Path, exc: OSError | ValueError) -> SourceError:
    if isinstance(exc, FileNotFoundError | NotADirectoryError):
        return SourceError(tr("There is no file or folder {path}.").format(path=path))
    why = getattr(exc, "strerror", None) or tr("its name is not a path")
    return SourceError(tr("{path} cannot be read: {why}.").format(path=path, why=why))


@contextmanager
def opened(path: Path) -> Generator[tuple[BinaryIO, int]]:
    """A regular file and its size; a pipe that took its place meanwhile is not waited for.

    Raises:
        SourceError: not there, not readable, empty or no file.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        with os.fdopen(os.open(path, flags), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise SourceError(tr("{path} is not a file.").format(path=path))
            if not found.st_size:
                raise SourceError(tr("{path} is empty.").format(path=path))
            yield file, found.st_size
    except OSError as exc:
        raise _unreadable(path, exc) from exc


def _config(path: Path, file: BinaryIO, size: int) -> dict[str, object]:
    if size > MAX_CONFIG_BYTES:
        raise ConfigError(
            tr("{name} is {size}, far more than any config.json; was another file meant?").format(
                name=path.name, size=format_bytes(size)
            )
        )
    return parse_object(file.read(MAX_CONFIG_BYTES), path.name, ConfigError)


def _config_beside(folder: Path) -> Mapping[str, object] | None:
    path = folder / "config.json"
    return _completed(folder, _loaded(path) if _exists(path) else None)


def _completed(folder: Path, config: dict[str, object] | None) -> Mapping[str, object] | None:
    beside = [n for n in (*companions.QUANTISATIONS, companions.PARAMS) if _exists(folder / n)]
    return companions.completed(config, beside, lambda name: _loaded(folder / name))


def _loaded(path: Path) -> dict[str, object]:
    with opened(path) as (file, size):
        return _config(path, file, size)


def _folder(folder: Path, token: CancelToken) -> RawModel:
    """A folder as ``save_pretrained`` or a download leaves it.

    Raises:
        SourceError: no model, several, or only part of one.
    """
    try:
        names = sorted(entry.name for entry in folder.iterdir())
    except OSError as exc:
        raise _unreadable(folder, exc) from exc
    if shards.is_adapter(names):
        return _adapter(folder)
    config = _config_beside(folder)
    weights = [n for n in names if shards.is_weights(n)]
    if weights:
        return _sharded(folder, names, config, token)
    models = shards.gguf_models(names)
    if len(models) == 1:
        return _gguf(folder / models[0], token)
    if models:
        some = ", ".join(models[:4]) + (" …" if len(models) > 4 else "")
        raise SourceError(
            tr("{name} holds {models} GGUF models ({some}); open one of them.").format(
                name=folder.name, models=len(models), some=some
            )
        )
    if config is None:
        raise SourceError(_no_model(folder, names))
    identity, revision = _named(folder)
    return RawModel(identity, _CONFIG_OF_FOLDER, revision, config)


def _adapter(folder: Path) -> RawModel:
    """An adapter; a config beside it is that of its base."""
    config = folder / shards.ADAPTER_CONFIG
    if not _exists(config):
        raise SourceError(
            tr(
                "{adapter_weights} has no {adapter_config} beside it, which "
                "says what it was made for."
            ).format(adapter_weights=shards.ADAPTER_WEIGHTS, adapter_config=shards.ADAPTER_CONFIG)
        )
    tensors: tuple[HeaderTensor, ...] = ()
    size = 0
    weights = folder / shards.ADAPTER_WEIGHTS
    if _exists(weights) and not _is_pointer(weights):
        with opened(weights) as (file, size):
            tensors = safetensors.read(file, size, weights.name)
    identity, revision = _named(folder)
    adapter = RawAdapter(_loaded(config), tensors, size)
    return RawModel(identity, tr("local folder"), revision, _config_beside(folder), adapter=adapter)


def _no_model(folder: Path, names: list[str]) -> str:
    start = tr("{value} holds no model: ").format(value=folder.name or folder)
    if "model_index.json" in names:
        return start + tr("an image pipeline is there; open the folder of one of its parts.")
    return start + tr("no config.json, .safetensors or .gguf is in it.")


def _sharded(
    folder: Path, names: list[str], config: Mapping[str, object] | None, token: CancelToken
) -> RawModel:
    """Headers of all weight files that belong together.

    A file that isn't there leaves a note if there is a config to size the model by; a file
    that is there and lies is an error either way.
    """
    index: dict[str, str] | None = None
    if shards.INDEX in names:
        with opened(folder / shards.INDEX) as (file, size):
            if size > MAX_INDEX_BYTES:
                raise HeaderError(
                    tr("{index} is {size}, too large to be one.").format(
                        index=shards.INDEX, size=format_bytes(size)
                    )
                )
            index = shards.parse_index(file.read(MAX_INDEX_BYTES))
    wanted = shards.wanted(names, index)
    tables: dict[str, tuple[HeaderTensor, ...]] = {}
    file_bytes = 0
    absent: list[str] = []
    for name in wanted:
        token.raise_if_cancelled()
        path = folder / name
        if not _exists(path) or _is_pointer(path):
            absent.append(name)
            continue
        with opened(path) as (file, size):
            tables[name] = safetensors.read(file, size, name)
            file_bytes += size
        shards.bounded(tables)
    identity, revision = _named(folder)
    if absent:
        missing = tr("{absent} of {wanted} weight files are missing ({absent_2} …)").format(
            absent=len(absent), wanted=len(wanted), absent_2=absent[0]
        )
        if config is None:
            raise HeaderError(
                tr("{name}: {missing}; without them nothing can be sized.").format(
                    name=folder.name, missing=missing
                )
            )
        note = tr("{missing}, so the weights are computed from config.json.").format(
            missing=missing
        )
        return RawModel(identity, _CONFIG_OF_FOLDER, revision, config, notes=(note,))
    return RawModel(
        identity,
        tr("local folder"),
        revision,
        config,
        tensors=shards.joined(tables, index),
        tensors_source=shards.header_count(len(wanted)),
        file_bytes=file_bytes,
    )


def _exists(path: Path) -> bool:
    """Whether something is there; a folder that may not be searched is an error.

    Raises:
        SourceError: the folder may not be searched.
    """
    try:
        return path.exists()
    except OSError as exc:
        raise _unreadable(path, exc) from exc


def _is_pointer(path: Path) -> bool:
    with opened(path) as (file, _):
        return file.read(len(_LFS)) == _LFS


def _safetensors(path: Path, token: CancelToken) -> RawModel:
    """One file, or the whole model if it is a shard of one."""
    folder = path.parent
    if _exists(folder / shards.INDEX) and shards.SHARD.search(path.name):
        return _folder(folder, token)
    with opened(path) as (file, size):
        tensors = safetensors.read(file, size, path.name)
    identity, revision = _named(path)
    return RawModel(
        identity,
        tr("local file"),
        revision,
        _config_beside(folder),
        tensors=tensors,
        tensors_source=tr("header of {name}").format(name=path.name),
        file_bytes=size,
    )


def _gguf(path: Path, token: CancelToken) -> RawModel:
    """One GGUF model, with all its parts if it is split."""
    names = gguf.parts_of(path.name)
    headers: dict[str, gguf.GgufHeader] = {}
    file_bytes = 0
    for name in names:
        part = path.with_name(name)
        if not _exists(part):
            raise HeaderError(
                tr("{name}, one of {names} parts of {name_2}, is missing.").format(
                    name=name, names=len(names), name_2=path.name
                )
            )
        with opened(part) as (file, size):
            headers[name] = gguf.read(FileSource(file, size, name), token)
            file_bytes += size
        shards.bounded(headers)
    adapters.refuse(headers[names[0]].metadata, path.name)
    identity, revision = _named(path.with_name(names[0]))
    return RawModel(
        identity,
        tr("local file"),
        revision,
        tensors=gguf.joined(headers),
        tensors_source=tr("tensor table of {name}").format(name=path.name)
        if len(names) == 1
        else tr("tensor tables of {names} GGUF parts").format(names=len(names)),
        file_bytes=file_bytes,
        gguf_metadata=headers[names[0]].metadata,
    )


def _named(path: Path) -> tuple[str, str | None]:
    """Name and revision that a model gets from its place; a Hub cache knows both.

    A folder may be called anything; what could reorder a line of text is written out.
    """
    place = path.absolute()
    folder = place if place.is_dir() else place.parent
    for parent in folder.parents:
        if parent.name.startswith("models--"):
            inside = folder.relative_to(parent).parts
            commit = inside[1] if len(inside) > 1 else ""
            name = parent.name.removeprefix("models--").replace("--", "/")
            return printable(name, MAX_NAME), commit if _COMMIT.fullmatch(commit) else None
    is_named_by_folder = place.is_dir() or place.name == "config.json"
    name = (folder.name if is_named_by_folder else gguf.model_name(place.name)) or path.name
    return printable(name, MAX_NAME), None
