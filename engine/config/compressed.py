"""compressed-tensors: the format of every group of modules, and the modules it is for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from engine.config.facts import Facts, is_mapping
from engine.config.quant_methods import (
    UnknownLayoutError,
    blocks,
    group_size,
    named,
    weight_bits,
)
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Iterator

EVERY_LINEAR = "Linear"
_DENSE_BITMAPS = ("marlin-24", "sparse")
_DENSE_VERSIONS = ("0.20.", "0.21.", "0.22.", "1.")
"""Those known to pack 3 bits without gaps; up to 0.15 a word held ten values."""
_PACKED = frozenset({"pack-quantized", ""})
_CLASS = re.compile(r"[A-Z]\w*")
_MOST_EXPRESSIONS = 16

Targets = tuple[tuple[str, str], ...]
"""(target, format): a module path, ``re:`` with an expression, or ``Linear`` for the rest."""


def formats(q: Facts) -> Targets:
    """The formats by target; one pair where every linear layer is stored alike.

    Raises:
        UnknownLayoutError: a layout whose bytes are not known here.
        ConfigError: a field that is no such field.
    """
    layout = q.word("format")
    _check_sparsity(q, layout)
    groups, version = q.sub("config_groups"), str(q.raw("version") or "")
    if groups is None or not groups.stated:
        whole = _microscaled(layout)
        if whole is None:
            raise UnknownLayoutError(
                tr("compressed-tensors without config_groups, {layout!r:.40}").format(layout=layout)
            )
        return ((EVERY_LINEAR, whole),)
    found: list[tuple[str, str]] = []
    for key in groups.stated:
        group = _sub(groups, key)
        weights = group.raw("weights")
        if weights is None:
            continue
        own = Facts(weights if is_mapping(weights) else {}, path=group.name("weights"))
        if not own.stated:
            raise group.bad("weights", weights, tr("an object with num_bits and type is needed"))
        name = _format(group, own, group.word("format") or layout, version)
        found += [(target, name) for target in _targets(group)]
    if not found:
        raise UnknownLayoutError(tr("compressed-tensors without any weights"))
    return _simplified(found)


def _sub(groups: Facts, key: str) -> Facts:
    value = groups.raw(key)
    if not is_mapping(value):
        raise UnknownLayoutError(tr("a preset of compressed-tensors by its name"))
    return Facts(value, path=groups.name(key))


def _check_sparsity(q: Facts, layout: str) -> None:
    sparsity = q.sub("sparsity_config")
    kind = sparsity.word("format", "dense") if sparsity else "dense"
    for word in (layout, kind):
        if word.startswith(_DENSE_BITMAPS):
            raise UnknownLayoutError(
                tr("compressed-tensors with sparsity ({word:.40})").format(word=word)
            )
    if layout == "dense":
        raise UnknownLayoutError(tr("compressed-tensors before compression (dense)"))


def _targets(group: Facts) -> Iterator[str]:
    for target in group.words("targets") or (EVERY_LINEAR,):
        if _CLASS.fullmatch(target) and target != EVERY_LINEAR:
            raise UnknownLayoutError(
                tr("compressed-tensors for modules of class {target:.40}").format(target=target)
            )
        yield target


def _simplified(found: list[tuple[str, str]]) -> Targets:
    every = next((name for target, name in found if target == EVERY_LINEAR), None)
    if every is not None and all(name == every for _, name in found):
        return ((EVERY_LINEAR, every),)
    if sum(target.startswith("re:") for target, _ in found) > _MOST_EXPRESSIONS:
        raise UnknownLayoutError(tr("compressed-tensors with very many target expressions"))
    return tuple(found)


def _microscaled(layout: str) -> str | None:
    for name in ("nvfp4", "mxfp4", "mxfp8"):
        if layout.startswith(name):
            return name
    return None


def _format(group: Facts, weights: Facts, layout: str, version: str) -> str:
    bits, kind = weight_bits(weights, "num_bits", 8), weights.word("type", "int")
    strategy = weights.word("strategy")
    whole = _microscaled(layout)
    if whole is not None:
        usual = 16 if whole == "nvfp4" else 32
        if group_size(weights, default=usual) != usual:
            raise UnknownLayoutError(
                tr("{upper} in groups of {raw}").format(
                    upper=whole.upper(), raw=weights.raw("group_size")
                )
            )
        is_a16 = whole == "nvfp4" and group.raw("input_activations") is None
        return "nvfp4-a16" if is_a16 else whole
    if kind == "int" and layout in _PACKED and (bits != 8 or layout):
        return _packed(weights, bits, strategy, version)
    static = "-static" if _is_static(group) else ""
    if kind == "int" and bits == 8:
        return _int8(weights, strategy, static)
    if kind == "float" and bits == 8:
        return _float(weights, strategy, static)
    raise UnknownLayoutError(
        tr("compressed-tensors as {bits} bit {kind:.20} ({layout:.40})").format(
            bits=bits, kind=kind, layout=layout
        )
    )


def _is_static(group: Facts) -> bool:
    """Whether the activations' scale is stored: one a tensor, known beforehand."""
    activations = group.raw("input_activations")
    if not is_mapping(activations) or activations.get("dynamic"):
        return False
    own = Facts(activations, path=group.name("input_activations"))
    if own.word("strategy", "tensor") != "tensor" or not own.flag("symmetric", default=True):
        raise UnknownLayoutError(tr("compressed-tensors with static activations of another layout"))
    return True


