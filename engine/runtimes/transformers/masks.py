"""Causal masks that older classes keep beside their weights: a byte for every pair of positions.

Source:
    ``register_buffer("bias", torch.tril(…, dtype=torch.bool))`` in ``models/*/modeling_*.py`` of
    Transformers 4.36.2 to 5.24.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.evidence import Basis, Estimate, exactly
from engine.words import grouped, tr

if TYPE_CHECKING:
    from engine.architecture.spec import ArchitectureSpec
    from engine.runtimes.transformers.releases import Version

_ONE = frozenset({"gpt_bigcode"})
"""Types with one mask for all layers."""
_EVERY_LAYER: dict[str, Version] = {
    "codegen": (4, 45),
    "gpt2": (5, 24),
    "gpt_neo": (999,),
    "gpt_neox": (4, 49),
    "gptj": (4, 45),
}
"""Types with a mask in every layer -> the first release that was read without."""


def kept(spec: ArchitectureSpec, version: Version, layers: int, *, first: bool) -> Estimate | None:
    """The masks on one device; None where there are none.

    Args:
        spec: the model.
        version: of Transformers.
        layers: how many of the model's layers the device holds.
        first: whether it is the first device.
    """
    name, side = spec.model_type, spec.max_position_embeddings or 0
    count = int(first) if name in _ONE else layers
    if name not in _ONE and version >= _EVERY_LAYER.get(name, (0,)):
        return None
    size = side * side * count
    if not size:
        return None
    text = tr("{count} × {side} × {side} B").format(count=count, side=grouped(side))
    return exactly(size, Basis.EXACT, tr("a causal mask kept as a buffer"), text, tr("masks"))
