"""A run, its log and the steps of sizing, as the plain values of a report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.logs import words
from engine.logs.why import happened
from engine.overlay.checklist import checklist
from engine.overlay.overlay import Follower
from engine.overlay.regions import KnownFrom, measured_regions
from engine.report.logged import Logged, StatedRegion
from engine.report.seen import Observed, PhaseSeen, RegionSeen, Step
from engine.telemetry.snapshot import Missing
from engine.words import grouped, tr

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from engine.contract.run import Run
    from engine.overlay.overlay import Overlay
    from engine.overlay.steps import Evidence
    from engine.sizing import Sizing
    from engine.telemetry.snapshot import TelemetrySnapshot
    from engine.units import UnitSystem


def played(sizing: Sizing, recording: Iterable[TelemetrySnapshot]) -> Overlay | None:
    """What a recording shows of the plan; None where it holds nothing."""
    follower = Follower()
    follower.follow(sizing.budget)
    for snapshot in recording:
        follower.add(snapshot)
    return follower.overlay(sizing.budget)


def observed(
    sizing: Sizing, evidence: Evidence, unit: UnitSystem, log: Run | None = None
) -> Observed:
    """The report's values.

    Args:
        sizing: the plan's.
        evidence: overlay and what a log states, as far as there are.
        unit: of the sizes in words.
        log: the log of a run of this plan.
    """
    steps = checklist(sizing.budget, sizing.verdict.binding_rank, evidence, unit).steps
    return Observed(
        regions=tuple(_regions(sizing, evidence, unit)),
        phases=tuple(_phases(evidence.overlay)),
        steps=tuple(
            Step(s.title, s.answer.status.label, s.answer.words, s.answer.estimate) for s in steps
        ),
        log=_logged(log, unit) if log else None,
        release=evidence.release,
        kernel=evidence.kernel,
    )


def _logged(run: Run, unit: UnitSystem) -> Logged:
    return Logged(
        about=words.about(run.reading),
        headline=words.headline(run.cause, run.reading, unit),
        sentences=happened(run.cause, run.reading, unit),
        regions=tuple(
            StatedRegion(
                rank=rank.name,
                region=row.region,
                planned=row.predicted,
                stated_bytes=row.stated.size_bytes,
                lines=", ".join(grouped(number) for number in row.stated.lines),
            )
            for rank in run.rows
            for row in rank.rows
            if row.stated is not None
        ),
        remedies=tuple((one.label, one.margin_bytes) for one in run.remedies),
    )


def _regions(sizing: Sizing, evidence: Evidence, unit: UnitSystem) -> Iterator[RegionSeen]:
    overlay = evidence.overlay
    for rank in sizing.budget.ranks:
        seen = overlay.of(rank.rank) if overlay else None
        if seen is None or not seen.run.is_loaded:
            continue
        for row in measured_regions(rank, seen, evidence.stated.get(rank.rank), unit):
            found = row.measured_bytes
            if isinstance(found, Missing):
                size, known = None, tr(found.reason)
            else:
                # The overlay lets what nobody sees stand at its plan: that is no measurement.
                is_seen = row.known_from is not KnownFrom.PLAN
                size, known = found if is_seen else None, row.known_from.label
            if row.planned_bytes or found:
                yield RegionSeen(rank.rank, row.region, row.planned_bytes, size, known)


def _phases(overlay: Overlay | None) -> Iterator[PhaseSeen]:
    for rank in overlay.ranks if overlay else ():
        for error in rank.errors:
            yield PhaseSeen(rank.rank, error.phase.label, error.expected, error.peak_bytes)