def _int8(weights: Facts, strategy: str, static: str) -> str:
    has_zeros = not weights.flag("symmetric", default=True)
    group = group_size(weights, default=0) if strategy in ("", "group") else 0
    if strategy == "tensor":
        if has_zeros:
            raise UnknownLayoutError(tr("compressed-tensors with a zero point a tensor"))
        return f"int8-tensor-ct{static}"
    if group:
        return f"int8-g{group}{'-zp' if has_zeros else ''}"
    return f"int8-ct{'-asym' if has_zeros else ''}{static}"


def _packed(weights: Facts, bits: int | None, strategy: str, version: str) -> str:
    if bits == 3 and not version.startswith(_DENSE_VERSIONS):
        raise UnknownLayoutError(tr("compressed-tensors in 3 bits by an old or unstated version"))
    if bits not in (2, 3, 4, 8) or strategy not in ("", "group", "channel"):
        raise UnknownLayoutError(
            tr("compressed-tensors packed in {bits} bits by {strategy!r:.40}").format(
                bits=bits, strategy=strategy
            )
        )
    group = 0 if strategy == "channel" else group_size(weights, default=0)
    if strategy == "group" and not group:
        raise weights.bad("group_size", weights.raw("group_size"), tr("a size from 1 is needed"))
    name = named(f"w{bits}a16", group)
    if not weights.flag("symmetric", default=True):
        name += "-zp"
    # "weight" order is applied before packing; only "group" order stores the index.
    order = weights.raw("actorder")
    return f"{name}-order" if order is True or order in ("group", "dynamic") else name


def _float(weights: Facts, strategy: str, static: str) -> str:
    # Every scale has the model's dtype.
    if strategy == "block":
        return f"{_blocks(weights)}-ct"
    if strategy == "tensor":
        return f"fp8-ct{static}"
    if strategy not in ("channel", ""):
        raise UnknownLayoutError(
            tr("compressed-tensors in FP8 by {strategy!r:.40}").format(strategy=strategy)
        )
    return f"fp8-channel-ct{static}"


def _blocks(weights: Facts) -> str:
    shape = weights.raw("block_structure")
    if shape is None:
        return "fp8-block"
    if isinstance(shape, str):  # older writers: "128x128"
        sizes = [int(part) if part.isdecimal() else part for part in shape[:20].split("x")]
        weights = Facts({"block_structure": sizes}, path=weights.path)
    return blocks(weights, "block_structure")
