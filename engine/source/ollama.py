"""Ollama's names and its store: a tag such as ``llama3.1:8b-instruct-q4_K_M``.

A store holds ``manifests/registry/namespace/model/tag``, each a list of layers, and the layers as
blobs: the weights as one GGUF file, the projector of images as another, adapters as further ones.

Source: ollama ``server/manifest.go``, ``types/model/name.go`` (names), ``server/images.go`` (media
types of layers).
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from engine.source import catalogue
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.source.catalogue import CatalogueEntry
    from engine.source.raw import RawModel
    from engine.source.reference import OllamaReference

_MAX_MANIFEST_BYTES = 2**20
_LAYER = "application/vnd.ollama.image."
_DIGEST = re.compile(r"sha256[:-]([0-9a-f]{64})")
_USUAL = "Q4_K_M"
"""What most tags without a quantisation stand for."""


@dataclass(frozen=True, slots=True)
class StoredTag:
    """One tag of a store, with the sizes of its blobs on this disk."""

    name: str
    """``llama3.2:3b``, or ``someone/model:tag``."""
    weights: Path
    size_bytes: int
    projector_bytes: int
    adapter_bytes: int


def stores() -> Iterator[Path]:
    """Where Ollama keeps its models on this computer, whether it is there or not."""
    if os.environ.get("OLLAMA_MODELS"):
        yield Path(os.environ["OLLAMA_MODELS"]).expanduser()
    yield Path("~/.ollama/models").expanduser()
    yield Path("/usr/share/ollama/.ollama/models")


def tags(store: Path) -> Iterator[StoredTag]:
    """Every tag of ``store`` whose weights are there; damaged ones are passed over."""
    for registry in _children(store / "manifests"):
        for space in _children(registry):
            for model in _children(space):
                for tag in _children(model):
                    name = model.name if space.name == "library" else f"{space.name}/{model.name}"
                    found = _stored(store, tag, f"{name}:{tag.name}")
                    if found is not None:
                        yield found


def find(name: str) -> StoredTag | None:
    """The tag ``name`` of a store on this computer, ``:latest`` where it names none."""
    wanted = (name if ":" in name else f"{name}:latest").casefold()
    every = (tag for store in stores() for tag in tags(store))
    return next((tag for tag in every if tag.name.casefold() == wanted), None)


def _stored(store: Path, manifest: Path, name: str) -> StoredTag | None:
    sizes = {"model": 0, "projector": 0, "adapter": 0}
    weights: Path | None = None
    for layer in _layers(manifest):
        kind = str(layer.get("mediaType")).removeprefix(_LAYER)
        match = _DIGEST.fullmatch(str(layer.get("digest")))
        if match is None or kind not in sizes:
            continue
        blob = store / "blobs" / f"sha256-{match[1]}"
        sizes[kind] += _size(blob)
        if kind == "model" and weights is None and _size(blob):
            weights = blob
    if weights is None:
        return None
    return StoredTag(name, weights, sizes["model"], sizes["projector"], sizes["adapter"])


def _layers(manifest: Path) -> list[dict[str, object]]:
    try:
        if manifest.stat().st_size > _MAX_MANIFEST_BYTES:
            return []
        parsed: object = json.loads(manifest.read_bytes())
    except (OSError, ValueError, RecursionError):
        return []
    layers = cast("dict[str, object]", parsed).get("layers") if isinstance(parsed, dict) else None
    items = cast("list[object]", layers) if isinstance(layers, list) else []
    return [cast("dict[str, object]", item) for item in items if isinstance(item, dict)]


def _children(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


# --- what a tag that isn't here most likely is

_WORD = re.compile(r"\d+x\d+b|\d+(?:\.\d+)?[bm](?![a-z])|\d+(?:\.\d+)?|[a-z]+")
_SIZE = re.compile(r"\d+x\d+b|\d+(?:\.\d+)?[bm]")
_QUANTISATION = re.compile(r"(?:^|-)((?:iq|q)\d\w*|fp16|f16|bf16|fp32|qat)(?=-|$)", re.IGNORECASE)
_TALKS = frozenset({"instruct", "it", "chat"})
_RAW = frozenset({"text", "base", "pt"})
_SAYS_NOTHING = _TALKS | {"hf", "v", "a"}
"""Words of a published name that Ollama's name need not have."""
_RENAMED = {"qwen": "qwen1.5", "phi": "phi-2"}
"""Names of the library that stand for another release than they seem to."""
_NEAR = 0.12
"""How far the parameters may be from the size that a tag rounds to."""


def twin(meant: OllamaReference) -> RawModel | None:
    """The catalogue's model that a tag stands for by its name, with a sentence that says so."""
    entry = _entry(meant)
    if entry is None:
        return None
    match = _QUANTISATION.search(meant.tag)
    stored = match[1].upper() if match else _USUAL
    note = tr(
        "{name}:{tag} is not in Ollama’s store on this computer: this is "
        "{id} of the bundled catalogue, taken by its name. Ollama stores "
        "it as {stored}."
    ).format(name=meant.name, tag=meant.tag, id=entry.id, stored=stored)
    found = catalogue.raw(entry)
    return replace(found, notes=(*found.notes, note))


def _entry(meant: OllamaReference) -> CatalogueEntry | None:
    tag = _QUANTISATION.sub("", meant.tag.casefold())
    said = [word for word in _WORD.findall(tag) if word != "latest"]
    size = next((word for word in said if _SIZE.fullmatch(word)), "")
    name = meant.name.casefold()
    family = _WORD.findall(_RENAMED.get(name, name))
    asked = {*family, *said} - {size} - _TALKS - _RAW
    is_raw = bool(_RAW & set(said))
    best: tuple[tuple[bool, int], CatalogueEntry] | None = None
    for entry in catalogue.entries():
        words = _WORD.findall(entry.name.casefold().removeprefix("meta-"))
        if not asked <= set(words) or words[: len(family)] != family:
            continue
        further = _further(words, asked)
        talks = bool(_TALKS & set(words))
        if further is None or not _is_size(entry, size, words) or (is_raw and talks):
            continue
        rank = (not (talks or is_raw), further)
        if best is None or rank < best[0]:
            best = (rank, entry)
    return best[1] if best else None


def _further(words: list[str], asked: set[str]) -> int | None:
    """How many words a published name has beyond what was asked; None where one says more.

    Dates and minor versions come and go behind the same tag.
    """
    number = 0
    for before, word in zip(["", *words], words, strict=False):
        if word in asked or _SIZE.fullmatch(word):
            continue
        is_date = word.isdigit() and len(word) == 4
        if word not in _SAYS_NOTHING and not is_date and before != "v":
            return None
        number += 1
    return number


def _is_size(entry: CatalogueEntry, size: str, words: list[str]) -> bool:
    """Whether ``entry`` has the size that a tag says; without one, only a name without one does."""
    if not size:
        return not any(_SIZE.fullmatch(word) for word in words)
    if size in words:
        return True
    if "x" in size:
        return False
    stated = float(size[:-1]) * (10**9 if size[-1] == "b" else 10**6)
    return abs(entry.parameters / stated - 1) <= _NEAR
