"""Which tensors a checkpoint stores otherwise than its format says, layer by layer.

A quantisation config lists modules that it leaves alone, or gives each module its format.
Patterns without a layer number hold for every layer and stay patterns; those with one are
resolved here: layers that are stored alike go on sharing one object.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from engine.architecture.spec import ModuleClass
from engine.architecture.targets import Targets
from engine.formats.weights import excluded, plain_format

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from engine.architecture.build import Built
    from engine.architecture.spec import LayerSpec, Tensor
    from engine.config.quantisation import Stored

_LAYER = re.compile(r"(?:re:)?\^?(?:.*?[.*])?layers(?:\.|\\\.)(\d{1,4})(.*)", re.DOTALL)
_ELSEWHERE = re.compile(r"mtp|vision|visual|audio|speech|encoder|tower")
"""In a path: its layers are not those of the decoder."""
_MTP = re.compile(r"(?:re:)?\^?(?:.*?[.*])?mtp(?:\.layers?\.\d{1,4})?(\W.*|)", re.DOTALL)
_NUMBER = re.compile(r"(?<=\.)\d+(?=\.|$)")
_PARTS = frozenset({ModuleClass.VISION, ModuleClass.AUDIO, ModuleClass.MTP})


def split(patterns: Iterable[str]) -> tuple[tuple[str, ...], dict[str, set[str]]]:
    """Patterns for every layer, and the others by their layer number.

    ``model.layers.1*`` means layers 1 and 10 to 19, as the tool that wrote it matches; its key
    is then ``1*``.
    """
    everywhere: list[str] = []
    by_layer: dict[str, set[str]] = {}
    for pattern in patterns:
        match = _LAYER.fullmatch(pattern)
        if match is None or _is_elsewhere(pattern[: match.start(1)]):
            everywhere.append(pattern)
            continue
        number, rest = match[1], match[2]
        if rest.startswith("*"):
            number, rest = number + "*", rest[1:]
        by_layer.setdefault(number, set()).add(_inner(rest))
    return tuple(everywhere), by_layer


# A list names the same modules in every layer: a few names, thousands of times.
@lru_cache(maxsize=1024)
def _is_elsewhere(before: str) -> bool:
    return bool(_ELSEWHERE.search(before))


@lru_cache(maxsize=4096)
def _inner(rest: str) -> str:
    return _NUMBER.sub("*", rest.replace("\\.", ".").lstrip(".")) or "*"


def _of_layer(by_layer: dict[str, set[str]], index: int) -> frozenset[str]:
    text = str(index)
    found = set(by_layer.get(text, ()))
    for length in range(1, len(text) + 1):
        found |= by_layer.get(text[:length] + "*", set())
    return frozenset(found)


def mark(built: Built, stored: Stored) -> tuple[Built, tuple[str, ...]]:
    """``built`` with ``stored_as`` set where layers differ, and the patterns left for all."""
    everywhere, by_layer = split(stored.unquantised)
    formats = _formats(stored.by_module)
    plain = plain_format(stored.dtype) or "bf16"
    built = replace(
        built,
        outer=tuple(_outside(t, stored, plain) for t in built.outer),
        mtp=_predicting(built, stored, plain, everywhere, by_layer),
    )
    if not by_layer and not formats and not stored.experts_as and not stored.targets:
        return built, everywhere
    targets = Targets(stored.targets) if stored.targets else None
    made: dict[tuple[int, frozenset[str], frozenset[tuple[str, str]]], LayerSpec] = {}
    layers: list[LayerSpec] = []
    for index, layer in enumerate(built.layers):
        kept = _of_layer(by_layer, index)
        own = formats.get(index, frozenset[tuple[str, str]]())
        if targets is not None:
            own = frozenset(targets.of_layer(layer, index, plain))
        key = id(layer), kept, own
        found = made.get(key)
        if found is None:
            tensors = tuple(
                _marked(
                    t, tuple(sorted(kept)), dict(own) if formats or targets else None, stored, plain
                )
                for t in layer.tensors
            )
            found = made[key] = replace(layer, tensors=tensors)
        layers.append(found)
    return replace(built, layers=tuple(layers)), everywhere


def _marked(
    tensor: Tensor,
    kept: tuple[str, ...],
    formats: dict[str, str] | None,
    stored: Stored,
    plain: str,
) -> Tensor:
    if not tensor.linear or tensor.module in _PARTS:
        return tensor
    if "*" in kept or (kept and excluded(tensor.name, kept)):
        return replace(tensor, stored_as=plain)
    if formats is not None:
        rest = plain if stored.rest_is_plain else stored.weight_format
        own = next((formats[p] for p in _paths(tensor) if p in formats), rest) or plain
        return tensor if own == stored.weight_format else replace(tensor, stored_as=own)
    if stored.experts_as and tensor.module is ModuleClass.EXPERTS:
        return replace(tensor, stored_as=stored.experts_as)
    return tensor


def _outside(tensor: Tensor, stored: Stored, plain: str) -> Tensor:
    """A tensor outside the layers, marked where a checkpoint names it or quantises the head."""
    own = stored.head_as if tensor.module is ModuleClass.LM_HEAD else None
    if tensor.module is ModuleClass.EMBEDDING:
        named = dict(stored.by_module)
        path = tensor.name.removesuffix(".weight")
        own = next(
            (named[p] or plain for p in (path, f"language_model.{path}") if p in named), None
        )
    return replace(tensor, stored_as=own) if own else tensor


def _predicting(
    built: Built,
    stored: Stored,
    plain: str,
    everywhere: tuple[str, ...],
    by_layer: dict[str, set[str]],
) -> tuple[Tensor, ...]:
    """The prediction blocks: behind the last layer, or under ``mtp``; experts as the model's."""
    found = set(_of_layer(by_layer, len(built.layers)))
    found |= {_inner(match[1]) for p in everywhere if (match := _MTP.fullmatch(p))}
    kept = tuple(sorted(found))

    def marked(tensor: Tensor) -> Tensor:
        if not tensor.linear:
            return tensor
        if "*" in kept or (kept and excluded(tensor.name, kept)):
            return replace(tensor, stored_as=plain)
        own = stored.experts_as if ".experts.*." in tensor.name else ""
        return replace(tensor, stored_as=own) if own else tensor

    return tuple(map(marked, built.mtp))


def _paths(tensor: Tensor) -> Iterator[str]:
    """The paths, relative to the layer, by which a list may name the module of ``tensor``."""
    path = tensor.name.removesuffix(".weight")
    yield path
    stacked = path.replace(".*.", ".")
    yield stacked
    yield stacked.replace("gate_up_proj", "gate_proj")
    yield path.rpartition(".")[0]
    yield path.rpartition(".*.")[0]


def _formats(by_module: tuple[tuple[str, str], ...]) -> dict[int, frozenset[tuple[str, str]]]:
    """Layer -> (module path relative to it, format)."""
    found: dict[int, set[tuple[str, str]]] = {}
    for path, name in by_module:
        match = _LAYER.fullmatch(path)
        if match:
            inner = _NUMBER.sub("*", match[2].lstrip("."))
            found.setdefault(int(match[1]), set()).add((inner, name))
    return {index: frozenset(entries) for index, entries in found.items()}
