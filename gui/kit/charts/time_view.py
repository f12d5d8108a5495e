"""Which part of time is looked at: how long it is, and whether it follows the newest sample."""

from __future__ import annotations

from dataclasses import dataclass

from gui.kit.charts.series import DAY_S

SPANS_S = (60, 120, 300, 900, 3600, 14_400, 43_200, DAY_S)
"""What buttons and keys step through; the wheel stops in between."""
DEFAULT_SPAN_S = 120


@dataclass(slots=True)
class TimeView:
    """A span of seconds that ends now, or at a moment that stands still."""

    span_s: float = DEFAULT_SPAN_S
    held_s: float | None = None
    """Where the picture stands still; None while it follows."""

    def end_s(self, now_s: float) -> float:
        """The newest moment that is seen."""
        return now_s if self.held_s is None else self.held_s

    def zoom(self, factor: float, now_s: float, at_s: float | None = None) -> None:
        """Show ``factor`` times as much time; ``at_s`` stays in its place if the view is held."""
        self.set_span(self.span_s * factor, now_s, at_s)

    def step(self, steps: int, now_s: float) -> None:
        """Show the next longer or shorter of the usual spans."""
        spans = SPANS_S if steps > 0 else SPANS_S[::-1]
        beyond = (s for s in spans if (s > self.span_s if steps > 0 else s < self.span_s))
        self.set_span(next(beyond, spans[-1]), now_s)

    def set_span(self, span_s: float, now_s: float, at_s: float | None = None) -> None:
        """Show ``span_s`` seconds, from a minute to a day."""
        before = self.span_s
        self.span_s = min(max(span_s, SPANS_S[0]), SPANS_S[-1])
        if self.held_s is not None:
            at = self.held_s - before / 2 if at_s is None else at_s
            self.held_s = min(at + (self.held_s - at) * self.span_s / before, now_s)

    def pan(self, seconds: float, now_s: float, oldest_s: float) -> None:
        """Look ``seconds`` later, or earlier where negative; at the newest it follows again."""
        end = self.end_s(now_s) + seconds
        end = max(end, min(oldest_s + self.span_s, now_s))
        self.held_s = None if end >= now_s else end

    def hold(self, now_s: float) -> bool:
        """Stand still, or follow again. Returns whether it stands."""
        self.held_s = now_s if self.held_s is None else None
        return self.held_s is not None
