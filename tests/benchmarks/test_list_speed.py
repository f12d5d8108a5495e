"""How fast 100,000 rows are filtered, searched, sorted and counted."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from engine.fit.verdict import Fit
from gui.browser.columns import Columns
from gui.browser.filters import ALL, Filters, Group, Span
from gui.browser.listing import Sort, Wanted
from gui.browser.rows import Badge, Row
from tests.benchmarks.pace import allowed

pytestmark = pytest.mark.benchmark

LIMIT_S = 0.05
ROWS = 100_000
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def columns() -> Columns:
    chance = random.Random(1)

    def made(n: int) -> Row:
        owner, name = f"org{chance.randrange(4000)}", f"model-{chance.randrange(10**6)}-{n}"
        return Row(
            f"{owner}/{name}", name, owner, lambda _token: None,
            parameters=chance.choice([None, chance.randrange(10**8, 10**12)]),
            weight_format=chance.choice(["BF16", "FP8", "GGUF", "AWQ", "Q4_K_M", "MXFP4", ""]),
            context=chance.choice([None, 8192, 131072]),
            downloads=chance.randrange(10**7),
            gated=chance.choice([None, True, False]),
            stored_bytes=chance.randrange(10**12),
            takes=chance.choice([(), ("Text",), ("Text", "Images")]),
            licence=chance.choice(["", "mit", "apache-2.0"]),
            updated=f"2025-{chance.randrange(1, 13):02}-{chance.randrange(1, 29):02}T10:00",
        )  # fmt: skip

    rows = [made(n) for n in range(ROWS)]
    columns = Columns(rows)
    fits = tuple(Fit)
    columns.set_badges(
        {
            row.key: Badge(chance.choice(fits), chance.randrange(-(10**11), 10**11), "", "")
            for row in rows
        }
    )
    return columns


def quickest(columns: Columns, wanted: Wanted, *queries: str) -> float:
    """The best of several: what the work costs on a machine with more to do."""
    taken: list[float] = []
    for query in queries * 5:
        begun = time.process_time()
        found = columns.arranged(query, wanted)
        for group in Group:
            found.counts(group)
        taken.append(time.process_time() - begun)
    return min(taken)


def test_that_100000_rows_are_filtered_and_sorted_within_50_ms(columns, note):
    strict = Filters(
        parameters=Span(10**9, 10**11), weights=Span(1, 10**11), context=8192,
        takes=frozenset({"Images"}), author="org1", licence="mit",
        quant="AWQ",
    )  # fmt: skip
    orders = [quickest(columns, Wanted(ALL, sort), "") for sort in Sort]
    filters = [quickest(columns, Wanted(wanted), "") for wanted in (Filters(), strict)]
    # Two queries in turn, so that none is the one just asked.
    search = quickest(columns, Wanted(ALL), "model-1 org3", "org3 model-2")
    for what, taken in (
        ("sort 100,000 rows, the slowest order", max(orders)),
        ("filter 100,000 rows and count the choices", max(filters)),
        ("search 100,000 rows for two words", search),
    ):
        note(what, f"{1000 * taken:.0f} ms", f"{1000 * LIMIT_S:.0f} ms")
        assert taken <= allowed(LIMIT_S)


# The same through the expanded browser's widgets; each figure is the longer of the two turns of
# the event loop that an edit takes: working out the rows, and painting them.
PROGRAM = """
import json, time
from gui.app import make_application
from gui.kit.collector import Collector
application = make_application(["plimsoll"])
from engine.source.hub import HubClient
from gui.browser.expanded import ExpandedBrowser
from gui.browser.filters import ALL
from gui.browser.listing import Sort
from gui.browser.rows import Place, Row, Source
from gui.browser.view_model import BrowserViewModel
from gui.kit.tasks import TaskRunner
from gui.kit.theme import load_theme, style_sheet
theme = load_theme("light")
application.setStyleSheet(style_sheet(theme))
model = BrowserViewModel(TaskRunner(), HubClient(offline=True))
model._known.add_found([
    Row(
        f"org{n % 997}/model-{n * 7919 % 100003}", f"model-{n * 7919 % 100003}", f"org{n % 997}",
        lambda _token: None, parameters=n * 104729 % 10**9 or None, context=8192 << n % 5,
        weight_format=("BF16", "FP8", "GGUF")[n % 3], stored_bytes=n * 15485863 % 10**11,
        places=frozenset({Place.HUB}),
    )
    for n in range(100_000)
])
model.set_source(Source.HUB)
view = ExpandedBrowser(model, theme)
view.resize(1440, 840)
view.show()
model.set_filters(ALL)
application.processEvents()
Collector(application).settle()
edits = {
    "sort": (lambda: model.set_sort(Sort.PARAMETERS), lambda: model.set_sort(Sort.NAME)),
    "filter": (lambda: model.set_filters(ALL.with_(context=32768)), lambda: model.set_filters(ALL)),
}
figures = {}
for name, both in edits.items():
    turns = []
    for edit in both * 4:
        begun = time.process_time()
        edit()
        worked = time.process_time()
        application.processEvents()
        turns.append(max(worked - begun, time.process_time() - worked))
    figures[name] = min(turns)
print(json.dumps({"rows": len(model.state.rows), "figures": figures}))
"""


def test_that_the_window_sorts_and_filters_100000_rows_without_a_stall(note):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    assert found["rows"] == ROWS
    for name, taken in found["figures"].items():
        note(f"{name} 100,000 rows in the table, longest wait", f"{1000 * taken:.0f} ms", "50 ms")
        assert taken <= allowed(LIMIT_S)
