"""A LoRA adapter on top of the model it was made for: its own tensors, beside the model's.

The header of its weights counts where it was read. Without one the tensors follow from
``adapter_config.json``: two thin matrices for every module that it names.

Source:
    PEFT 0.21.2, ``tuners/lora`` and ``utils/save_and_load.py``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.architecture.adapter_tensors import LORA, tensors_of
from engine.architecture.model import StoredGroup
from engine.architecture.naming import layer_of, named, pattern_of
from engine.architecture.spec import Direction, Doubt, ModuleClass, Sharding, Subject, Tensor
from engine.config.facts import Facts
from engine.errors import HeaderError, UnknownArchitectureError
from engine.formats.dtypes import canonical, element_bytes
from engine.words import grouped, tr, tr_later

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.architecture.model import Model
    from engine.architecture.spec import ArchitectureSpec
    from engine.source.raw import RawAdapter

_DTYPES = {"F32": "fp32", "BF16": "bf16", "F16": "fp16"}
_VIRTUAL = frozenset({"PROMPT_TUNING", "PREFIX_TUNING", "P_TUNING", "MULTITASK_PROMPT_TUNING"})
_NAMED_MODULES = 8
_RUNTIME = tr_later(
    "The adapter is counted as it is stored; while it runs PEFT keeps it in 32 bits, as "
    "llama.cpp's converter writes it, and vLLM in slots of max_lora_rank."
)


def attach(model: Model, adapter: RawAdapter) -> Model:
    """``model`` with ``adapter`` on top of it.

    Raises:
        ConfigError: a field of its config is of the wrong type or absurd.
        HeaderError: its header belongs to a deeper model.
        UnknownArchitectureError: it is no LoRA, and its header was not read.
    """
    facts = Facts(adapter.config, path="adapter_config")
    kind = facts.word("peft_type", LORA).upper()
    spec = model.spec
    doubts: list[Doubt] = []
    if adapter.tensors:
        _require_same(spec, adapter, model.id)
        tensors = _stored_tensors(adapter)
        if any(not tensor.stored_as for tensor in tensors):
            reason = tr("the adapter stores tensors in a format that is not known")
            doubts.append(Doubt(Subject.WEIGHTS, reason, Direction.EITHER))
    elif kind == LORA:
        tensors, found = tensors_of(spec, facts)
        doubts += found
    else:
        message = tr(
            "{id} is a {kind} adapter, whose config alone does not say "
            "what it holds; put its adapter_model.safetensors beside it."
        ).format(id=model.id, kind=kind[:40])
        raise UnknownArchitectureError(message, field="adapter_config.peft_type")
    if kind in _VIRTUAL:
        count = facts.count("num_virtual_tokens")
        reason = tr(
            "the adapter's {count} virtual tokens take their place in every sequence"
        ).format(count=count)
        doubts.append(Doubt(Subject.SEQUENCE_STATE, reason, Direction.LOWER))
    stored = model.stored
    if stored is not None:
        groups = (*stored.groups, *_groups(tensors))
        source = tr("{source} and its adapter's").format(source=stored.source)
        size = stored.file_bytes + adapter.file_bytes
        stored = replace(stored, groups=groups, source=source, file_bytes=size)
    parameters = sum(tensor.parameters for tensor in tensors)
    sums = spec.stated_parameters
    if sums is not None:
        other = sums.get(ModuleClass.OTHER, 0) + parameters
        sums = {**sums, ModuleClass.OTHER: other}
    spec = replace(
        spec,
        outer=(*spec.outer, *tensors),
        doubts=(*spec.doubts, *doubts),
        stated_parameters=sums,
    )
    note = _sentence(facts, kind, adapter, parameters)
    # Its config is the base's: what is here is more than that describes.
    notes = (note, tr(_RUNTIME), *model.notes)
    return replace(model, spec=spec, stored=stored, config=None, notes=notes)


def _sentence(facts: Facts, kind: str, adapter: RawAdapter, parameters: int) -> str:
    what = "LoRA" if kind == LORA else kind[:40]
    rank = tr(" of rank {integer}").format(integer=facts.integer("r", 8)) if kind == LORA else ""
    value = facts.raw("target_modules")
    modules = tr(" on {shown}").format(shown=_shown(value)) if value else ""
    return tr(
        "A {what} adapter{rank}{modules}, {parameters} parameters, counted on top of {value}."
    ).format(
        what=what,
        rank=rank,
        modules=modules,
        parameters=grouped(parameters),
        value=adapter.base or tr("the model whose config lies beside it"),
    )


def _shown(value: object) -> str:
    """The modules in words: sorted, since PEFT writes a set."""
    if not isinstance(value, list):
        text = str(value)
        return (
            tr("all linear layers") if text.lower() == "all-linear" else tr("modules of a pattern")
        )
    names = sorted(str(item)[:60] for item in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    more = len(names) - _NAMED_MODULES
    return ", ".join(names[:_NAMED_MODULES]) + (
        tr(" and {more} more").format(more=more) if more > 0 else ""
    )


def _require_same(spec: ArchitectureSpec, adapter: RawAdapter, name: str) -> None:
    """Refuse an adapter with tensors of layers that the model has not.

    Raises:
        HeaderError: it has some.
    """
    count = spec.num_hidden_layers
    deepest = max(
        (layer_of(t.name) for t in adapter.tensors if named(pattern_of(t.name)).is_layered),
        default=-1,
    )
    if deepest >= count:
        message = tr(
            "{name} has tensors of layer {deepest}, and {value} has only "
            "{count} layers: the two do not belong together."
        ).format(name=name, deepest=deepest, value=adapter.base or tr("its base"), count=count)
        raise HeaderError(message, field="tensors")


def _stored_tensors(adapter: RawAdapter) -> tuple[Tensor, ...]:
    """The tensors of the header, alike ones of several layers as copies."""
    counts = Counter((pattern_of(t.name), t.shape, t.dtype) for t in adapter.tensors)
    return tuple(
        Tensor(name, ModuleClass.OTHER, shape, copies, stored_as=_DTYPES.get(dtype, ""))
        for (name, shape, dtype), copies in counts.items()
    )


def _groups(tensors: Iterable[Tensor]) -> list[StoredGroup]:
    found: list[StoredGroup] = []
    for tensor in tensors:
        dtype = {v: k for k, v in _DTYPES.items()}.get(tensor.stored_as, "F32")
        width = element_bytes(canonical(dtype) or "float32")
        size = tensor.parameters * width
        found.append(
            StoredGroup(
                None, ModuleClass.OTHER, Sharding.REPLICATED, dtype, size, tensor.parameters,
                size // tensor.copies, tensor.copies,
            )
        )  # fmt: skip
    return found
