"""A recorded run in a report: each region and phase beside its plan, and the steps it answers."""

from __future__ import annotations

import itertools
from dataclasses import replace

from engine.observed import observed, played
from engine.overlay.steps import Evidence
from engine.report.compose import compose
from engine.report.document import Heading, Paragraph, ReportDocument, Table
from engine.telemetry.snapshot import DeviceReading, PoolKind, ProcessReading, TelemetrySnapshot
from engine.units import UnitSystem
from tests.helpers import sizings
from tests.helpers.sizings import gib
from tests.unit.report.test_compose import ABOUT, LIMITS


def _recording() -> list[TelemetrySnapshot]:
    """A minute of others alone, ten of loading, then 22.60 GiB held by a vLLM."""
    held = [0.0] * 5 + [1.5 * step for step in range(1, 11)] + [15.4] * 5 + [22.60] * 40
    return [_moment(second, size) for second, size in enumerate(held)]


def _moment(second: int, held: float) -> TelemetrySnapshot:
    others = ProcessReading(7, "Xorg", gib(0.41))
    command = "vllm serve meta-llama/Llama-3.1-8B-Instruct"
    own = (ProcessReading(42, "VLLM::EngineCore", gib(held), command),) if held else ()
    reading = DeviceReading(
        "GPU-0",
        "RTX 4090",
        PoolKind.VRAM,
        sizings.RTX_4090_TOTAL,
        gib(held + 0.41),
        gib(23.9 - held - 0.41),
        0,
        (others, *own),
        "NVML 580",
    )
    return TelemetrySnapshot(float(second), 1_764_413_520.0 + second, (reading,))


def _tables(recording: list[TelemetrySnapshot]) -> dict[str, Table]:
    made = sizings.sizing()
    evidence = Evidence(overlay=played(made, recording))
    found = observed(made, evidence, UnitSystem.BINARY)
    return _tables_of(compose(made, LIMITS, replace(ABOUT, observed=found), recording or None))


def _tables_of(document: ReportDocument) -> dict[str, Table]:
    blocks = (block for block in document.blocks if not isinstance(block, Paragraph))
    pairs = itertools.pairwise(blocks)
    return {a.text: b for a, b in pairs if isinstance(a, Heading) and isinstance(b, Table)}


def test_that_what_is_held_is_told_by_region_where_it_is_seen() -> None:
    rows = {row[1].text: row for row in _tables(_recording())["Error by region"].rows}
    assert [cell.text for cell in rows["Others"][2:5]] == ["0.41", "0.41", "0.00"]
    # Planned inside: 14.99 + 5.32 + 0.60 + 0.70 + 0.50 + 0.31 = 22.42; 0.18 more were held.
    planned = sum(gib(size) for size in (14.99, 5.32, 0.60, 0.70, 0.50, 0.31))
    inside = [row for name, row in rows.items() if name not in {"Others", "Headroom"}]
    off = sum(row[4].value_bytes or 0 for row in inside)
    assert off == gib(22.60) - planned
    # Nobody sees the cache from outside: it has no error of its own, and never one of 0.
    hidden = [row for row in inside if row[5].text == "Not visible"]
    assert hidden
    assert all([cell.text for cell in row[3:5]] == ["–", "–"] for row in hidden)


def test_that_each_phase_that_was_seen_stands_with_its_error() -> None:
    rows = _tables(_recording())["Error by phase"].rows
    assert rows
    for row in rows:
        planned, measured, off = (cell.value_bytes or 0 for cell in row[2:5])
        assert measured - planned == off
        assert row[5].text.startswith(("within the range", "outside the range"))


def test_that_the_five_steps_stand_with_how_they_are_answered() -> None:
    steps = _tables([])["Checklist"].rows
    assert [row[0].text for row in steps] == ["1", "2", "3", "4", "5"]
    assert steps[0][1].text == "Measure the weights after loading"
    # 14.99 GiB, read from the file's header; nothing runs.
    assert [cell.text for cell in steps[0][2:4]] == ["Known", "14.99"]
    assert {row[2].text for row in steps} <= {"Known", "Modelled", "Open"}


def test_that_nothing_that_was_not_seen_is_reported_as_measured() -> None:
    assert not {"Error by region", "Error by phase", "Measured"} & _tables([]).keys()


def test_that_the_release_that_ran_stands_beside_the_one_that_is_planned() -> None:
    made = sizings.sizing()
    found = observed(made, Evidence(release="0.33.1", kernel="FLASHINFER"), UnitSystem.BINARY)
    table = _tables_of(compose(made, LIMITS, replace(ABOUT, observed=found)))[
        "What the figures hold for"
    ]
    rows = {row[0].text: row[1].text for row in table.rows}
    assert (rows["Runtime version"], rows["Runtime version that ran"]) == ("0.33.0", "0.33.1")
    assert rows["Kernel"] == "FLASHINFER"
    unseen = _tables([])["What the figures hold for"]
    assert "Runtime version that ran" not in {row[0].text for row in unseen.rows}
