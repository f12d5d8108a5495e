"""What the panel says, without a panel: rows, doubts, and the text that is copied."""

from __future__ import annotations

import pytest

from engine.architecture.read import read
from engine.architecture.spec import ModuleClass
from engine.source.raw import RawModel
from engine.verify.meta import Verification
from gui.sizing import verify_words as words

CONFIG = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "vocab_size": 100,
}


def _model(name="o/m", **more):
    return read(RawModel(name, "test", config=CONFIG | more))


def _found(model, **built):
    ours = model.spec.parameters_by_class()
    return Verification(
        model=model.id,
        model_class="LlamaForCausalLM",
        transformers="5.24.0",
        torch="2.13",
        built=ours | {ModuleClass[name]: count for name, count in built.items()},
        ours=ours,
        doubts=tuple(d.reason for d in model.spec.doubts),
    )


def test_that_our_own_count_is_shown_before_anything_is_built():
    shown = words.looking(_model(), "")
    rows = {row.label: row.ours for row in shown.rows}
    # V x H; q, k, v and o of H x H; three matrices H x 128; two norms and the last.
    assert rows["Embedding"] == rows["LM head"] == "6,400"
    assert rows["Attention"] == "16,384"
    assert rows["MLP"] == "24,576"
    assert rows["Norm"] == "192"
    assert rows["All"] == "53,952"
    assert shown.is_busy
    assert not shown.doubts


def test_that_a_doubt_is_named_before_and_after():
    model = _model(strange_matrix_size=77)
    before = words.looking(model, "")
    after = words.verified(before, _found(model))
    for shown in (before, after):
        assert shown.doubts[0].startswith("Counted here is a bound: ")
        assert "strange_matrix_size" in shown.doubts[0]
    assert "strange_matrix_size" in after.copied.replace("\\", "")


@pytest.mark.parametrize(
    ("built", "said", "color"),
    [
        ({}, "Equal to the parameter.", "fits"),
        ({"NORM": 193}, "They differ by 1 parameter.", "over"),
        ({"NORM": 191, "MLP": 24_577}, "Equal to the parameter.", "fits"),
        ({"VISION": 5}, "They differ by 5 parameters.", "over"),
    ],
)
def test_that_the_outcome_is_said_as_it_is(built, said, color):
    model = _model()
    shown = words.verified(words.looking(model, ""), _found(model, **built))
    assert shown.headline == said
    assert shown.color == color
    assert any(row.differs for row in shown.rows) is (color == "over")
    assert not shown.is_busy


def test_that_classes_drawn_otherwise_are_explained_and_not_red():
    model = _model()
    shown = words.verified(words.looking(model, ""), _found(model, NORM=191, MLP=24_577))
    assert "names alone" in shown.detail
    assert {row.difference for row in shown.rows} == {"0", "+1", "\N{MINUS SIGN}1"}
    assert not any(row.differs for row in shown.rows)


def test_that_a_class_that_only_one_side_has_is_a_row():
    model = _model()
    shown = words.verified(words.looking(model, ""), _found(model, VISION=5))
    row = next(row for row in shown.rows if row.label == "Vision")
    assert row.cells == ("Vision", "0", "5", "\N{MINUS SIGN}5")


def test_that_foreign_names_cannot_break_the_table():
    model = _model("o/a|b\u202e")
    shown = words.verified(words.looking(model, "/x\u202ey"), _found(model))
    assert "\u202e" not in shown.copied + shown.title + words.looking(model, "/x\u202ey").detail
    assert "a\\|b" in shown.copied
