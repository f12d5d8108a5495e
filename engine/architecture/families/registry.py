"""Every family by ``model_type``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.families import classic, dense, hybrid, sparse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.architecture.families.base import Family

FAMILIES: Mapping[str, Family] = {
    **classic.FAMILIES,
    **dense.FAMILIES,
    **sparse.FAMILIES,
    **hybrid.FAMILIES,
}

GENERIC = dense.LLAMA
"""What an unknown decoder is counted as: a bound, never an answer."""
