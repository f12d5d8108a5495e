"""The phases of a deployment's life, and the peak of each: four figures, never their sum."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.evidence import Estimate


class Phase(StrEnum):
    """When a device holds most (design, section 2). Order = order in time."""

    LOAD = "load"
    """Until the weights lie as they are computed with: loader transients, unpacked copies."""
    PREFILL = "prefill"
    """The largest forward pass over a prompt."""
    DECODE = "decode"
    """A token for every request, steadily."""
    SUSTAINED = "sustained"
    """After the first requests, at the live tokens of the traffic: what no start-up shows."""

    @property
    def label(self) -> str:
        """The name a person reads."""
        return self.value.capitalize()


@dataclass(frozen=True, slots=True)
class PhasePeak:
    """The most that one rank holds in one phase."""

    phase: Phase
    estimate: Estimate
    """Everything on the device at that moment, others included, headroom not; its parts are
    named by region."""
    driver: str
    """What drives the peak, in one sentence."""
