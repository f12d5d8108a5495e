"""The indexes of families and towers against the modules that hold them."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

import engine.architecture.families
import engine.architecture.towers
from engine.architecture.families.registry import FAMILIES
from engine.architecture.towers.encoders import VISION_ENCODERS
from engine.architecture.towers.registry import AUDIO_ENCODERS, TOWERS


@pytest.mark.parametrize(
    ("package", "attribute", "index"),
    [
        (engine.architecture.families, "FAMILIES", FAMILIES),
        (engine.architecture.towers, "TOWERS", TOWERS),
        (engine.architecture.towers, "ENCODERS", AUDIO_ENCODERS),
        (engine.architecture.towers, "VISION_ENCODERS", VISION_ENCODERS),
    ],
)
def test_that_the_index_names_what_the_modules_hold(
    package: object, attribute: str, index: object
) -> None:
    held: dict[str, object] = {}
    for path in Path(package.__file__).parent.glob("*.py"):  # type: ignore[attr-defined]
        if path.stem in ("__init__", "registry", "encoders"):
            continue
        table = getattr(import_module(f"{package.__name__}.{path.stem}"), attribute, {})  # type: ignore[attr-defined]
        assert not held.keys() & table.keys(), path.stem
        held |= table
    assert held.keys() <= set(index)  # type: ignore[call-overload]
    for name, entry in held.items():
        assert index[name] is entry, name  # type: ignore[index]
    for name in index:  # type: ignore[attr-defined]
        assert index[name] in held.values(), name  # type: ignore[index]
