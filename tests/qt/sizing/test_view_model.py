"""Every edit is answered at once, wrong ones with a sentence, and each can be undone."""

from __future__ import annotations

import pytest

from engine.budget.model import Region
from engine.fit.verdict import Fit
from engine.units import GIB, UnitSystem
from tests.qt.sizing.conftest import model_named


def test_that_a_loaded_model_is_answered_before_the_call_returns(room, llama):
    room.load(llama)
    assert room.state.sizing is not None
    assert room.state.plan.deployment.runtime == "vllm"
    assert room.state.plan.deployment.max_model_len == 8192
    assert room.state.plan.deployment.concurrency == 4
    # 4 requests of 8,192 tokens at 131,072 bytes a token are 4 GiB (design, section 5).
    needed = room.state.sizing.budget.ranks[0].needed.likely_bytes
    assert needed == pytest.approx(4 * GIB, rel=0.001)


def test_that_the_inverse_answers_follow_and_belong_to_the_plan(qtbot, loaded):
    found = loaded.state.limits
    assert found is not None
    loaded.edit("context", max_model_len=found.max_context)
    assert loaded.state.fit in (Fit.FITS, Fit.TIGHT)
    assert loaded.state.limits is None
    qtbot.waitUntil(lambda: loaded.state.limits is not None, timeout=20_000)


def test_that_a_plan_over_the_line_offers_changes_that_fit(qtbot, loaded):
    loaded.edit("context", max_model_len=131072)
    assert loaded.state.fit is Fit.DOES_NOT_FIT
    qtbot.waitUntil(lambda: bool(loaded.state.changes), timeout=20_000)
    change = loaded.state.changes[0]
    loaded.apply(change)
    assert loaded.state.fit in (Fit.FITS, Fit.TIGHT)
    assert loaded.state.sizing.verdict.margin_bytes == change.verdict.margin_bytes
    loaded.undo_stack.undo()
    assert loaded.state.plan.deployment.max_model_len == 131072


def test_that_an_impossible_plan_keeps_the_last_answer_beside_its_sentence(loaded):
    before = loaded.state.sizing
    loaded.edit("tp", tensor_parallel_size=7)
    state = loaded.state
    assert state.is_stale
    assert state.problem.endswith(".")
    assert state.sizing is before
    assert state.fit is None
    loaded.edit("tp", tensor_parallel_size=1)
    assert not loaded.state.is_stale
    assert loaded.state.fit is not None


def test_that_edits_of_one_control_are_one_step_and_of_two_controls_two(loaded):
    first = loaded.state.plan
    for context in (9000, 10000, 11000):
        loaded.edit("context", max_model_len=context)
    loaded.edit("concurrency", concurrency=2)
    assert loaded.undo_stack.count() == 2
    loaded.undo_stack.undo()
    assert loaded.state.plan.deployment.concurrency == 4
    assert loaded.state.plan.deployment.max_model_len == 11000
    loaded.undo_stack.undo()
    assert loaded.state.plan == first
    loaded.undo_stack.redo()
    assert loaded.state.plan.deployment.max_model_len == 11000


def test_that_an_edit_that_changes_nothing_is_no_step(loaded):
    loaded.edit("context", max_model_len=8192)
    assert loaded.undo_stack.count() == 0


def test_that_emptied_counts_nothing_of_the_others(loaded):
    beside = loaded.state.sizing.budget.ranks[0].regions[Region.FOREIGN].estimate.likely_bytes
    loaded.set_emptied(emptied=True)
    alone = loaded.state.sizing.budget.ranks[0].regions[Region.FOREIGN].estimate.likely_bytes
    assert (beside, alone) == (GIB // 2, 0)


def test_that_another_device_takes_as_many_as_there_are_ranks(loaded):
    loaded.choose_device("L40S")
    loaded.edit("tp", tensor_parallel_size=4)
    state = loaded.state
    assert not state.machine.is_here
    assert [rank.slot.device.name for rank in state.sizing.budget.ranks] == ["L40S"] * 4


def test_that_an_unknown_device_is_a_sentence(loaded):
    loaded.choose_device("RTX 9999")
    assert "RTX 9999" in loaded.state.problem


def test_that_another_runtime_keeps_only_what_it_knows(loaded):
    loaded.edit("kv", kv_cache_dtype="fp8")
    loaded.choose_runtime("llama.cpp", None)
    assert loaded.state.plan.deployment.kv_cache_dtype == "auto"
    assert loaded.state.fit is not None


def test_that_doubling_and_halving_the_context_are_inverse(loaded):
    loaded.scale_context(1)
    assert loaded.state.context == 16384
    loaded.scale_context(-1)
    assert loaded.state.context == 8192


def test_that_the_unit_changes_no_number_of_bytes(loaded):
    before = loaded.state.sizing
    loaded.set_unit(UnitSystem.DECIMAL)
    assert loaded.state.unit is UnitSystem.DECIMAL
    assert loaded.state.sizing is before


def test_that_a_model_with_a_short_context_says_what_it_changed(room):
    from engine.source import catalogue

    entry = next(e for e in catalogue.entries() if 0 < (e.max_position_embeddings or 0) < 8192)
    from engine.architecture.read import read

    room.load(read(catalogue.raw(entry)))
    longest = entry.max_position_embeddings
    assert room.state.plan.deployment.max_model_len == longest
    assert any(f"{longest:,}" in note for note in room.state.notes)


def test_that_a_setting_out_of_range_is_named_as_its_control_is(loaded):
    loaded.choose_runtime("llama.cpp", None)
    loaded.edit("concurrency", concurrency=1025)
    assert loaded.state.problem == "At once: 1,025 is out of range: choose 1 to 256."


@pytest.mark.parametrize(
    ("runtime", "name", "edit", "words"),
    [
        # 16 heads go to 1, 2, 4, 8 … devices; GPT-2 has learned 1,024 positions.
        ("vllm", "Qwen/Qwen2.5-3B", {"tensor_parallel_size": 3}, "Tensor parallel: 3"),
        ("vllm", "openai-community/gpt2-xl", {"max_model_len": 2048}, "Context: 2,048 is"),
    ],
)  # fmt: skip
def test_that_a_refusal_names_the_control_and_not_the_key(room, runtime, name, edit, words):
    room.load(model_named(name))
    room.choose_device("RTX 4090")
    room.choose_runtime(runtime, None)
    room.edit("edit", **edit)
    assert room.state.problem.startswith(words)
    assert next(iter(edit)) not in room.state.problem
