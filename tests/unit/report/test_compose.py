"""A report says what was sized, how it is known, and what would change it; always the same."""

from __future__ import annotations

import itertools
import shutil
import subprocess
from dataclasses import replace
from datetime import date

import pytest

from engine.architecture.read import read
from engine.budget.model import Region
from engine.deployment.spec import Deployment
from engine.devices import catalogue
from engine.devices.corrected import Correction, corrected
from engine.fit.solve import Limits, limits
from engine.report.compose import About, compose
from engine.report.document import (
    Block,
    Bullets,
    Command,
    Facts,
    Figure,
    Formula,
    Heading,
    Paragraph,
    ReportDocument,
    Table,
)
from engine.sizing import Sizing, size
from engine.source.raw import RawModel
from engine.telemetry.snapshot import DeviceReading, Missing, PoolKind, TelemetrySnapshot
from engine.units import GIB, UnitSystem
from tests.helpers import sizings
from tests.helpers.sizings import gib

ABOUT = About(on=date(2026, 11, 29), version="0.1.0")
LIMITS = Limits(max_context=10_880, max_concurrency=5, best_weight_format="bf16")
# Llama-3.1-8B: 8,030,261,248 parameters, 131,072 bytes of KV cache a token.
LLAMA = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16",
    "tie_word_embeddings": False,
}


def _real(plan: Deployment, gpu: str = "RTX 4090", count: int = 1) -> tuple[Sizing, Limits]:
    model = read(
        RawModel(id="meta-llama/Llama-3.1-8B-Instruct", source="config.json", config=LLAMA)
    )
    machine = catalogue.machine(catalogue.find(gpu), count)
    return size(model, plan, machine), limits(model, plan, machine)


def _texts(document: ReportDocument) -> list[str]:
    made: list[str] = [document.subject, document.headline, document.detail, document.footer]
    for block in document.blocks:
        match block:
            case Facts():
                made += [part for pair in block.pairs for part in pair]
            case Table():
                made += [c.text for row in (*block.rows, block.total) for c in row]
            case Bullets():
                made += block.items
            case Formula():
                made += [block.name, block.value, block.calculation, block.source]
            case Heading():
                made.append(block.text)
            case Figure():
                made.append(block.caption)
            case _:
                pass
    return made


def _tables(document: ReportDocument) -> list[Table]:
    return [b for b in document.blocks if isinstance(b, Table)]


def _after(document: ReportDocument, heading: str) -> Block:
    """What stands below a heading."""
    pairs = itertools.pairwise(document.blocks)
    return next(b for a, b in pairs if isinstance(a, Heading) and a.text == heading)


def _run(
    uuid: str = "GPU-0", name: str = "RTX 4090", total: int | Missing = sizings.RTX_4090_TOTAL
) -> list[TelemetrySnapshot]:
    used = [gib(0.41), gib(15.0), Missing("driver busy"), gib(23.24), gib(23.0)]
    return [
        TelemetrySnapshot(
            500.0 + second,
            1_764_413_520.0 + second,
            (
                DeviceReading(
                    uuid,
                    name,
                    PoolKind.VRAM,
                    total,
                    size_bytes,
                    gib(1),
                    0,
                    (),
                    "NVML 580.126",
                ),
            ),
        )
        for second, size_bytes in enumerate(used)
    ]


def test_that_the_same_inputs_give_the_same_text() -> None:
    one, other = (
        _texts(compose(*_real(Deployment(max_model_len=8192, concurrency=4)), ABOUT))
        for _ in range(2)
    )
    assert one == other


def test_that_every_region_stands_in_the_table_with_range_basis_and_how() -> None:
    rows = _tables(compose(sizings.sizing(), LIMITS, ABOUT))[0].rows
    cells = {row[0].text: [c.text for c in row[1:]] for row in rows}
    assert cells["Weights"][:4] == ["14.99", "exact", "14.96", "Read"]
    assert cells["KV cache"][:4] == ["5.32", "4.12 – 5.89", "4.00", "Exact"]
    assert cells["CUDA graphs"][1] == "0.28 – 1.75"
    assert cells["Recurrent state"][0] == "–"
    assert cells["Recurrent state"][4] == "This model keeps none"


