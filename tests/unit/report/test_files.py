"""The report as Markdown, web page and rows: the same figures, safe whatever a name holds."""

from __future__ import annotations

import csv
from dataclasses import replace
from datetime import date
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.deployment.spec import Deployment
from engine.errors import UsageError
from engine.fit.solve import Limits
from engine.report import files
from engine.report.compose import About, compose
from engine.report.csv_rows import csv_text
from engine.report.document import Cell, Column, Table
from engine.report.markdown import escaped
from engine.telemetry.snapshot import DeviceReading, PoolKind, TelemetrySnapshot
from engine.words import choose
from tests.helpers import sizings
from tests.helpers.sizings import gib
from tests.unit.report.test_compose import _real as real

if TYPE_CHECKING:
    from engine.report.document import ReportDocument

ABOUT = About(on=date(2026, 11, 29), version="0.1.0")
LIMITS = Limits(max_context=10_880, max_concurrency=5, best_weight_format="bf16")
HOSTILE = '<script>alert(1)</script>"|`[a](http://x)'
VOID = {"meta", "rect", "path", "polyline"}


class _Page(HTMLParser):
    """Elements in order, and whether each is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


def _hostile() -> ReportDocument:
    made = sizings.sizing()
    model = replace(made.budget.model, id=HOSTILE)
    return compose(replace(made, budget=replace(made.budget, model=model)), LIMITS, ABOUT)


def _run() -> list[TelemetrySnapshot]:
    def reading(second: int) -> DeviceReading:
        used = gib(min(0.41 + second, 23.24))
        total = sizings.RTX_4090_TOTAL
        return DeviceReading(
            "GPU-0", "RTX 4090", PoolKind.VRAM, total, used, gib(1), 0, (), "NVML 580"
        )

    return [TelemetrySnapshot(float(s), 1_764_413_520.0 + s, (reading(s),)) for s in range(1000)]


@pytest.mark.parametrize("run", [False, True])
@pytest.mark.parametrize("ranks", [1, 4])
def test_that_a_page_has_no_script_and_fetches_nothing(ranks: int, run: bool) -> None:
    made = compose(sizings.many_ranks(ranks), LIMITS, ABOUT, _run() if run else None)
    page = _Page(files.text(files.Kind.HTML, made))
    assert page.open == []
    assert not page.named("script")
    attributes = [(n, v or "") for _, a in page.found for n, v in a.items()]
    assert not [n for n, _ in attributes if n.startswith("on") or n in {"src", "href"}]
    assert not [v for n, v in attributes if n != "content" and "http" in v]
    (policy,) = [m for m in page.named("meta") if "http-equiv" in m]
    assert policy["content"] == "default-src 'none'; style-src 'unsafe-inline'"


def test_that_every_figure_of_a_page_has_its_text_and_every_table_its_heads() -> None:
    page = _Page(files.text(files.Kind.HTML, compose(sizings.sizing(), LIMITS, ABOUT, _run())))
    drawn = [svg for svg in page.named("svg") if svg.get("role") == "img"]
    assert len(drawn) == len(page.named("figure")) == len(page.named("figcaption")) > 0
    said = drawn[0]["aria-label"] or ""
    assert len(said) > 100
    assert said.startswith("Weights 14.99 GiB, KV cache 5.32 GiB, ")
    assert said.endswith("load line 23.64 GiB.")
    others = [svg for svg in page.named("svg") if svg.get("role") != "img"]
    assert all(svg["aria-hidden"] == "true" for svg in others)
    assert len(page.named("caption")) == len(page.named("table")) > 4
    assert {th["scope"] for th in page.named("th")} == {"row", "col"}


def test_that_a_bar_is_as_long_as_its_region_and_the_run_lies_below() -> None:
    text = files.text(files.Kind.HTML, compose(sizings.sizing(), LIMITS, ABOUT, _run()))
    bars = [r for r in _Page(text).named("rect") if r.get("stroke")]
    # 632 px are the card's 23.99 GiB: others 0.41 first, then 14.99 of weights.
    total = sizings.RTX_4090_TOTAL
    assert float(bars[0]["width"] or 0) == pytest.approx(632 * gib(0.41) / total, abs=0.06)
    assert float(bars[1]["width"] or 0) == pytest.approx(632 * gib(14.99) / total, abs=0.06)
    line = _Page(text).named("polyline")[0]["points"] or ""
    assert 250 < len(line.split()) <= 600
    assert "Measured, at most 23.24 GiB" in text


def test_that_a_page_is_in_the_language_of_the_window() -> None:
    choose("de")
    try:
        text = files.text(files.Kind.HTML, compose(sizings.sizing(), LIMITS, ABOUT))
    finally:
        choose("en")
    assert '<html lang="de">' in text
    assert "14,99" in text


def test_that_a_hostile_name_stays_a_name_in_a_page() -> None:
    page = _Page(files.text(files.Kind.HTML, _hostile()))
    assert not page.named("script")
    assert not page.named("a")
    assert HOSTILE in page.text


def test_that_a_hostile_name_stays_a_name_in_markdown() -> None:
    text = files.text(files.Kind.MARKDOWN, _hostile())
    outside = "".join(text.split("```")[::2])
    assert '\\<script>alert(1)\\</script>"\\|\\`\\[a\\](http://x)' in outside
    assert "<script" not in outside.replace("\\<", "")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("14.99", "14.99"),
        ("1. first", "1\\. first"),
        ("# title", "\\# title"),
        ("- item", "\\- item"),
        ("–", "–"),
        ("-1.5 GiB", "-1.5 GiB"),
        ("> quote", "\\> quote"),
        ("max_model_len", "max_model_len"),
        ("_so_", "\\_so\\_"),
        ("a\nb", "a b"),
    ],
)
def test_that_markdown_keeps_a_text_a_text(text: str, shown: str) -> None:
    assert escaped(text) == shown


def test_that_the_tables_of_markdown_hold_together() -> None:
    text = files.text(files.Kind.MARKDOWN, compose(sizings.many_ranks(4), LIMITS, ABOUT))
    assert text.startswith("<!-- Plimsoll report -->\n\n# ")
    widths: set[int] = set()
    for line in text.splitlines():
        if line.startswith("|"):
            widths.add(line.replace("\\|", "").count("|"))
        else:
            assert len(widths) < 2, line
            widths.clear()
    one = files.text(files.Kind.MARKDOWN, compose(sizings.sizing(), LIMITS, ABOUT))
    assert "| Weights | 14.99 | exact | 14.96 | Read | Tensor sizes in the file header" in one
    assert "- Longest context, 4 at once: **10,880 tokens**" in one


def test_that_rows_read_back_as_whole_bytes() -> None:
    rows = list(csv.DictReader(StringIO(csv_text(sizings.sizing()))))
    found = {(row["part"], row["name"]): row for row in rows}
    kv = found["region", "kv_cache"]
    assert int(kv["low (bytes)"]) == gib(4.12)
    assert int(kv["likely (bytes)"]) == gib(5.32)
    assert int(kv["high (bytes)"]) == gib(5.89)
    assert int(kv["least (bytes)"]) == gib(4)
    assert (kv["basis"], kv["device"], kv["rank"]) == ("exact", "RTX 4090", "0")
    assert found["region", "recurrent_state"]["least (bytes)"] == ""
    assert {name for part, name in found if part == "phase"} == {
        "load",
        "prefill",
        "decode",
        "sustained",
    }
    planned = int(found["sum", "planned"]["likely (bytes)"])
    regions = [r for r in rows if r["part"] == "region"]
    assert planned == sum(int(r["likely (bytes)"]) for r in regions)


def test_that_no_spreadsheet_takes_a_name_for_a_formula() -> None:
    device = sizings.card(name='=HYPERLINK("http://x")')
    made = sizings.sizing(sizings.rank_budget(device=device))
    (name,) = {row["device"] for row in csv.DictReader(StringIO(csv_text(made)))}
    assert name == '\'=HYPERLINK("http://x")'


@pytest.mark.parametrize("name", ["plan", "plan.docx", "plan.", "pdf"])
def test_that_a_name_that_is_no_reports_is_told_what_is(name: str) -> None:
    with pytest.raises(UsageError, match=r"\.pdf, \.html, \.md, \.csv, \.json"):
        files.kind_of(Path(name))


def test_that_an_older_report_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    document = compose(sizings.sizing(), LIMITS, ABOUT)
    texts = {
        "a.html": files.text(files.Kind.HTML, document),
        "a.md": files.text(files.Kind.MARKDOWN, document),
        "a.csv": csv_text(sizings.sizing()),
        "a.pdf": "%PDF-1.4 an older one",
    }
    for name, text in texts.items():
        path = tmp_path / name
        assert files.may_be_replaced(path)
        path.write_text("somebody's own")
        assert not files.may_be_replaced(path)
        files.write(path, text.encode())
        assert files.may_be_replaced(path)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(texts)


def test_that_a_page_breaks_paths_and_never_words() -> None:
    path = "org/" + "a" * 60
    rows = ((Cell("Allocator slack"), Cell(path), Cell("a sentence of several words")),)
    columns = (Column("A", 1), Column("B", 1), Column("C", 1))
    text = files.text(files.Kind.HTML, replace(_hostile(), blocks=(Table(columns, rows),)))
    assert '<th scope="row" class="short">Allocator slack</th>' in text
    assert f'<td class="long">{path}</td>' in text
    assert "<td>a sentence of several words</td>" in text
    assert ".short{white-space:nowrap}" in text


def test_that_the_hatch_of_a_map_is_one_shape() -> None:
    """A browser writes a hatch into its PDF once a shape: 45 MB where there were hundreds."""
    plan = Deployment(max_model_len=8192, concurrency=4)
    document = compose(*real(plan), replace(ABOUT, plan=plan))
    assert len(document.blocks) > 20
    assert files.text(files.Kind.HTML, document).count('fill="url(#over)"') == 1
