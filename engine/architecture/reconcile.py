"""A config held against the header of the same model: which of the two is believed, and why.

The header wins wherever it is whole. One that lacks layers or tables of the config is an
incomplete download, or not this model's, and is refused: its sums would promise too much.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.architecture.naming import layer_of, named, pattern_of
from engine.architecture.spec import AttentionKind, Direction, Doubt, ModuleClass, Subject
from engine.errors import HeaderError
from engine.words import grouped, tr

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.architecture.model import StoredWeights
    from engine.architecture.spec import ArchitectureSpec, AttentionSpec
    from engine.source.raw import RawModel

_APART = 0.02
"""Share by which a header may differ from the config before one of them is not believed."""
_ONE_TO_ONE = frozenset({"bf16", "fp16", "fp32", "fp8", "fp8-block", "int8"})
_WHOLE, _WHOLE_PACKED = 0.98, 0.45
"""Least share of a layer's parameters that a whole header shows. The values in a packed element
are not always known: two or four bits may have been taken for four or eight."""
_HALF = 0.5
_BESIDE = (ModuleClass.VISION, ModuleClass.AUDIO, ModuleClass.MTP)
_NAMED_CLASSES = 3


@dataclass(frozen=True, slots=True)
class _Held:
    """What a header holds."""

    by_class: Mapping[ModuleClass, int]
    """Logical parameters, prediction blocks left out, a tied head once."""
    by_layer: Mapping[int, int]
    """Logical parameters of every layer that has a tensor."""
    outside: int
    """Logical parameters of tables and norms outside the layers, and of a head that is one."""
    predicting: int
    """Logical parameters of prediction blocks, and of layers beyond the config's."""

    @property
    def parameters(self) -> int:
        return sum(self.by_class.values())


def reconcile(
    spec: ArchitectureSpec, stored: StoredWeights, raw: RawModel
) -> tuple[ArchitectureSpec, tuple[str, ...]]:
    """``spec`` after a look into the header, and what is to be said about the two.

    Where the tensors are in doubt the header's counts replace them. The head of a tied model may
    be stored a second time, an embedding model's may be left out, and prediction blocks are not
    part of the built model.

    Raises:
        HeaderError: the header lacks what the config requires.
    """
    held = _held(spec, stored)
    direction = spec.direction(Subject.WEIGHTS)
    if direction is Direction.EITHER:
        missing = _missing_layers(spec, held)
        if missing:
            return _incomplete_guess(spec, held, missing), ()
    else:
        _require_whole(spec, held, raw, counts=direction is None)
    described = spec.parameters
    apart = abs(held.parameters - described) > _APART * max(described, 1)
    more = _further_layers(spec, held)
    if direction is None:
        spec = replace(spec, doubts=(*spec.doubts, *contradictions(spec, raw)))
    if direction is None and not apart:
        return spec, more
    kept = tuple(doubt for doubt in spec.doubts if doubt.subject is not Subject.WEIGHTS)
    if direction is Direction.EITHER:
        proven = keeps_keys_and_values_only(spec, raw)
        side = Direction.UPPER if proven else Direction.EITHER
        kept = tuple(_sided(doubt, side) for doubt in kept)
    notes = (_note(spec, held), *more) if direction is None else more
    return replace(spec, stated_parameters=dict(held.by_class), doubts=kept), notes


def _further_layers(spec: ArchitectureSpec, held: _Held) -> tuple[str, ...]:
    """A word on layers behind the last one that are no blocks which the config states."""
    least = min((layer.parameters for layer in spec.layers), default=0) * _HALF
    if held.predicting <= least or spec.mtp or spec.uncounted_mtp:
        return ()
    what = tr(
        "The header holds {predicting} parameters behind the last layer of the config"
    ).format(predicting=grouped(held.predicting))
    return (tr("{what}, as prediction blocks are: not counted.").format(what=what),)


def _held(spec: ArchitectureSpec, stored: StoredWeights) -> _Held:
    by_class: Counter[ModuleClass] = Counter()
    by_layer: Counter[int] = Counter()
    outside = predicting = 0
    tied = spec.tie_word_embeddings
    for group in stored.groups:
        if group.module is ModuleClass.MTP:
            predicting += group.parameters
            continue
        by_class[group.module] += group.parameters
        if group.layer is not None:
            by_layer[group.layer] += group.parameters
        elif group.module not in _BESIDE and (tied or group.module is not ModuleClass.LM_HEAD):
            outside += group.parameters
    if tied and by_class[ModuleClass.LM_HEAD]:
        head = by_class.pop(ModuleClass.LM_HEAD)
        if not by_class[ModuleClass.EMBEDDING]:
            by_class[ModuleClass.EMBEDDING] = head
    return _Held(dict(by_class), dict(by_layer), outside, predicting)


