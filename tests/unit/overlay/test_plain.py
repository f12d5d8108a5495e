"""The overlay as JSON: every figure of the values, no missing one as nought, nothing of a class."""

from __future__ import annotations

import json

from engine.overlay.checklist import checklist
from engine.overlay.plain import checklist_dict, overlay_dict
from engine.overlay.state import Stated
from engine.overlay.steps import Evidence
from engine.overlay.tracker import recognise
from tests.helpers.curves import moments
from tests.helpers.sizings import gib
from tests.unit.overlay.test_attribution import RUN, watched
from tests.unit.overlay.test_checklist import BUDGET


def test_that_an_overlay_is_plain_json_with_its_figures():
    overlay = watched({**RUN, 60: 23.22}, 80, state=Stated(True, 3, 0.52))
    (rank,) = json.loads(json.dumps(overlay_dict(overlay), allow_nan=False))["ranks"]
    assert rank["own_bytes"] == rank["must_stay_bytes"] == gib(23.22)
    assert rank["foreign_before_bytes"] == gib(0.41)
    assert rank["kv_live_bytes"] == round(0.52 * gib(5.32))
    assert rank["left_bytes"] == {"missing": "nothing of this plan has run yet"}
    assert rank["residue"]["suspects"][0]["region"] == "allocator"
    assert [p["phase"] for p in rank["phases"]] == ["load", "decode", "sustained"]
    assert rank["spans"][0] == ["before", 0, 9.0]


def test_that_a_checklist_is_plain_json_by_rank():
    made = json.loads(json.dumps(checklist_dict(checklist(BUDGET, 0, Evidence()))))
    assert [s["status"] for s in made["steps"]] == [
        "known", "modelled", "known", "modelled", "open",
    ]  # fmt: skip
    assert made["steps"][0]["per_rank"]["0"]["estimate"]["likely_bytes"] == gib(14.99)
    assert made["steps"][4]["estimate"] is None


def test_that_a_run_of_any_length_keeps_a_bounded_record():
    def state(time_s: float) -> Stated:
        return Stated(True, int(time_s) % 2, None, None, int(time_s), None)

    run = recognise(moments([(0, 0), (5, 0), (10, 20), (4000, 20)], state=state))
    assert len(run.spans) <= 512
    assert len(run.prefills_s) <= 512
