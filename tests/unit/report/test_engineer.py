"""The engineer’s pages: each part says what the engine works out; none is empty."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import Path

import pytest

from engine.architecture.read import read
from engine.deployment.spec import Deployment
from engine.devices import catalogue
from engine.fit.solve import limits
from engine.report.compared import Compared
from engine.report.compose import About, compose
from engine.report.document import (
    BarsFigure,
    Block,
    Heading,
    MapFigure,
    ReportDocument,
    Table,
)
from engine.sizing import size
from engine.source.raw import RawModel
from engine.units import GIB, UnitSystem
from tests.helpers import sizings
from tests.unit.report.test_compose import ABOUT, LIMITS, LLAMA
from tests.unit.report.test_compose import _real as real
from tests.unit.report.test_compose import _run as run
from tests.unit.report.test_compose import _tables as tables

ROOT = Path(__file__).resolve().parents[3]
PLAN = Deployment(max_model_len=8192, concurrency=4)


def _below(document: ReportDocument, part: str) -> list[Block]:
    """All blocks of a part."""
    made: list[Block] = []
    is_in = False
    for block in document.blocks:
        if isinstance(block, Heading) and block.is_part:
            is_in = block.text == part
        elif is_in:
            made.append(block)
    return made


def _rows(block: Block) -> dict[str, list[str]]:
    assert isinstance(block, Table)
    return {row[0].text: [cell.text for cell in row[1:]] for row in block.rows}


def test_that_the_parts_stand_in_the_order_of_an_engineers_questions() -> None:
    document = compose(*real(PLAN), About(on=ABOUT.on, plan=PLAN))
    parts = [b.text for b in document.blocks if isinstance(b, Heading) and b.is_part]
    assert parts == [
        "Assumptions",
        "Ranks and phases",
        "How the figures are worked out",
        "Needed, and held in reserve",
        "How far the plan goes",
        "Other choices",
        "Start it",
        "Words",
        "What the figures hold for",
    ]
    measured = compose(sizings.sizing(), LIMITS, ABOUT, run()).blocks
    assert "Measured" in [b.text for b in measured if isinstance(b, Heading) and b.is_part]


def test_that_no_part_is_empty() -> None:
    for document in (compose(*real(PLAN), ABOUT), compose(sizings.unified(), LIMITS, ABOUT)):
        for heading, then in itertools.pairwise(document.blocks):
            if isinstance(heading, Heading):
                assert not (isinstance(then, Heading) and then.is_part), heading.text
        assert not isinstance(document.blocks[-1], Heading)


def test_that_every_region_that_holds_anything_has_its_source() -> None:
    table = next(t for t in tables(compose(*real(PLAN), ABOUT)) if t.columns[-1].title == "Source")
    rows = {row[0].text: [cell.text for cell in row] for row in table.rows}
    assert "Recurrent state" not in rows
    assert rows["Weights"][4].startswith("tensor shapes of the config, stored as BF16")
    assert all(row[4] for row in rows.values())


def test_that_the_reserve_is_what_is_held_beyond_the_least_and_says_why() -> None:
    (_, table) = _below(compose(*real(PLAN), ABOUT), "Needed, and held in reserve")
    rows = _rows(table)
    # 16,060,522,496 B of tensors and 131,072 positions × 128 × 2 B of a rotary table beside them.
    assert rows["Weights"] == [
        f"{16_060_522_496 / GIB:.2f}",
        f"{(16_060_522_496 + 131_072 * 256) / GIB:.2f}",
        "0.03",
        "0.03 GiB more than the tensors: rotary table, small buffers.",
    ]
    # Four sequences of 8,192 tokens of 131,072 B: 4 GiB.
    assert rows["KV cache"][0] == "4.00"
    assert "whole rest of its share" in rows["KV cache"][3]
    assert "Headroom" not in rows
    assert isinstance(table, Table)
    least, held, more = (cell.value_bytes or 0 for cell in table.total[1:4])
    assert held - least == more > 0


def test_that_the_map_says_in_figures_where_the_plan_lies() -> None:
    blocks = _below(compose(*real(PLAN), About(on=ABOUT.on, plan=PLAN)), "How far the plan goes")
    figure, _, table = blocks
    assert isinstance(figure, MapFigure)
    assert (figure.context, figure.requests) == (8192, 4)
    assert figure.caption.startswith("Figure 2. ")
    margin = size(real(PLAN)[0].budget.model, PLAN, real(PLAN)[0].budget.machine).verdict
    shown = f"{margin.margin_bytes / GIB:.1f}"
    assert f"8,192 × 4: {shown} GiB to spare" in figure.spoken
    rows = _rows(table)
    assert isinstance(table, Table)
    heads = [column.title for column in table.columns[1:]]
    assert rows["4"][heads.index("8,192")] == f"+{shown}"
    # Twice the tokens in both ways is the same cache.
    assert rows["8"][heads.index("4,096")] == f"+{shown}"
    assert rows["64"][heads.index("131,072")].startswith("−1,018")


def test_that_other_formats_and_devices_are_sized_by_the_engine() -> None:
    sizing, found = real(PLAN)
    blocks = _below(compose(sizing, found, About(on=ABOUT.on, plan=PLAN)), "Other choices")
    weights, caches, devices = (_rows(b) for b in blocks if isinstance(b, Table))
    model, machine = sizing.budget.model, sizing.budget.machine
    for rows, name, other in (
        (weights, "FP8, one scale per tensor", PLAN.with_(weight_format="fp8")),
        (caches, "FP8", PLAN.with_(kv_cache_dtype="fp8")),
    ):
        expected = size(model, other, machine).verdict.margin_bytes / GIB
        assert rows[name][4] == f"{expected:.1f} GiB to spare"
        assert rows[name][5] == f"{limits(model, other, machine).max_context:,}"
    # Half the bits, half the cache: 2 GiB.
    assert caches["FP8"][1] == "2.00"
    assert next(iter(devices)) == "RTX 4090"
    lines = [float(row[3]) for row in list(devices.values())[1:]]
    assert lines == sorted(lines)
    over = [row[4].endswith("over") for row in devices.values()]
    assert any(over)
    assert not all(over)


def test_that_each_choice_adds_up_to_its_load_line() -> None:
    document = compose(*real(PLAN), About(on=ABOUT.on, plan=PLAN))
    for table in (b for b in _below(document, "Other choices") if isinstance(b, Table)):
        for name, weights, cache, rest, line, then, _ in table.rows:
            assert line.value_bytes == sum(
                cell.value_bytes or 0 for cell in (weights, cache, rest, then)
            ), name.text
            assert (rest.value_bytes or 0) > 0


def test_that_a_quantised_cache_stands_once_in_its_own_words() -> None:
    plan = Deployment(runtime="mlx", max_model_len=8192, kv_bits=8)
    document = compose(*real(plan, "M3 Max 64GB"), About(on=ABOUT.on, plan=plan))
    caches = [b for b in _below(document, "Other choices") if isinstance(b, Table)][1]
    assert list(_rows(caches)) == ["8 bit", "4 bit"]


def test_that_the_stored_format_has_one_line_when_it_is_chosen() -> None:
    plan = PLAN.with_(weight_format="bf16")
    document = compose(*real(plan), About(on=ABOUT.on, plan=plan))
    weights = next(b for b in _below(document, "Other choices") if isinstance(b, Table))
    assert list(_rows(weights)) == ["BF16", "FP8, one scale per tensor", "AWQ 4 bit, g128"]


def test_that_a_plan_on_several_devices_is_compared_on_as_many() -> None:
    plan = Deployment(max_model_len=8192, tensor_parallel_size=2)
    document = compose(*real(plan, count=2), About(on=ABOUT.on, plan=plan))
    *_, devices = (b for b in _below(document, "Other choices") if isinstance(b, Table))
    assert all(name.startswith("2 × ") for name in _rows(devices))


def test_that_the_words_are_those_that_the_report_uses() -> None:
    (table,) = _below(compose(*real(PLAN), ABOUT), "Words")
    rows = _rows(table)
    assert rows["Load line"] == ["What a runtime can really allocate on the device."]
    assert {"Weights", "KV cache", "Pool", "GiB, MiB"} <= rows.keys()
    assert not {"Recurrent state", "Rank", "GB, MB"} & rows.keys()


def test_that_the_last_part_says_what_the_figures_hold_for() -> None:
    made = sizings.sizing()
    (table,) = _below(compose(made, LIMITS, ABOUT), "What the figures hold for")
    rows = {name: value for name, (value,) in _rows(table).items()}
    assert rows["Model revision"] == made.budget.model.revision
    assert rows["Runtime"] == "vLLM"
    assert rows["Runtime version"] == "0.33.0"
    unstated = compose(*real(PLAN), About(on=ABOUT.on, plan=PLAN))
    (table,) = _below(unstated, "What the figures hold for")
    assert _rows(table)["Runtime version"] == [
        "0.33.0: none was stated, so the newest whose rules are known"
    ]
    assert _rows(table)["Model revision"] == ["not stated by the source"]
    assert rows["Kernel"] == "the runtime’s own choice"
    assert rows["Plimsoll"] == "0.1.0"
    assert rows["Date"] == "29 November 2026"
    page = (ROOT / "docs" / "accuracy.md").read_text()
    # | vLLM | 121 | 461 | 0.003 GiB | 0.33 GiB | 98.3 % | …
    cells = [c.strip() for c in re.search(r"\| vLLM \|(.*)", page)[1].split("|")]  # type: ignore[index]
    assert rows["Accuracy"].startswith(f"{cells[1]} regions of {cells[0]} measured starts: ")
    assert f"off by {cells[2]} in the middle case" in rows["Accuracy"]
    assert f"{cells[3]} in 95 of 100; {cells[4]} inside" in rows["Accuracy"]


@pytest.mark.parametrize(
    ("settings", "kernel"),
    [
        ({"attn_implementation": "sdpa", "runtime": "transformers"}, "sdpa"),
        ({"flash_attn": True, "runtime": "llama.cpp"}, "flash-attn on"),
    ],
)
def test_that_a_kernel_that_was_chosen_is_named(settings: dict[str, object], kernel: str) -> None:
    plan = Deployment(max_model_len=8192).with_(**settings)
    (table,) = _below(compose(*real(plan), ABOUT), "What the figures hold for")
    assert _rows(table)["Kernel"] == [kernel]


def test_that_compared_plans_stand_side_by_side() -> None:
    pair = [real(PLAN, gpu) for gpu in ("RTX 4090", "H100 SXM 80GB")]
    plans = (
        Compared("on a card", pair[0][0], limits=pair[0][1]),
        Compared("on a large one", pair[1][0], limits=pair[1][1]),
        Compared("impossible", None, "There is no such device."),
    )
    document = compose(*pair[0], About(on=ABOUT.on, plan=PLAN, compared=plans))
    figure, verdicts, _, sizes = _below(document, "Plans side by side")
    assert isinstance(figure, BarsFigure)
    assert [letter for letter, _ in figure.bars] == ["A", "B"]
    rows = _rows(verdicts)
    assert rows["A"] == [
        "on a card",
        pair[0][0].verdict.headline,
        f"{pair[0][1].max_context:,}",
        f"{pair[0][1].max_concurrency:,}",
    ]
    assert rows["C"] == ["impossible", "There is no such device.", "–", "–"]
    assert isinstance(sizes, Table)
    assert _rows(sizes)["Weights"] == ["14.99", "14.99"]
    lines = [s.budget.ranks[0].slot.device.allocatable.likely_bytes for s, _ in pair]
    assert [cell.value_bytes for cell in sizes.total[1:]] == lines


def test_that_a_plan_that_no_change_saves_is_shown_where_it_would_fit() -> None:
    # Llama-3.1-70B in BF16: 131.4 GiB, 10 GiB of cache, 2 to 3 of vLLM's own. Of four 4090s each
    # would hold 32.9 GiB, of eight 16.4; of an H200's 139.8 GiB vLLM takes 128.6, of a B200's
    # 178.4 it takes 164.1, of an MI300X's 192.0 it takes 176.6.
    config = LLAMA | {
        "hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80,
        "num_attention_heads": 64,
    }  # fmt: skip
    model = read(RawModel(id="70B", source="config.json", config=config))
    machine = catalogue.machine(catalogue.find("RTX 4090"), 1)
    document = compose(
        size(model, PLAN, machine), limits(model, PLAN, machine), About(on=ABOUT.on, plan=PLAN)
    )
    table = next(
        then
        for heading, then in itertools.pairwise(document.blocks)
        if isinstance(heading, Heading) and heading.text == "What would fit"
    )
    rows = _rows(table)
    assert list(rows) == ["8 × RTX 4090, TP 8", "B200", "MI300X"]
    assert all(then.endswith("to spare") for then, _ in rows.values())


def test_that_compared_plans_are_judged_in_the_unit_of_the_report() -> None:
    made, found = real(PLAN)
    plans = (Compared("one", made, limits=found), Compared("other", None, "it has no room"))
    about = replace(ABOUT, compared=plans, unit=UnitSystem.DECIMAL)
    blocks = _below(compose(made, found, about), "Plans side by side")
    verdicts = next(b for b in blocks if isinstance(b, Table))
    margin = made.verdict.margin_bytes / 1e9
    assert [row[2].text for row in verdicts.rows] == [
        f"Fits, with {margin:.1f} GB to spare", "it has no room",
    ]  # fmt: skip