def _require_whole(spec: ArchitectureSpec, held: _Held, raw: RawModel, *, counts: bool) -> None:
    """Refuse a header that lacks layers, parts of layers, or the tables around them.

    Args:
        spec: what the config requires.
        held: what the header holds.
        raw: whose name is said.
        counts: whether the parameters of a layer are known, not only that it is there.

    Raises:
        HeaderError: it lacks some.
    """
    one_to_one = spec.weight_format in _ONE_TO_ONE
    least = _WHOLE if one_to_one else _WHOLE_PACKED
    count = len(spec.layers)
    missing = _missing_layers(spec, held)
    if counts and held.by_layer and not missing:
        missing = [
            i
            for i, layer in enumerate(spec.layers)
            if held.by_layer.get(i, 0) < least * layer.parameters
        ]
    if missing:
        raise _incomplete(
            raw,
            tr("whole tensors for {count} of {count_2} layers").format(
                count=count - len(missing), count_2=count
            ),
        )
    is_most = spec.direction(Subject.WEIGHTS) is Direction.UPPER
    if not held.by_layer and not is_most and held.parameters < _HALF * spec.parameters:
        share = tr("{parameters} of {parameters_2} parameters").format(
            parameters=grouped(held.parameters), parameters_2=grouped(spec.parameters)
        )
        raise _incomplete(raw, share)
    tables = sum(t.parameters for t in spec.outer if t.module is ModuleClass.EMBEDDING)
    if counts and held.outside < least * tables * (1 - _APART):
        raise _incomplete(raw, tr("no whole table of embeddings"))
    if counts and not spec.mtp and held.predicting > _HALF * spec.parameters:
        message = tr(
            "{what} holds more than the {count} layers that the config "
            "describes: the two do not belong together."
        ).format(what=_what(raw), count=count)
        raise HeaderError(message, field="num_hidden_layers")


def _incomplete(raw: RawModel, holds: str) -> HeaderError:
    return HeaderError(
        tr(
            "{what} holds {holds} that the config requires: the download is "
            "not complete, or the files are not this model's. Download it "
            "again, or open its config.json alone."
        ).format(what=_what(raw), holds=holds),
        field="tensors",
    )


def _what(raw: RawModel) -> str:
    source = raw.tensors_source or "header"
    return f"{raw.id} ({source})"


def _missing_layers(spec: ArchitectureSpec, held: _Held) -> list[int]:
    """Layers without a tensor, where the names tell the layers at all."""
    if not held.by_layer:
        return []
    return [i for i, layer in enumerate(spec.layers) if layer.parameters and i not in held.by_layer]


def _incomplete_guess(spec: ArchitectureSpec, held: _Held, missing: list[int]) -> ArchitectureSpec:
    """An unknown architecture whose header may lack something: at least what is there."""
    count = len(spec.layers)
    reason = tr(
        "the header has tensors of {count} of the {count_2} layers that "
        "the config states: at least these are counted"
    ).format(count=count - len(missing), count_2=count)
    kept = [doubt for doubt in spec.doubts if doubt.subject is not Subject.WEIGHTS]
    kept.append(Doubt(Subject.WEIGHTS, reason, Direction.LOWER))
    return replace(spec, stated_parameters=dict(held.by_class), doubts=tuple(kept))


def _note(spec: ArchitectureSpec, held: _Held) -> str:
    """Which of the two is larger, by how much, and where most of it lies."""
    described = spec.parameters_by_class()
    apart = {
        module: held.by_class.get(module, 0) - described.get(module, 0)
        for module in {*held.by_class, *described}
    }
    whole = held.parameters - spec.parameters
    more = whole > 0
    largest = sorted((m for m, n in apart.items() if n and (n > 0) == more), key=lambda m: m.value)
    largest.sort(key=lambda module: -abs(apart[module]))
    named = ", ".join(
        tr("{value} {apart}").format(value=module.value, apart=grouped(abs(apart[module])))
        for module in largest[:_NAMED_CLASSES]
    )
    said = (
        tr(
            "The header holds {parameters} parameters, {whole} more than the config describes "
            "({named}): the header counts."
        )
        if more
        else tr(
            "The header holds {parameters} parameters, {whole} fewer than the config describes "
            "({named}): the header counts."
        )
    )
    return said.format(parameters=grouped(held.parameters), whole=grouped(abs(whole)), named=named)


