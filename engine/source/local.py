"""Models that are already on this computer: where other programs keep them. Never the network.

Read as they lie: the cache of huggingface_hub, Ollama's store, the folders of LM Studio, llama.cpp,
Jan and GPT4All, and any that a person names. Nothing is written, and a store that is damaged is
passed over, not reported.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.source import gguf, ollama, shards, stores
from engine.words import tr_later

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from engine.cancel import CancelToken

_MAX_MODELS = 5000
_MAX_DEPTH = 4
HUB_CACHE = tr_later("Hugging Face cache")


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A model found on this computer. ``files.read(path)`` opens it."""

    id: str
    """As its store names it: ``org/name``, ``llama3.2:3b``, a file name."""
    path: Path
    kind: str
    """Where it was found, in words."""
    size_bytes: int
    """Of its weight files on disk; 0 where only the config is there."""
    projector_bytes: int = 0
    """Of the part for images or sounds that lies beside it."""
    adapter_bytes: int = 0
    """Of the adapters that its store puts on top of it."""


def find(token: CancelToken, folders: Iterable[Path] = ()) -> tuple[LocalModel, ...]:
    """Every model of the known stores and of ``folders``, by name."""
    found: dict[Path, LocalModel] = {}
    for model in _all(token, folders):
        token.raise_if_cancelled()
        found.setdefault(model.path, model)
        if len(found) >= _MAX_MODELS:
            break
    return tuple(sorted(found.values(), key=lambda m: (m.id.casefold(), m.kind)))


def _all(token: CancelToken, folders: Iterable[Path]) -> Iterator[LocalModel]:
    yield from _hub_cache()
    for store in ollama.stores():
        yield from _ollama(store)
    for kind, folder in stores.folders():
        yield from _below(folder, kind, token)
    for folder in folders:
        yield from _below(folder, folder.name or str(folder), token)


def hub_cache() -> Path:
    """Folder in which huggingface_hub keeps its files, by the same rules as it."""
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if os.environ.get(name):
            return Path(os.environ[name]).expanduser()
    home = os.environ.get("HF_HOME")
    if home:
        return Path(home).expanduser() / "hub"
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "huggingface" / "hub"


def snapshot(repo_id: str, revision: str | None) -> Path | None:
    """Folder of ``repo_id`` in the Hub cache at a branch, tag or commit; None if not there."""
    return _snapshot(hub_cache() / f"models--{repo_id.replace('/', '--')}", revision or "main")


def cached(repo_id: str, revision: str | None, file: str = "") -> Path | None:
    """What the Hub cache holds of a repository: its folder, or one file of it.

    Args:
        repo_id: ``org/name``.
        revision: branch, tag or commit; the default branch if None.
        file: a path in the repository, or the name of a quantisation.
    """
    folder = snapshot(repo_id, revision)
    if folder is None or not file:
        return folder
    try:
        below = sorted(p for p in folder.rglob("*") if p.is_file())
        names = [p.relative_to(folder).as_posix() for p in below]
    except OSError:
        return None
    if file in names:
        return folder / file
    found = shards.matching(shards.gguf_models(names), file)
    return folder / found[0] if len(found) == 1 else None


def _snapshot(repository: Path, revision: str) -> Path | None:
    commit = revision
    try:
        reference = repository / "refs" / revision
        if reference.is_file():
            commit = reference.read_text(encoding="utf-8", errors="replace")[:64].strip()
        folder = repository / "snapshots" / commit
        return folder if commit and folder.is_dir() else None
    except (OSError, ValueError):
        return None


def _hub_cache() -> Iterator[LocalModel]:
    for repository in _children(hub_cache()):
        if not repository.name.startswith("models--"):
            continue
        repo_id = repository.name.removeprefix("models--").replace("--", "/")
        folder = _snapshot(repository, "main") or next(
            iter(sorted(_children(repository / "snapshots"), key=_modified, reverse=True)), None
        )
        names = [p.name for p in _children(folder)] if folder else []
        if folder is None:
            continue
        weights = [n for n in names if shards.is_weights(n) and n != shards.INDEX]
        if shards.is_adapter(names):
            weights = [n for n in names if n == shards.ADAPTER_WEIGHTS]
        if weights or "config.json" in names or shards.is_adapter(names):
            size = sum(_size(folder / n) for n in weights)
            yield LocalModel(repo_id, folder, HUB_CACHE, size)
        beside = max((_size(folder / n) for n in names if shards.is_projector(n)), default=0)
        for name in shards.gguf_models(names):
            parts = [folder / part for part in gguf.parts_of(name)]
            label = f"{repo_id}:{gguf.model_name(name)}"
            size = sum(map(_size, parts))
            yield LocalModel(label, parts[0], HUB_CACHE, size, projector_bytes=beside)


def _ollama(store: Path) -> Iterator[LocalModel]:
    for tag in ollama.tags(store):
        yield LocalModel(
            tag.name,
            tag.weights,
            "Ollama",
            tag.size_bytes,
            projector_bytes=tag.projector_bytes,
            adapter_bytes=tag.adapter_bytes,
        )


def _below(
    folder: Path, kind: str, token: CancelToken, within: tuple[str, ...] = ()
) -> Iterator[LocalModel]:
    """Models in ``folder`` and the folders in it: GGUF files, and folders of safetensors."""
    token.raise_if_cancelled()
    children = _children(folder)
    names = [path.name for path in children]
    for name in shards.gguf_models(names):
        parts = [folder / part for part in gguf.parts_of(name)]
        size = sum(map(_size, parts))
        if size:
            beside = max((_size(p) for p in children if shards.is_projector(p.name)), default=0)
            yield LocalModel(_label(name, within), parts[0], kind, size, projector_bytes=beside)
    weights = [n for n in names if shards.is_weights(n) and n != shards.INDEX]
    if shards.is_adapter(names):
        weights = [n for n in names if n == shards.ADAPTER_WEIGHTS]
    if weights and ("config.json" in names or shards.is_adapter(names)):
        label = "/".join(within[-2:]) or folder.name
        yield LocalModel(label, folder, kind, sum(_size(folder / n) for n in weights))
    for child in children:
        if len(within) < _MAX_DEPTH and _is_folder(child):
            yield from _below(child, kind, token, (*within, child.name))


def _label(name: str, within: tuple[str, ...]) -> str:
    """What a GGUF file is called; Jan calls every one ``model.gguf``, and the folder says which."""
    plain = gguf.model_name(name)
    return "/".join(within[-2:]) if plain.lower() == "model" and within else plain


def _children(folder: Path) -> list[Path]:
    """What lies in ``folder``; nothing where it cannot be listed."""
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir() and not path.is_symlink()
    except OSError:
        return False


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
