"""Whole decoders that stand beside the text model, built as their own type is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.architecture.build import UnknownKindError, build
from engine.architecture.families.registry import FAMILIES
from engine.architecture.spec import ModuleClass
from engine.architecture.towers.registry import UnknownTowerError

if TYPE_CHECKING:
    from engine.architecture.spec import Tensor
    from engine.config.facts import Facts


def stack(facts: Facts, path: str) -> list[Tensor]:
    """The tensors of the model that ``facts`` describes, without a head, under ``path``.

    Raises:
        ConfigError: a needed field is missing, of the wrong type or absurd.
        UnknownTowerError: its type or a kind of its layers is not known.
    """
    family = FAMILIES.get(facts.model_type)
    if family is None:
        raise UnknownTowerError(facts.model_type)
    try:
        built = build(facts, family, root=facts)
    except UnknownKindError as unknown:
        raise UnknownTowerError(facts.model_type) from unknown
    kinds = {id(layer): layer for layer in built.layers}
    times = [id(layer) for layer in built.layers]
    layers = [
        replace(tensor, copies=tensor.copies * times.count(key))
        for key, layer in kinds.items()
        for tensor in layer.tensors
    ]
    outer = [tensor for tensor in built.outer if tensor.module is not ModuleClass.LM_HEAD]
    return [replace(tensor, name=path + tensor.name) for tensor in (*outer, *layers)]