def test_that_the_peak_of_every_phase_stands_with_what_drives_it() -> None:
    document = compose(sizings.sizing(), LIMITS, ABOUT)
    found = next(t for t in _tables(document) if t.columns[0].title == "Phase")
    cells = {row[0].text: [c.text for c in row[1:]] for row in found.rows}
    # By hand: others, weights and runtime; then everything but the headroom.
    assert cells["Load"][0] == "15.90"  # 0.41 + 14.99 + 0.50
    assert cells["Prefill"][0] == cells["Sustained"][0] == "22.83"
    assert "14.99 GiB of weights" in cells["Load"][3]
    assert "2,048 tokens a step" in cells["Prefill"][3]
    # A sum is as sure as the least sure of its parts.
    assert {row[2] for row in cells.values()} == {"Fitted"}


def test_that_a_cell_keeps_the_exact_bytes_behind_its_text() -> None:
    rows = _tables(compose(sizings.sizing(), LIMITS, ABOUT))[0].rows
    assert rows[0][1].value_bytes == gib(14.99)


def test_that_the_table_agrees_with_the_picture_when_the_pool_is_too_small() -> None:
    table = _tables(compose(sizings.over_the_line(), LIMITS, ABOUT))[0]
    kv = next(row for row in table.rows if row[0].text == "KV cache")
    assert kv[1].text == "8.00"
    assert kv[5].text == "Needed by the plan; 5.32 GiB are left for it"
    assert table.total[5].text == "2.68 GiB less than the plan’s 26.32"


def test_that_white_space_below_the_line_is_named_free() -> None:
    rows = _tables(compose(sizings.unified(), LIMITS, ABOUT))[0].rows
    free = next(row for row in rows if row[0].text == "Free")
    # 37.44 - 13.85
    assert free[1].text == "23.59"


def test_that_the_worst_case_is_said_beside_the_likely_one() -> None:
    detail = compose(sizings.sizing(), LIMITS, ABOUT).detail
    assert detail.endswith("At worst, with every estimate at its high end, there is 0.1 GiB left.")


def test_that_a_plan_that_fits_is_told_how_far_it_is_from_not() -> None:
    # 0.92 of the card leaves room for 5 requests of 8,192 tokens, and not for 4 of 16,384.
    document = compose(*_real(Deployment(max_model_len=8192, concurrency=4)), ABOUT)
    assert "What would change the answer" in _texts(document)
    rows = {row[0].text: row[1].text for row in _tables(document)[1].rows}
    assert rows["One request more, 5 at once"].endswith("to spare")
    # 4 x 16,384 x 131,072 B = 8.00 GiB, 4.00 more than the plan's.
    assert rows["Context 16,384 instead of 8,192"].endswith("over")
    assert "Every estimate at its high end" in rows


def test_that_a_plan_that_does_not_fit_is_told_what_would() -> None:
    plan = Deployment(max_model_len=32768, concurrency=2)
    document = compose(*_real(plan), About(on=ABOUT.on, plan=plan))
    assert "What would fit" in _texts(document)
    changes = _tables(document)[1].rows
    assert changes
    assert all(row[1].text.endswith("to spare") for row in changes)


def test_that_defaults_are_listed_under_assumptions() -> None:
    texts = _texts(compose(*_real(Deployment(max_model_len=8192)), ABOUT))
    assert "Assumptions" in texts
    assert any("gpu_memory_utilization 0.92" in text for text in texts)


def test_that_formulas_stand_with_their_numbers_and_sources() -> None:
    document = compose(*_real(Deployment(max_model_len=8192, concurrency=4)), ABOUT)
    formulas = {b.name: b for b in document.blocks if isinstance(b, Formula)}
    sequence = formulas["One sequence"]
    assert sequence.calculation == (
        "2 × 32 layers × 8 heads × 128 × 2 B = 131,072 B a token; "
        "× 8,192 tokens = 1,073,741,824 B a sequence"
    )
    assert sequence.source == "One more token takes 131,072 B"
    assert all(f.calculation or f.source for f in formulas.values())
    assert all(f.source for f in formulas.values())


def test_that_the_words_for_the_basis_are_explained_where_they_are_used() -> None:
    blocks = compose(sizings.sizing(), LIMITS, ABOUT).blocks
    said = next(b.text for b in blocks if isinstance(b, Paragraph))
    assert said.startswith("Read: summed from a file header, or read from the device.")
    assert "Setting: what a setting asks for." in said
    assert "Bound" not in said


def test_that_every_rank_is_in_the_tables_and_like_ranks_share_one() -> None:
    texts = _texts(compose(sizings.many_ranks(4), LIMITS, ABOUT))
    assert "Every rank" in texts
    assert "Rank 0, the one that decides" in texts
    assert "Rank 0: regions" in texts
    assert "Ranks 1 to 3: regions" in texts
    assert "Ranks 1 to 3: phases" in texts


