"""The PDF: real text, embedded fonts, both paper sizes, nothing clipped, nothing silently lost."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING

import pytest
from pypdf import PdfReader
from pypdf.generic import Destination
from PySide6.QtGui import QFont

from engine.architecture.read import read
from engine.deployment.spec import Deployment
from engine.devices import catalogue
from engine.errors import PlimsollError, UsageError
from engine.fit.solve import Limits
from engine.report.compared import Compared
from engine.report.compose import About, compose
from engine.report.document import (
    Align,
    Bullets,
    Cell,
    Column,
    Command,
    Facts,
    Formula,
    Heading,
    Paragraph,
    ReportDocument,
    Table,
    Tone,
)
from engine.sizing import size
from engine.source.raw import RawModel
from engine.telemetry.snapshot import DeviceReading, PoolKind, TelemetrySnapshot
from engine.words import choose
from gui.report.pdf import write_pdf
from gui.report.sheet import shown
from tests.helpers import sizings
from tests.helpers.sizings import gib
from tests.unit.report.test_compose import LLAMA

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pypdf.generic import DictionaryObject

    from engine.sizing import Sizing

pytestmark = pytest.mark.usefixtures("qapp")

ABOUT = About(on=date(2026, 11, 29), version="0.1.0")
LIMITS = Limits(max_context=10_880, max_concurrency=5, best_weight_format="bf16")
POINTS = {"A4": (595, 842), "Letter": (612, 792)}


def _written(document: ReportDocument, path: Path, page: str = "A4") -> PdfReader:
    write_pdf(document, path, page)
    return PdfReader(path)


def _report(path: Path, sizing: Sizing | None = None, page: str = "A4") -> PdfReader:
    return _written(compose(sizing or sizings.sizing(), LIMITS, ABOUT, _run()), path, page)


def _run() -> list[TelemetrySnapshot]:
    return [
        TelemetrySnapshot(
            float(second),
            1_764_413_520.0 + second,
            (
                DeviceReading(
                    "GPU-0",
                    "RTX 4090",
                    PoolKind.VRAM,
                    sizings.RTX_4090_TOTAL,
                    gib(min(0.41 + second / 5, 23.24)),
                    gib(0.4),
                    0,
                    (),
                    "NVML 580.126",
                ),
            ),
        )
        for second in range(301)
    ]


def _text(reader: PdfReader) -> str:
    return "\n".join(page.extract_text() for page in reader.pages)


def _words(path: Path, page: int | None = None) -> list[tuple[float, float, float, float, str]]:
    """Left, top, right, bottom in points, and each word: of one page, or of all."""
    program = shutil.which("pdftotext")
    if program is None:
        pytest.skip("poppler's pdftotext is not installed")
    pages = [] if page is None else ["-f", str(page), "-l", str(page)]
    made = subprocess.run([program, "-bbox", *pages, path, "-"], capture_output=True, check=True)
    found = re.findall(
        r'xMin="([\d.]+)" yMin="([\d.]+)" xMax="([\d.]+)" yMax="([\d.]+)">(.*?)<',
        made.stdout.decode(),
    )
    return [(float(a), float(b), float(c), float(d), text) for a, b, c, d, text in found]


def _document(*blocks: object) -> ReportDocument:
    made = compose(sizings.sizing(), LIMITS, ABOUT)
    return replace(made, blocks=blocks)


@pytest.mark.parametrize("page", POINTS)
def test_that_each_paper_has_its_size(page: str, tmp_path: Path) -> None:
    reader = _report(tmp_path / "report.pdf", page=page)
    for sheet in reader.pages:
        size = (round(float(sheet.mediabox.width)), round(float(sheet.mediabox.height)))
        assert size == POINTS[page]


@pytest.mark.parametrize("ranks", [1, 4, 8])
@pytest.mark.parametrize("page", POINTS)
def test_that_no_word_leaves_the_margins(page: str, ranks: int, tmp_path: Path) -> None:
    path = tmp_path / "report.pdf"
    _report(path, sizings.many_ranks(ranks), page)
    margin, foot = 40, 18
    width, height = POINTS[page]
    words = _words(path)
    assert len(words) > 200
    outside = [
        word
        for left, top, right, bottom, word in words
        if left < margin or right > width - margin or top < margin - 8 or bottom > height - foot
    ]
    assert not outside


def test_that_the_first_page_says_verdict_plan_and_regions(tmp_path: Path) -> None:
    reader = _report(tmp_path / "report.pdf")
    text = reader.pages[0].extract_text()
    for words in (
        "Memory sizing report, 29 November 2026",
        "meta-llama/Llama-3.1-8B-Instruct on RTX 4090, vLLM 0.33.0",
        "Fits, with 1.3 GiB to spare",
        "0.92 of 23.64 GiB",
        "10,880 tokens",
        "Predicted memory and the measured run",
        "Load line: 23.64 GiB",
        "14.99",
        "4.12 – 5.89",
        "CUDA context 0.36, workspaces 0.14",
        f"1 of {len(reader.pages)}",
        "Model revision 0e9e39f249a1",
        "1 GiB = 1,073,741,824 bytes",
    ):
        assert words in text, words


def test_that_a_search_finds_words_that_fonts_like_to_join(tmp_path: Path) -> None:
    document = _document(Paragraph("It fits; the office finds five offers in the file."))
    text = _text(_written(document, tmp_path / "a.pdf"))
    assert "the office finds five offers in the file" in text.replace("\n", " ")


def test_that_every_font_is_embedded_and_the_text_is_ours(tmp_path: Path) -> None:
    reader = _report(tmp_path / "report.pdf")
    names: set[str] = set()
    for page in reader.pages:
        for font in page["/Resources"]["/Font"].values():
            made: DictionaryObject = font.get_object()
            inner = made["/DescendantFonts"][0].get_object()
            descriptor = inner["/FontDescriptor"].get_object()
            assert "/FontFile2" in descriptor or "/FontFile3" in descriptor
            names.add(str(made["/BaseFont"]).split("+")[-1].removeprefix("/"))
    assert any(name.startswith("Inter") for name in names)
    assert any(name.startswith("JetBrainsMono") for name in names)


def test_that_the_picture_is_lines_and_not_a_bitmap(tmp_path: Path) -> None:
    reader = _report(tmp_path / "report.pdf")
    assert not any(page.images for page in reader.pages)


def test_that_title_author_and_creator_are_in_the_file(tmp_path: Path) -> None:
    found = _report(tmp_path / "report.pdf").metadata
    assert found is not None
    assert found.title == "Memory sizing: meta-llama/Llama-3.1-8B-Instruct on RTX 4090"
    assert found.creator == "Plimsoll 0.1.0"
    assert found.author == "Plimsoll"


def test_that_the_same_document_gives_the_same_text(tmp_path: Path) -> None:
    one = _text(_report(tmp_path / "one.pdf"))
    assert one == _text(_report(tmp_path / "two.pdf"))


def test_that_every_page_carries_its_number_of_how_many(tmp_path: Path) -> None:
    reader = _report(tmp_path / "report.pdf", sizings.many_ranks(4))
    assert len(reader.pages) > 2
    for number, page in enumerate(reader.pages, 1):
        assert f"{number} of {len(reader.pages)}" in page.extract_text()


def test_that_a_long_table_repeats_its_heading_on_each_page(tmp_path: Path) -> None:
    rows = tuple((Cell(f"row {n}"), Cell(f"{n}")) for n in range(120))
    table = Table((Column("What it is called", 3), Column("How much", 1)), rows)
    reader = _written(_document(Heading("Many"), table), tmp_path / "long.pdf")
    assert len(reader.pages) > 2
    text = _text(reader)
    assert all(f"row {n}" in text for n in range(120))
    for page in reader.pages:
        assert "What it is called" in page.extract_text()


def test_that_a_name_longer_than_a_line_wraps_and_is_all_there(tmp_path: Path) -> None:
    name = "x" * 150 + "THEMIDDLE" + "y" * 150
    text = _text(_written(_document(Paragraph(name)), tmp_path / "name.pdf"))
    assert name in text.replace("\n", "")


def test_that_a_command_is_broken_between_its_words_only(tmp_path: Path) -> None:
    words = " ".join(f"--option-number-{n} {n}" for n in range(20))
    text = _text(_written(_document(Command(words)), tmp_path / "command.pdf"))
    assert words in text.replace("\n", " ")


def test_that_a_character_no_font_has_is_shown_by_its_number(tmp_path: Path) -> None:
    font = QFont("Inter")
    # The last character of the last private plane: assigned by nobody, drawn by no font.
    assert shown("a\U0010fffdb", font) == "a[U+10FFFD]b"
    text = _text(_written(_document(Bullets(("a\U0010fffdb",))), tmp_path / "odd.pdf"))
    assert "a[U+10FFFD]b" in text


def test_that_a_report_that_cannot_be_written_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(PlimsollError, match="could not be written"):
        write_pdf(_document(), tmp_path / "missing" / "report.pdf")
    assert not list(tmp_path.iterdir())


def test_that_an_unknown_paper_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'A5' is no page size"):
        write_pdf(_document(), tmp_path / "report.pdf", "A5")


@pytest.mark.parametrize("count", [2, 5, 16])
def test_that_any_number_of_ranks_is_reported(count: int, tmp_path: Path) -> None:
    text = _text(_report(tmp_path / "ranks.pdf", sizings.many_ranks(count)))
    assert "Every rank" in text
    assert count == 2 or f"Ranks 1 to {count - 1}: regions" in text


@pytest.mark.parametrize("page", POINTS)
def test_that_the_first_page_stands_alone_in_german_too(page: str, tmp_path: Path) -> None:
    choose("de")
    try:
        made = compose(sizings.sizing(), LIMITS, ABOUT, _run())
        first = _written(made, tmp_path / "a.pdf", page).pages[0].extract_text()
    finally:
        choose("en")
    assert "Was die Antwort ändern würde" in first
    assert "Annahmen" not in first


@pytest.mark.parametrize("page", POINTS)
def test_that_the_first_page_stands_alone(page: str, tmp_path: Path) -> None:
    first, second, *_ = (p.extract_text() for p in _report(tmp_path / "a.pdf", page=page).pages)
    assert "What would change the answer" in first
    assert "Assumptions" not in first
    assert "Ranks and phases" in second


def _titles(outline: list[object], reader: PdfReader) -> list[tuple[int, str, int]]:
    """Depth, title and page of each bookmark."""

    def walk(items: list[object], depth: int) -> Iterator[tuple[int, str, int]]:
        for item in items:
            if isinstance(item, list):
                yield from walk(item, depth + 1)
            else:
                assert isinstance(item, Destination)
                yield depth, str(item.title), reader.get_destination_page_number(item) or 0

    return list(walk(outline, 0))


@pytest.mark.parametrize("page", POINTS)
def test_that_each_heading_is_a_bookmark_on_its_page(page: str, tmp_path: Path) -> None:
    made = compose(sizings.many_ranks(4), LIMITS, ABOUT, _run())
    reader = _written(made, tmp_path / "report.pdf", page)
    found = _titles(reader.outline, reader)
    headings = [b for b in made.blocks if isinstance(b, Heading)]
    depths = [0 if heading.is_part else 1 for heading in headings]
    titles = [heading.text for heading in headings]
    # A part may stand before the one that is said before it, where that has no room yet.
    expected = [(0, made.headline), *zip(depths, titles, strict=True)]
    assert sorted((d, t) for d, t, _ in found) == sorted(expected)
    assert [number for *_, number in found] == sorted(number for *_, number in found)
    for _, title, number in found:
        words = reader.pages[number].extract_text().replace("\n", " ")
        assert title in words, title
    catalogue = reader.root_object
    assert (catalogue["/PageMode"], catalogue["/Lang"]) == ("/UseOutlines", "en")


def test_that_a_bookmark_says_every_letter(tmp_path: Path) -> None:
    title = "Größe (“半”) \\ ]> 🜚"
    reader = _written(_document(Heading(title, is_part=True)), tmp_path / "odd.pdf")
    assert [t for _, t, _ in _titles(reader.outline, reader)][1] == title


def test_that_no_heading_is_the_last_of_its_page(tmp_path: Path) -> None:
    made = compose(sizings.many_ranks(4), LIMITS, ABOUT, _run())
    headings = {b.text for b in made.blocks if isinstance(b, Heading)}
    for page in _written(made, tmp_path / "report.pdf").pages:
        lines = page.extract_text().splitlines()
        # The foot comes after the text: a date and a number of a page are drawn first.
        assert lines[-1] not in headings


def test_that_a_map_on_paper_is_vectors_with_its_words(tmp_path: Path) -> None:
    reader = _written(_mapped(), tmp_path / "map.pdf")
    text = _text(reader)
    for words in ("Requests at once", "Context, tokens per request", "Limit of this plan"):
        assert words in text
    assert "8,192 × 4: 1.5 GiB to spare" in text
    assert not any(page.images for page in reader.pages)


def test_that_six_compared_plans_are_small_and_all_there(tmp_path: Path) -> None:
    path = tmp_path / "six.pdf"
    text = _text(_written(_mapped(6), path))
    assert path.stat().st_size < 1_000_000
    assert all(f"plan number {n}" in text for n in range(6))


def _mapped(compared: int = 0) -> ReportDocument:
    """A report on a real model."""
    plan = Deployment(max_model_len=8192, concurrency=4)
    model = read(RawModel(id="meta/llama", source="config.json", config=LLAMA))
    made = size(model, plan, catalogue.machine(catalogue.find("RTX 4090")))
    plans = tuple(Compared(f"plan number {n}", made, limits=LIMITS) for n in range(compared))
    return compose(made, LIMITS, replace(ABOUT, plan=plan, compared=plans))


@pytest.mark.parametrize("lines", range(30, 60, 2))
def test_that_a_short_list_stays_whole_with_its_heading(lines: int, tmp_path: Path) -> None:
    items = tuple(f"item {n} {'word ' * 25}" for n in range(4))
    before = [Paragraph(f"line {n}") for n in range(lines)]
    document = _document(*before, Heading("Kept"), Bullets(items))
    pages = [p.extract_text() for p in _written(document, tmp_path / "report.pdf").pages]
    whole = [page for page in pages if "Kept" in page]
    assert len(whole) == 1
    assert all(f"item {n}" in whole[0] for n in range(4))


def test_that_a_short_word_is_never_broken(tmp_path: Path) -> None:
    columns = (Column("Basis", 1), Column("Why", 9))
    rows = ((Cell("Angenommen"), Cell("word " * 60)), (Cell("a" * 90), Cell("word")))
    text = _text(_written(_document(Table(columns, rows)), tmp_path / "words.pdf"))
    assert "Angenommen" in text


def test_that_a_long_name_of_a_fact_stands_over_its_value(tmp_path: Path) -> None:
    program = shutil.which("pdftotext")
    if program is None:
        pytest.skip("poppler's pdftotext is not installed")
    pairs = (("Höchstens gleichzeitig, je 8.192 und mehr", "Fünf"), ("Kurz", "Sechs"))
    path = tmp_path / "facts.pdf"
    _written(_document(Facts(pairs)), path)
    made = subprocess.run([program, "-bbox", path, "-"], capture_output=True, check=True)
    places = re.findall(
        r'yMin="([\d.]+)" xMax="[\d.]+" yMax="([\d.]+)">(.*?)<', made.stdout.decode()
    )
    edges = {word: (float(top), float(bottom)) for top, bottom, word in places}
    assert edges["mehr"][1] <= edges["Fünf"][0] + 1
    assert edges["Fünf"] == edges["Sechs"]


@pytest.mark.parametrize("page", POINTS)
@pytest.mark.parametrize("ranks", [1, 4, 8])
def test_that_the_picture_takes_the_room_that_its_page_has(
    page: str, ranks: int, tmp_path: Path
) -> None:
    path = tmp_path / "report.pdf"
    _report(path, sizings.many_ranks(ranks), page)
    foot = POINTS[page][1] - 51  # what stands there is 68 pixels high, at 96 an inch
    lowest = max(bottom for *_, bottom, _ in _words(path, 1) if bottom < foot)
    assert foot - lowest < 60  # no more than a heading and a row of a table


def test_that_a_figure_stays_on_one_line_with_its_unit(tmp_path: Path) -> None:
    path = tmp_path / "report.pdf"
    formulas = (Formula("Weights", "1,131.45 GiB", "1 × 2", "read"),) * 2
    _written(_document(*formulas), path)
    tops = {text: top for _, top, _, _, text in _words(path, 1) if top < 700}
    assert tops["1,131.45"] == tops["GiB"]


def test_that_figures_end_where_their_table_ends(tmp_path: Path) -> None:
    path = tmp_path / "report.pdf"
    columns = Column("Name", 1.0), Column("GiB", 1.0, Align.RIGHT)
    _written(_document(Table(columns, ((Cell("one"), Cell("12,345.67")),))), path)
    (right,) = (right for _, _, right, _, text in _words(path, 1) if text == "12,345.67")
    assert right == pytest.approx(595 - 42, abs=1)  # margins of 56 pixels, at 96 an inch


@pytest.mark.parametrize("lines", range(36, 60, 3))
def test_that_a_sentence_between_heading_and_table_stays_with_both(
    lines: int, tmp_path: Path
) -> None:
    table = Table((Column("Name", 1.0),), tuple((Cell(f"row {n}"),) for n in range(5)))
    before = [Paragraph(f"line {n}") for n in range(lines)]
    blocks = Heading("Part", is_part=True), Paragraph("A sentence."), Heading("Kept"), table
    reader = _written(_document(*before, *blocks), tmp_path / "report.pdf")
    (page,) = (text for p in reader.pages if "A sentence." in (text := p.extract_text()))
    assert all(word in page for word in ("Part", "Kept", "row 0", "row 4"))


@pytest.mark.parametrize("word", ["Modelliert", "Angenommen", "Einstellung", "Verschnitt"])
@pytest.mark.parametrize("page", POINTS)
def test_that_a_column_as_wide_as_its_word_does_not_break_it(
    page: str, word: str, tmp_path: Path
) -> None:
    columns = Column("", 0.3), Column("A", 1.2, tone=Tone.STRONG), Column("Why", 8.0)
    rows = (Cell("1"), Cell(word), Cell("word " * 30)), (Cell("2"), Cell("x"), Cell("word"))
    path = tmp_path / "report.pdf"
    _written(_document(Table(columns, rows)), path, page)
    assert word in {text for *_, text in _words(path, 1)}


@pytest.mark.parametrize("page", POINTS)
@pytest.mark.parametrize("weights", ["auto", "fp8"])
def test_that_no_page_but_the_last_is_left_half_empty(
    page: str, weights: str, tmp_path: Path
) -> None:
    plan = Deployment(max_model_len=8192, concurrency=4, weight_format=weights)
    model = read(RawModel(id="meta/llama", source="config.json", config=LLAMA))
    made = size(model, plan, catalogue.machine(catalogue.find("RTX 4090")))
    path = tmp_path / "report.pdf"
    reader = _written(compose(made, LIMITS, replace(ABOUT, plan=plan)), path, page)
    foot = POINTS[page][1] - 51
    for number in range(1, len(reader.pages)):
        lowest = max(bottom for *_, bottom, _ in _words(path, number) if bottom < foot)
        assert lowest > 0.8 * foot, number
