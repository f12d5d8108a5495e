"""How fast 100,000 rows are filtered, searched, sorted and counted."""

from __future__ import annotations

import random
import time

import pytest

from engine.fit.verdict import Fit
from gui.browser.columns import Columns
from gui.browser.filters import ALL, Filters, Group, Span
from gui.browser.listing import Sort, Wanted
from gui.browser.rows import Badge, Row

pytestmark = pytest.mark.benchmark

LIMIT_S = 0.05
ROWS = 100_000


@pytest.fixture(scope="module")
def columns() -> Columns:
    chance = random.Random(1)

    def made(n: int) -> Row:
        owner, name = f"org{chance.randrange(4000)}", f"model-{chance.randrange(10**6)}-{n}"
        return Row(
            f"{owner}/{name}", name, owner, lambda _token: None,
            parameters=chance.choice([None, chance.randrange(10**8, 10**12)]),
            weight_format=chance.choice(["BF16", "FP8", "GGUF", "AWQ", ""]),
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
        begun = time.perf_counter()
        found = columns.arranged(query, wanted)
        for group in Group:
            found.counts(group)
        taken.append(time.perf_counter() - begun)
    return min(taken)


def test_that_100000_rows_are_filtered_and_sorted_within_50_ms(columns, note):
    strict = Filters(
        parameters=Span(10**9, 10**11), weights=Span(1, 10**11), context=8192,
        takes=frozenset({"Images"}), author="org1", licence="mit",
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
        assert taken <= LIMIT_S
