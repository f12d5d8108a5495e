"""Benchmarks note their figures; the table is printed at the end of the run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.benchmarks.pace import slowness

if TYPE_CHECKING:
    from collections.abc import Callable

_FIGURES = pytest.StashKey[list[tuple[str, str, str]]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_FIGURES] = []


@pytest.fixture
def note(request: pytest.FixtureRequest) -> Callable[[str, str, str], None]:
    """Note a figure: what was measured, how much it is, how much it may be."""
    figures = request.config.stash[_FIGURES]
    return lambda what, value, limit: figures.append((what, value, limit))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    figures = terminalreporter.config.stash.get(_FIGURES, [])
    if not figures:
        return
    terminalreporter.section("speed and size")
    now = f"{slowness():.2f}"
    terminalreporter.write_line(f"{'plain Python, times the usual':58} {now:>12}   scales limits")
    for what, value, limit in figures:
        terminalreporter.write_line(f"{what:58} {value:>12}   at most {limit}")
