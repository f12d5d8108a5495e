"""What is known of one runtime at one moment: what it says, and what the drivers say it holds.

Three figures stand side by side and are never mixed: *stated* by the runtime itself, *attributed*
to its processes by a driver, and what the device holds altogether. A value that is missing carries
its reason.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from engine.telemetry.snapshot import Missing, Quality
from engine.words import tr_later

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.budget.model import Region
    from engine.telemetry.address import Address

NOT_ASKED = Missing(tr_later("the runtime was not asked"))
NO_MODEL = Missing(tr_later("no model is loaded"))
"""What a runtime says that serves several models and holds none of them now."""
NOT_STATED = Missing(tr_later("this runtime doesn’t state it"))


class Known(StrEnum):
    """Where a figure comes from."""

    STATED = "stated"
    """By the runtime, as it is."""
    DERIVED = "derived"
    """From what the runtime states, by arithmetic."""
    MODELLED = "modelled"
    """From what the runtime states and what we know of the model."""


class Reach(StrEnum):
    """How far a runtime could be asked."""

    ANSWERS = "answers"
    LOADING = "loading"
    """It answers that its model is not ready."""
    WANTS_KEY = "wants key"
    SILENT = "silent"
    """No answer, or none that a runtime gives."""
    NO_ADDRESS = "no address"
    """It listens nowhere that can be asked."""
    NOT_ASKED = "not asked"


@dataclass(frozen=True, slots=True)
class ModelSeen:
    """A model that a runtime has loaded."""

    name: str
    """As the runtime calls it."""
    context_tokens: int | Missing = NOT_STATED
    """Of one request."""
    slots: int | Missing = NOT_STATED
    """Requests at a time that have memory set aside."""
    quantisation: str = ""
    file: str = ""
    """The path that it was loaded from, where that is told."""
    expires: str = ""
    """When it is unloaded, as the runtime writes the time; ``never``, or empty where not told."""


@dataclass(frozen=True, slots=True)
class PoolSeen:
    """Memory that a runtime keeps for the state of requests."""

    tokens: int | Missing = NOT_STATED
    """Capacity."""
    tokens_known: Known = Known.STATED
    used_share: float | Missing = NOT_STATED
    """0 to 1, of the fullest pool."""
    used_tokens: int | Missing = NOT_STATED
    evictable_tokens: int | Missing = NOT_STATED
    """Of the used ones, those given up on demand."""
    size_bytes: int | Missing = NOT_STATED
    size_known: Known = Known.STATED


@dataclass(frozen=True, slots=True)
class StatedBytes:
    """One figure of a runtime's own account."""

    size_bytes: int
    region: Region | None = None
    """None for a figure that is of several regions together."""
    rank: str = ""
    """As the runtime names it (``TP1``, ``CUDA0``); empty for all of it."""
    on_device: bool = True
    """Whether it lies on an accelerator, as the runtime says."""


@dataclass(frozen=True, slots=True)
class HeldBytes:
    """What the driver of one device says a runtime's processes hold there."""

    uuid: str
    device: str
    size_bytes: int | Missing
    quality: Quality
    is_accelerator: bool
    """Whether the device is a GPU, shared memory or not; else the computer's own memory."""


@dataclass(frozen=True, slots=True)
class RuntimeSeen:
    """One loaded model of one runtime, or a runtime without one."""

    runtime: str
    """Key as in the machine contract (``vllm``); empty where it is not recognised."""
    label: str
    """As its makers write it."""
    reach: Reach = Reach.NOT_ASKED
    why: str = ""
    """In one phrase, where it could not be asked."""
    address: Address | None = None
    version: str | Missing = NOT_ASKED
    pids: tuple[int, ...] = ()
    """Its processes, the one that started the others first; empty where they are not known."""
    model: ModelSeen | Missing = NOT_ASKED
    pool: PoolSeen | Missing = NOT_ASKED
    running: int | Missing = NOT_ASKED
    """Requests that are worked on."""
    waiting: int | Missing = NOT_ASKED
    prefilling: int | Missing = NOT_STATED
    """Of the running ones, those whose prompt is not through yet."""
    prompt_tokens: int | Missing = NOT_ASKED
    """Processed since its start; rises during a prefill."""
    output_tokens: int | Missing = NOT_ASKED
    """Generated since its start; rises during a decode."""
    stated: tuple[StatedBytes, ...] = ()
    held: tuple[HeldBytes, ...] = ()
    cpu_s: float | Missing = field(default=NOT_ASKED, compare=False)
    """Processor time of its processes so far, seconds; no other sight for its passing."""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What it says of its start, under the names that a ``Deployment`` has."""
    notes: tuple[str, ...] = ()
    """What a reader should know, a sentence each."""
    raw: Mapping[str, str] = field(default_factory=dict[str, str])
    """What it said beside that and nobody here understands, as it stood."""

    @property
    def key(self) -> tuple[str, str, str]:
        """What stays the same from one look to the next."""
        head = str(self.pids[0]) if self.pids else str(self.address or "")
        name = "" if isinstance(self.model, Missing) else self.model.name
        return self.runtime, head, name

    @property
    def is_loaded(self) -> bool | Missing:
        """Whether its model is ready; a runtime that names none may have one all the same."""
        if self.reach is Reach.LOADING or (self.reach is Reach.ANSWERS and self.model == NO_MODEL):
            return False
        if self.reach is not Reach.ANSWERS:
            return NOT_ASKED
        return True if isinstance(self.model, ModelSeen) else self.model

    @property
    def requests_running(self) -> int | Missing:
        """As ``running``: the overlay's word for it."""
        return self.running

    @property
    def generated_tokens(self) -> int | Missing:
        """As ``output_tokens``: the overlay's word for it."""
        return self.output_tokens

    @property
    def pool_share(self) -> float | Missing:
        """How much of its KV pool is in use, 0 to 1."""
        return self.pool if isinstance(self.pool, Missing) else self.pool.used_share

    @property
    def live_tokens(self) -> int | Missing:
        """Tokens that its KV pool holds."""
        return self.pool if isinstance(self.pool, Missing) else self.pool.used_tokens

    @property
    def stated_bytes(self) -> int | Missing:
        """All that it states of accelerators; of the computer's memory where it states none."""
        on_device = [one.size_bytes for one in self.stated if one.on_device]
        chosen = on_device or [one.size_bytes for one in self.stated]
        return sum(chosen) if chosen else NOT_STATED

    @property
    def held_bytes(self) -> int | Missing:
        """All that drivers attribute to it on accelerators, or in the computer's memory."""
        found = [one for one in self.held if one.is_accelerator] or list(self.held)
        sizes = [one.size_bytes for one in found if not isinstance(one.size_bytes, Missing)]
        if sizes:
            return sum(sizes)
        return (
            found[0].size_bytes
            if found
            else Missing(tr_later("they run elsewhere, or as another user’s"))
        )

    @property
    def quality(self) -> Quality:
        """The worst of what ``held_bytes`` adds up."""
        order = list(Quality)
        found = [one for one in self.held if one.is_accelerator] or list(self.held)
        return max((one.quality for one in found), key=order.index, default=Quality.NOT_REPORTED)
