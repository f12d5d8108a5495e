"""What every source delivers and ``architecture.read`` takes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class HeaderTensor(NamedTuple):
    """One tensor of a safetensors header (dtype as written: ``BF16``) or of a GGUF table.

    Shapes:
        ``shape`` as stored: row-major for safetensors, ggml order (ne0 first) for GGUF.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    size_bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class RawAdapter:
    """What was trained on top of a model (LoRA): its config and the header of its weights."""

    config: Mapping[str, object]
    """The parsed ``adapter_config.json``."""
    tensors: tuple[HeaderTensor, ...] = ()
    file_bytes: int = 0

    @property
    def base(self) -> str:
        """The model it was made for, as its config names it; empty where it doesn't."""
        named = self.config.get("base_model_name_or_path")
        return named.strip() if isinstance(named, str) else ""


@dataclass(frozen=True, slots=True, eq=False)
class RawModel:
    """A model before it is understood: the config mapping and/or header tensors, unchanged."""

    id: str
    source: str
    revision: str | None = None
    config: Mapping[str, object] | None = None
    """The parsed ``config.json``, or the catalogue's facts under the same keys."""
    tensors: tuple[HeaderTensor, ...] = ()
    tensors_source: str = ""
    """Where the headers came from, for the evidence line."""
    file_bytes: int = 0
    gguf_metadata: Mapping[str, object] = field(default_factory=dict[str, object])
    parameters_by_class: Mapping[str, int] | None = None
    """Exact per-class sums from the catalogue (built on the meta device)."""
    notes: tuple[str, ...] = ()
    adapter: RawAdapter | None = None
    """What is on top of the model; without a config its base is still to be found."""
