"""Which format compressed-tensors gives a module, where groups of modules have their own.

A target is a module path, an expression (``re:``) that matches from the path's beginning, or
``Linear`` for every other linear layer; a path goes before an expression, both before ``Linear``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from engine.architecture.spec import LayerSpec

_PREFIXES = ("model.layers", "model.language_model.layers", "language_model.model.layers", "layers")
"""Where checkpoints keep the decoder; the config doesn't say which of them this one is."""


class Targets:
    """The targets of a checkpoint, looked up by module."""

    __slots__ = ("_by_path", "_every", "_expressions")

    def __init__(self, targets: Sequence[tuple[str, str]]) -> None:
        self._by_path: dict[str, str] = {}
        self._expressions: list[tuple[re.Pattern[str], str]] = []
        self._every = ""
        for target, name in targets:
            if target == "Linear":
                self._every = self._every or name
            elif not target.startswith("re:"):
                self._by_path.setdefault(target, name)
            else:
                try:
                    self._expressions.append((re.compile(target.removeprefix("re:")), name))
                except re.error:
                    continue

    def of_layer(self, layer: LayerSpec, index: int, plain: str) -> Iterator[tuple[str, str]]:
        """(module path relative to the layer, format) of every linear layer in it."""
        for tensor in layer.tensors:
            if tensor.linear:
                path = tensor.name.removesuffix(".weight")
                yield path, self._format(index, path.replace(".*.", ".0.")) or plain

    def _format(self, index: int, path: str) -> str:
        paths = [f"{prefix}.{index}.{path}" for prefix in _PREFIXES]
        for whole in paths:
            if whole in self._by_path:
                return self._by_path[whole]
        for expression, name in self._expressions:
            if any(expression.match(whole) for whole in paths):
                return name
        return self._every
