"""A model as the rest of the engine sees it: identity, architecture, stored tensors if read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.architecture.spec import ArchitectureSpec, ModuleClass, Sharding
    from engine.source.origin import Origin


@dataclass(frozen=True, slots=True)
class StoredGroup:
    """Tensors of one header that behave alike: same layer, class, sharding and dtype."""

    layer: int | None
    """Decoder layer; None for what is outside the layers."""
    module: ModuleClass
    sharding: Sharding
    dtype: str
    size_bytes: int
    parameters: int
    """Logical parameters: packed 4-bit values count one each, scales and zero points none."""
    largest_bytes: int
    tensors: int
    matrices: tuple[tuple[int, int, int], ...] = ()
    """(rows, columns, how many) of its unpacked weight matrices: what another format packs."""


@dataclass(frozen=True, slots=True, eq=False)
class StoredWeights:
    """Weights summed from file headers: what is on disk, exactly."""

    groups: tuple[StoredGroup, ...]
    format_label: str
    """Weight format name as in ``engine.formats`` (``bf16``, ``Q4_K_M`` …) or ``mixed``."""
    source: str
    file_bytes: int

    @property
    def size_bytes(self) -> int:
        """Bytes of all tensors."""
        return sum(g.size_bytes for g in self.groups)

    @property
    def parameters(self) -> int:
        """Logical parameters of all tensors."""
        return sum(g.parameters for g in self.groups)


class GgufTensor(NamedTuple):
    """One entry of a GGUF tensor table. ``shape`` in ggml order (ne0 first)."""

    name: str
    ggml_type: str
    shape: tuple[int, ...]
    size_bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """What can be sized. Compared by identity."""

    id: str
    """Hub id, catalogue name or file name."""
    revision: str | None
    """Commit on the Hub, where known."""
    source: str
    """One phrase: where the description comes from (``bundled catalogue`` …)."""
    spec: ArchitectureSpec
    stored: StoredWeights | None = None
    gguf_tensors: tuple[GgufTensor, ...] = ()
    gguf_metadata: Mapping[str, object] = field(default_factory=dict[str, object])
    """GGUF scalar metadata (arrays of tokens left out); empty where the model is no GGUF."""
    config: Mapping[str, object] | None = None
    """The config that it was read from; None where there was none."""
    notes: tuple[str, ...] = ()
    """What a person should know that puts no figure in doubt, one sentence each."""
    origin: Origin | None = None
    """What finds it again; None where nobody asked."""

    @property
    def parameters(self) -> int:
        """Parameters of the built model."""
        return self.spec.parameters

    @property
    def is_gguf(self) -> bool:
        """Whether the model was read from a GGUF file."""
        return bool(self.gguf_tensors)