def test_that_ranks_that_are_all_alike_are_told_once() -> None:
    plan = Deployment(max_model_len=8192, tensor_parallel_size=2)
    texts = _texts(compose(*_real(plan, count=2), ABOUT))
    assert "Each of the 2 ranks" in texts
    assert not [text for text in texts if text.startswith("Rank 0")]
    assert texts.count("Recurrent state") == 1
    assert texts.count("Ranks 0 and 1: regions") == 1


def test_that_devices_of_two_kinds_are_both_named() -> None:
    subject = compose(sizings.beside_host(), LIMITS, ABOUT).subject
    assert " on RTX 4090 and host RAM, " in subject


def test_that_a_range_too_small_to_show_is_not_called_exact() -> None:
    regions = dict(sizings.VLLM_8B)
    regions[Region.WEIGHTS] = (sizings.estimate(14.990, 14.9899, 14.9901), 14.96, "")
    made = sizings.sizing(sizings.rank_budget(regions=regions))
    rows = _tables(compose(made, LIMITS, ABOUT))[0].rows
    assert rows[0][2].text == "within 0.01"


def test_that_a_recording_is_measured_against_the_plan() -> None:
    document = compose(sizings.sizing(), LIMITS, ABOUT, _run())
    table = next(t for t in _tables(document) if t.columns[1].title == "Samples")
    # 23.64 planned with 0.81 headroom: 22.83 held; 23.24 at most.
    assert [c.text for c in table.rows[0]] == [
        "0",
        "4",
        "0.41",
        "23.24",
        "23.00",
        "22.83",
        "+0.41",
        "NVML 580.126",
    ]
    figure = next(b for b in document.blocks if isinstance(b, Figure))
    assert figure.runs[0].used_bytes[2] is None
    assert figure.caption.endswith("Run of 29 November 2025, 10:52 UTC, 4 samples.")


def test_that_a_recording_of_another_device_is_left_out() -> None:
    document = compose(sizings.sizing(), LIMITS, ABOUT, _run(uuid="GPU-other"))
    figure = next(b for b in document.blocks if isinstance(b, Figure))
    assert not figure.runs


def test_that_a_recording_from_elsewhere_finds_its_device_by_name() -> None:
    made = sizings.sizing(sizings.rank_budget(uuid=""), is_here=False)
    run = _run(uuid="GPU-abc", name="NVIDIA GeForce RTX 4090")
    figure = next(b for b in compose(made, LIMITS, ABOUT, run).blocks if isinstance(b, Figure))
    assert list(figure.runs) == [0]


def test_that_a_device_whose_size_nobody_read_is_taken_for_none_of_the_catalogue() -> None:
    made = sizings.sizing(sizings.rank_budget(uuid=""), is_here=False)
    run = _run(uuid="GPU-abc", name="NVIDIA GeForce RTX 4090", total=Missing("not said"))
    figure = next(b for b in compose(made, LIMITS, ABOUT, run).blocks if isinstance(b, Figure))
    assert not figure.runs


def test_that_an_unknown_answer_states_no_limits() -> None:
    from engine.fit.verdict import Fit

    made = sizings.sizing()
    unknown = replace(made, verdict=replace(made.verdict, fit=Fit.UNKNOWN))
    none_known = Limits(None, None, None)
    facts = next(b for b in compose(unknown, none_known, ABOUT).blocks if isinstance(b, Facts))
    assert dict(facts.pairs)["Longest context, 4 at once"] == "not known"


def test_that_control_characters_of_a_hostile_name_are_escaped() -> None:
    made = sizings.sizing()
    model = replace(made.budget.model, id="evil\u202ename\x1b[31m")
    document = compose(replace(made, budget=replace(made.budget, model=model)), LIMITS, ABOUT)
    assert "\u202e" not in document.title
    assert "evil\\u202ename\\x1b[31m" in document.subject


def test_that_the_command_repeats_the_plan_as_asked() -> None:
    plan = Deployment(max_model_len=8192, concurrency=4, enforce_eager=True)
    document = compose(*_real(plan), About(on=ABOUT.on, plan=plan))
    command = _after(document, "The same in a terminal")
    assert isinstance(command, Command)
    assert command.text == (
        "plimsoll size meta-llama/Llama-3.1-8B-Instruct --runtime vllm --max-model-len 8192 "
        '--concurrency 4 --enforce-eager --gpu "RTX 4090" --gpu-count 1'
    )


