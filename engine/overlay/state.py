"""What a runtime says of itself at one moment, as far as the overlay needs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class RuntimeState(Protocol):
    """Whatever reads endpoints or logs may hand one over; what isn't a number isn't known."""

    @property
    def is_loaded(self) -> object:
        """True once the model is ready, False while it loads or is unloaded."""
        ...

    @property
    def requests_running(self) -> object:
        """An int."""
        ...

    @property
    def pool_share(self) -> object:
        """A float: how much of the KV pool is in use, 0 to 1."""
        ...

    @property
    def live_tokens(self) -> object:
        """An int: tokens that the cache holds."""
        ...

    @property
    def prompt_tokens(self) -> object:
        """An int that only grows: tokens of prompts read so far."""
        ...

    @property
    def generated_tokens(self) -> object:
        """An int that only grows: tokens written so far."""
        ...

    @property
    def cpu_s(self) -> object:
        """A float that only grows: processor time of its processes, seconds."""
        ...


@dataclass(frozen=True, slots=True)
class Stated:
    """A ``RuntimeState`` by hand; None is what the runtime doesn't say."""

    is_loaded: bool | None = None
    requests_running: int | None = None
    pool_share: float | None = None
    live_tokens: int | None = None
    prompt_tokens: int | None = None
    generated_tokens: int | None = None
    cpu_s: float | None = None

    @property
    def counts_requests(self) -> bool:
        """Whether it says itself if it works."""
        return self.requests_running is not None or self.generated_tokens is not None


NOTHING_STATED = Stated()


def whole(value: object) -> int | None:
    """``value`` where it is a whole number; a truth value is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def share(value: object) -> float | None:
    """``value`` where it is a share, 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= 1 else None


def seconds(value: object) -> float | None:
    """``value`` where it is a time that has passed."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < float("inf") else None


def told(state: RuntimeState | None) -> Stated:
    """``state`` with all that is no figure left out."""
    if state is None:
        return NOTHING_STATED
    loaded = state.is_loaded
    return Stated(
        loaded if isinstance(loaded, bool) else None,
        whole(state.requests_running),
        share(state.pool_share),
        whole(state.live_tokens),
        whole(state.prompt_tokens),
        whole(state.generated_tokens),
        seconds(state.cpu_s),
    )
