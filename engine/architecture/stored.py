"""Header tensors summed by layer, module class, sharding and dtype."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.architecture.model import StoredWeights
    from engine.architecture.spec import ArchitectureSpec
    from engine.source.raw import RawModel


def summarise(raw: RawModel, spec: ArchitectureSpec) -> StoredWeights | None:
    """The weights of the header; None where there is none."""
    del raw, spec
    return None
