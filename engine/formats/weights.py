"""Weight formats: the exact bytes of a logical tensor, and what a format leaves alone.

The stored layouts are those of the checkpoints (payload, scales, zero points, group index);
block counts round up. The formats themselves are in ``named``, their layouts in ``layouts``.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from engine.formats.dtypes import canonical, element_bytes
from engine.formats.named import FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable


class LogicalTensor(Protocol):
    """What a format needs of ``engine.architecture.spec.Tensor``."""

    @property
    def name(self) -> str:
        """Module path with its suffix."""
        ...

    @property
    def module(self) -> str:
        """Module class value: ``attention``, ``lm_head`` …."""
        ...

    @property
    def shape(self) -> tuple[int, ...]:
        """(out_features, in_features) for a matrix."""
        ...

    @property
    def copies(self) -> int:
        """Stacked experts."""
        ...

    @property
    def linear(self) -> bool:
        """Whether a linear layer holds it."""
        ...

    @property
    def elements(self) -> int:
        """Elements over all copies."""
        ...


_PLAIN = {f.dtype: f.name for f in FORMATS.values() if f.dtype}


def plain_format(dtype: str) -> str | None:
    """The format in which every tensor has ``dtype``: ``bf16`` for ``bfloat16``."""
    return _PLAIN.get(canonical(dtype) or "")


def resident_dtype(weight_format: str, base_dtype: str) -> str:
    """Dtype of what a format does not quantise: embeddings, norms and, mostly, activations."""
    chosen = FORMATS.get(weight_format)
    return (chosen.dtype if chosen else None) or base_dtype


def is_quantised(
    tensor: LogicalTensor,
    weight_format: str,
    unquantised: tuple[str, ...] = (),
    *,
    is_named: bool = False,
) -> bool:
    """Whether ``weight_format`` packs this tensor.

    Args:
        tensor: shape, class and whether it is a linear layer's weight.
        weight_format: a key of ``FORMATS``.
        unquantised: module patterns that the quantisation leaves alone.
        is_named: whether the checkpoint gives this tensor the format, whatever its class.
    """
    chosen = FORMATS[weight_format]
    if chosen.is_plain or len(tensor.shape) != 2:
        return False
    module = str(tensor.module)
    eligible = tensor.linear or module == "embedding"
    # No quantiser packs a router because an expression happens to match its name; MLX packs all.
    if not eligible or not (module in chosen.modules or (is_named and module != "router")):
        return False
    return not excluded(tensor.name, unquantised)


def tensor_bytes(
    tensor: LogicalTensor,
    weight_format: str,
    base_dtype: str,
    unquantised: tuple[str, ...] = (),
    *,
    is_named: bool = False,
) -> int:
    """Exact bytes of a logical tensor, all copies, as ``weight_format`` stores it.

    Args:
        tensor: shape, class and whether it is a linear layer's weight.
        weight_format: a key of ``FORMATS``.
        base_dtype: dtype of what stays unquantised, and of group scales that follow it.
        unquantised: module patterns that the quantisation leaves alone.
        is_named: whether the checkpoint gives this tensor the format, whatever its class.

    Raises:
        ValueError: ``base_dtype`` is not a known dtype.
        KeyError: ``weight_format`` is not a key of ``FORMATS``.
    """
    chosen = FORMATS[weight_format]
    base = element_bytes(chosen.dtype or base_dtype)
    packs = is_quantised(tensor, weight_format, unquantised, is_named=is_named)
    if chosen.matrix_bytes is None or not packs:
        return tensor.elements * base
    rows, columns = tensor.shape
    parts = _parts(tensor)
    return chosen.matrix_bytes(rows // parts, columns, base) * tensor.copies * parts


def _parts(tensor: LogicalTensor) -> int:
    """Matrices on disk of one logical one: an expert's gate and up are quantised apart."""
    is_fused = str(tensor.module) == "experts" and "gate_up" in tensor.name
    return 2 if is_fused and tensor.shape[0] % 2 == 0 else 1


_LAYER_PREFIX = re.compile(r"^(?:[\w.]+\.)?layers\.(?:\*|\\d\+|\.\*|\[0-9\]\+)\.")


def excluded(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether a module path matches one of the patterns a quantisation config lists.

    Checkpoints write them in four ways: a full path, a part of a path (``lm_head``,
    ``self_attn``), a glob (``model.layers.*.mlp.gate``) and a regular expression
    (``re:.*mlp.gate$``). A pattern for every layer also matches a path relative to its layer.
    """
    path = name.removesuffix(".weight").removesuffix(".bias")
    return any(matcher(path) for matcher in _matchers(patterns))


@lru_cache(maxsize=256)
def _matchers(patterns: tuple[str, ...]) -> tuple[Callable[[str], bool], ...]:
    return tuple(_matcher(p) for p in patterns)


def _matcher(pattern: str) -> Callable[[str], bool]:
    written = pattern.removeprefix("re:")
    relative = _LAYER_PREFIX.sub("", written.removeprefix("^").replace(r"\.", "."))
    if pattern.startswith("re:"):
        whole, part = _compiled(written), _compiled(relative)
        return lambda path: any(r is not None and r.match(path) is not None for r in (whole, part))
    if "*" in pattern:
        globs = [_compiled(_glob(text)) for text in (pattern, relative)]
        return lambda path: any(r is not None and r.search(path) is not None for r in globs)
    # No expression: some configs list hundreds of plain paths.
    whole_names = f".{written.removesuffix('.weight')}."
    return lambda path: whole_names in f".{path}."


def _glob(text: str) -> str:
    body = ".*".join(re.escape(part) for part in text.split("*"))
    return rf"(?:^|\.){body}(?:\.|$)"


def _compiled(text: str) -> re.Pattern[str] | None:
    # A pattern from a foreign config may be no regular expression: then it matches nothing.
    try:
        return re.compile(text)
    except re.error:
        return None
