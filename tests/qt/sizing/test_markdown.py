"""What is copied renders as a table and says what the window says."""

from __future__ import annotations

from engine.budget.model import Region
from gui.sizing.markdown import markdown


def test_that_the_answer_is_a_table_of_equal_columns_with_every_region(loaded):
    text = markdown(loaded.state)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in rows} == {7}
    assert [row.split("|")[1].strip() for row in rows[2:]] == [
        *(region.label for region in Region),
        "Load line",
    ]
    assert loaded.state.sizing.verdict.headline in text


def test_that_every_rank_has_its_table(loaded):
    loaded.choose_device("L40S")
    loaded.edit("tp", tensor_parallel_size=2)
    text = markdown(loaded.state)
    assert "| Rank 0, GiB |" in text
    assert "| Rank 1, GiB |" in text


def test_that_without_an_answer_there_is_nothing_to_copy(room, loaded):
    loaded.edit("tp", tensor_parallel_size=7)
    assert markdown(loaded.state) == ""
