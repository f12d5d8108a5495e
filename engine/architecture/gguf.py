"""GGUF metadata to the same architecture that a ``config.json`` gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import UnknownArchitectureError

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.source.raw import RawModel


def gguf_model(raw: RawModel) -> Model:
    """The model in a GGUF file.

    Raises:
        UnknownArchitectureError: the metadata has no dimensions.
    """
    raise UnknownArchitectureError(f"{raw.id}: GGUF is not read yet.")