def test_that_a_corrected_computer_is_named_as_such_and_told_to_the_terminal() -> None:
    made, limits = _real(Deployment(max_model_len=8192))
    slots = tuple(replace(slot, uuid="gpu") for slot in made.budget.machine.slots)
    here = replace(made.budget.machine, is_here=True, slots=slots)
    machine = corrected(here, [Correction("gpu", allocatable_bytes=20 * GIB)])
    document = compose(replace(made, budget=replace(made.budget, machine=machine)), limits, ABOUT)
    assert "corrected by hand" in document.title + document.subject
    command = _after(document, "The same in a terminal")
    assert isinstance(command, Command)
    assert command.text.endswith('--gpu "RTX 4090" --gpu-total-bytes 21474836480 --gpu-count 1')


@pytest.mark.parametrize(
    ("unit", "weights"), [(UnitSystem.BINARY, "14.99"), (UnitSystem.DECIMAL, "16.10")]
)
def test_that_the_unit_changes_every_figure(unit: UnitSystem, weights: str) -> None:
    assert f"{14.99 * GIB / unit.factor:.2f}" == weights
    about = About(on=ABOUT.on, unit=unit)
    rows = _tables(compose(sizings.sizing(), LIMITS, about))[0].rows
    assert rows[0][1].text == weights


def test_that_the_sum_of_the_least_stands_with_the_plan_and_not_with_the_load_line() -> None:
    document = compose(*_real(Deployment(max_model_len=8192, concurrency=4)), ABOUT)
    table = next(b for b in document.blocks if isinstance(b, Table) and b.rows[0][0].region)
    (planned,) = (row for row in table.rows if row[0].text == "Planned")
    # 16,060,522,496 B of weights and 4 GiB of cache are the most of it.
    assert planned[3].value_bytes is not None
    assert 16_060_522_496 + 4 * GIB < planned[3].value_bytes < 16_060_522_496 + 5 * GIB
    assert [cell.text for cell in table.total[:4:3]] == ["Load line", ""]


def test_that_no_sentence_of_a_report_in_gb_speaks_of_gib() -> None:
    plan = Deployment(runtime="vllm", max_model_len=65_536, concurrency=4)
    found, most = _real(plan)
    document = compose(found, most, replace(ABOUT, unit=UnitSystem.DECIMAL))
    # 26.49 GiB are 28.4 GB.
    assert document.headline.startswith("Doesn’t fit: 28.4 GB over")
    texts = [document.headline, document.detail, *_texts(document)]
    assert not [text for text in texts if "GiB" in text or "MiB" in text]


def test_that_another_model_of_the_machine_may_decide_the_headline() -> None:
    plan = Deployment(runtime="vllm", max_model_len=8192, concurrency=4)
    found, most = _real(plan)
    words = "Doesn’t fit: 3.0 GiB over for Qwen2.5-3B"
    assert compose(found, most, replace(ABOUT, headline=words)).headline == words
    assert compose(found, most, ABOUT).headline == found.verdict.headline


def test_that_a_simulated_machine_is_called_one_first_and_shows_nothing_as_a_measured_run() -> None:
    real = sizings.sizing()
    budget = real.budget
    made_up = replace(
        real, budget=replace(budget, machine=replace(budget.machine, is_simulated=True))
    )
    document = compose(made_up, LIMITS, ABOUT, _run())
    assert document.detail.startswith("The machine is simulated: it isn’t there")
    headings = {block.text for block in document.blocks if isinstance(block, Heading)}
    assert "Measured" not in headings
    assert "Predicted memory and the measured run" not in headings
    real_document = compose(real, LIMITS, ABOUT, _run())
    assert "Measured" in {b.text for b in real_document.blocks if isinstance(b, Heading)}
    assert "simulated" not in real_document.detail


@pytest.mark.skipif(shutil.which("sh") is None, reason="needs a POSIX shell")
@pytest.mark.parametrize(
    "name", ["a `touch x` b", "a;touch x", "$(touch x)", "it's", 'a "b" c', "&"]
)
def test_that_a_model_s_name_is_one_word_of_the_command_whatever_it_is(name: str) -> None:
    made = sizings.sizing()
    model = replace(made.budget.model, id=name)
    document = compose(replace(made, budget=replace(made.budget, model=model)), LIMITS, ABOUT)
    command = _after(document, "The same in a terminal")
    assert isinstance(command, Command)
    told = subprocess.run(
        ["sh", "-c", f"printf '%s\\n' {command.text.removeprefix('plimsoll size ')}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert told.stdout.splitlines()[0] == name
