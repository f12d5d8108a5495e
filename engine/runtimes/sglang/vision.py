"""The tower of a multimodal model as SGLang weighs it when it works out its static share."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, cast

from engine.architecture.spec import ModuleClass
from engine.budget.sequence_state import CACHED
from engine.config.defaults import NO_DEFAULTS, class_defaults
from engine.runtimes.sglang.fraction import Tower

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.architecture.model import Model
    from engine.architecture.spec import ArchitectureSpec, Doubt
    from engine.config.defaults import ClassDefaults

_KEY = "vision_config"
_PLAIN_TOWERS = ("kimi_vl", "kimi_k25")
"""Roots whose towers are PyTorch's own linear layers (``kimi_vl_moonvit.py``)."""
_PARAMETERS_A_LAYER = 12
"""Of a tower's layer, in squares of its width."""
_USUAL = Tower()


def has_tower(spec: ArchitectureSpec) -> bool:
    """Whether the model reads images or sound."""
    return any(t.module in (ModuleClass.VISION, ModuleClass.AUDIO) for t in spec.outer)


def has_plain_tower(spec: ArchitectureSpec) -> bool:
    """Whether its tower is neither cut over ranks nor quantised, whatever the rest is."""
    return spec.root_type in _PLAIN_TOWERS


def doubts_of(spec: ArchitectureSpec) -> tuple[Doubt, ...]:
    """The model's doubts as they stand in SGLang."""
    if not has_plain_tower(spec):
        return spec.doubts
    return tuple(doubt for doubt in spec.doubts if not doubt.on_tower)


@lru_cache(maxsize=CACHED)
def tower(model: Model) -> Tower | None:
    """Layers and width of the config's own ``vision_config``; None where it has none.

    What the config leaves out its class says, and what the class doesn't have counts as a ViT-L's.
    Without a config the tower is weighed by its parameters.
    """
    if model.config is None:
        count = model.spec.parameters_by_class().get(ModuleClass.VISION, 0)
        return Tower(count // (_PARAMETERS_A_LAYER * _USUAL.width**2), _USUAL.width)
    stated = model.config.get(_KEY)
    if not isinstance(stated, dict):
        return None
    found = cast("Mapping[str, object]", stated)
    root = class_defaults(str(model.config.get("model_type"))) or NO_DEFAULTS
    kind = found.get("model_type") or root.sub_types.get(_KEY, "")
    own = class_defaults(root.sub_types.get(_KEY, "")) or class_defaults(str(kind)) or NO_DEFAULTS
    return Tower(
        _number(found, own, "num_hidden_layers", _USUAL.layers),
        _number(found, own, "hidden_size", _USUAL.width),
    )


def _number(stated: Mapping[str, object], own: ClassDefaults, key: str, otherwise: int) -> int:
    names = (key, *own.aliases.get(key, ()))
    for source in (stated, own.values):
        for name in names:
            value = source.get(name)
            if isinstance(value, int) and value > 0:
                return value
    return otherwise
