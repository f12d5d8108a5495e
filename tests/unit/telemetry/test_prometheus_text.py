"""Metrics pages: real excerpts, the format's corners, and pages that are none."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from engine.errors import TelemetryError
from engine.telemetry.prometheus_text import parsed

if TYPE_CHECKING:
    from pathlib import Path


def test_that_labels_values_and_times_are_read():
    page = parsed(
        "# HELP a_total What it counts.\n# TYPE a_total counter\n"
        'a_total{path="C:\\\\x",said="\\"hi\\"\\nthere",empty="",} 12 1395066363000\n'
        "b 1.5e3\n"
        'c{ x = "1" , y="}" } -0.25\n'
    )
    first, second, third = page.samples
    assert (first.name, first.value, first.at_s) == ("a_total", 12.0, 1395066363.0)
    # Control characters in a label can't steer a terminal: they are shown escaped.
    assert first.labels == {"path": "C:\\x", "said": '"hi"\\nthere', "empty": ""}
    assert (second.name, second.value, second.at_s) == ("b", 1500.0, None)
    assert third.labels == {"x": "1", "y": "}"}
    assert page.passed_over == 0


def test_that_openmetrics_times_are_seconds_and_exemplars_are_left_out():
    page = parsed('a_bucket{le="+Inf"} 17 1520879607.789 # {trace="x"} 0.67\n# EOF\n')
    assert page.samples[0].value == 17.0
    assert page.samples[0].at_s == 1520879607.789


def test_that_infinities_and_nan_are_values_as_written():
    page = parsed("a +Inf\nb -Inf\nc NaN\n")
    assert (page.value("a"), page.value("b")) == (math.inf, -math.inf)
    assert math.isnan(page.value("c") or 0.0)


def test_that_a_line_that_is_no_sample_is_passed_over_and_counted():
    page = parsed('good 1\nbad{x="1" 2\n<html>\nalso_bad one\nworse 1_000\nodd{=} 3\n')
    assert [s.name for s in page.samples] == ["good"]
    assert page.passed_over == 5


def test_that_a_page_of_something_else_is_refused():
    with pytest.raises(TelemetryError, match="no metrics page"):
        parsed("<!DOCTYPE html>\n<title>Sign in</title>\n")
    assert parsed("").samples == ()


def test_that_an_endless_page_is_refused():
    with pytest.raises(TelemetryError, match="200,000 values"):
        parsed("a 1\n" * 200_002)


@pytest.mark.parametrize("line", ['a{x="' + "\\" * 8000, "a{" + '"",' * 5000, "a" * 16000 + "{"])
def test_that_a_line_made_to_stall_a_reader_is_passed_over(line: str):
    assert parsed(f"good 1\n{line}\n").passed_over == 1


def test_that_the_first_known_name_gives_the_value():
    page = parsed("new_name 2\nold_name 1\n")
    assert page.value("newest_name", "new_name", "old_name") == 2.0
    assert page.value("nobody") is None
    assert "old_name" in page


def test_that_every_recorded_page_is_read_line_by_line(shared: Path):
    pages = sorted((shared / "live/samples").glob("*/*.prom"))
    assert len(pages) >= 8
    for path in pages:
        text = path.read_text(encoding="utf-8")
        page = parsed(text)
        lines = [x for x in text.splitlines() if x.strip() and not x.startswith("#")]
        assert (path.name, len(page.samples), page.passed_over) == (path.name, len(lines), 0)


def test_that_a_name_that_ends_in_a_digit_is_no_name_with_a_value():
    page = parsed("up 1\nrequests_total_v2\n")
    assert [sample.name for sample in page.samples] == ["up"]
    assert page.passed_over == 1