def _sided(doubt: Doubt, side: Direction) -> Doubt:
    """A doubt about the state of an unknown architecture, which way the header shows."""
    if doubt.subject is not Subject.SEQUENCE_STATE or doubt.direction is Direction.LOWER:
        return doubt
    return replace(doubt, direction=side)


_OTHER_STATE = re.compile(
    r"ssm|mamba|conv|linear_attn|lightning|delta|A_log|dt_(bias|proj)|cross|enc(oder|dec)|time_mix"
    r"|channel_mix|recurrent|rwkv|retention|index|compress|memory|state"
)
_PLAIN_KINDS = (AttentionKind.FULL, AttentionKind.SLIDING, AttentionKind.CHUNKED)
_RECURRENT = re.compile(r"ssm|mamba|A_log|dt_bias|time_mix|recurrent|linear_attn|attn\d")
_KEYS = ("k_proj.weight", "wk.weight", "key.weight")
_VALUES = ("v_proj.weight", "wv.weight", "value.weight")
_WHOLE_NUMBERS = frozenset({"BF16", "F16", "F32", "F8_E4M3", "F8_E5M2"})
"""Dtypes with one value an element: others may be packed."""


def contradictions(spec: ArchitectureSpec, raw: RawModel) -> list[Doubt]:
    """Doubts of a known architecture whose header shows other keys, values or states."""
    shown: dict[int, list[int]] = {}
    recurrent = ""
    for tensor in raw.tensors:
        name = tensor.name
        if ".experts." in name:
            continue
        if name.endswith((*_KEYS, *_VALUES)) and tensor.dtype in _WHOLE_NUMBERS:
            if len(tensor.shape) == 2 and named(pattern_of(name)).is_layered:
                shown.setdefault(layer_of(name), []).append(tensor.shape[0])
        elif not recurrent and _RECURRENT.search(name) and named(pattern_of(name)).is_layered:
            recurrent = name
    for index, rows in shown.items():
        attention = spec.layers[index].attention if index < len(spec.layers) else None
        counted = _kept_rows(attention)
        if counted and len(rows) == 2 and sum(rows) != counted:
            why = tr("the keys and values of layer {index} have {sum} rows in the header, ").format(
                index=index, sum=grouped(sum(rows))
            )
            why += tr("{counted} by the config").format(counted=grouped(counted))
            return [Doubt(Subject.SEQUENCE_STATE, why, Direction.EITHER)]
    if recurrent and not any(layer.state for layer in spec.layers):
        why = tr("the header has {recurrent:.80}, which the config does not describe").format(
            recurrent=recurrent
        )
        return [Doubt(Subject.SEQUENCE_STATE, why, Direction.LOWER)]
    return []


def keeps_more(raw: RawModel) -> bool:
    """Whether a layer has a tensor that is named like another state than keys and values."""
    return any(_OTHER_STATE.search(t.name) for t in raw.tensors if layer_of(t.name) >= 0)


def keeps_keys_and_values_only(spec: ArchitectureSpec, raw: RawModel) -> bool:
    """Whether the header proves that full attention is the most a layer of it can keep.

    Every layer must have one key and one value projection, with no more rows than counted, and
    nothing that is named like another state.
    """
    if keeps_more(raw):
        return False
    rows: dict[int, list[int]] = {}
    for tensor in raw.tensors:
        layer = layer_of(tensor.name)
        if layer < 0:
            continue
        if tensor.name.endswith((*_KEYS, *_VALUES)) and len(tensor.shape) == 2:
            rows.setdefault(layer, []).append(tensor.shape[0])
    return all(
        len(rows.get(i, ())) == 2 and sum(rows[i]) <= _kept_rows(layer.attention)
        for i, layer in enumerate(spec.layers)
    )


def _kept_rows(attention: AttentionSpec | None) -> int:
    if attention is None or attention.kind not in _PLAIN_KINDS or not attention.keeps_values:
        return 0
    return attention.num_key_value_heads * (attention.head_dim + attention.v_head_dim)
