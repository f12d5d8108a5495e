"""Markers that nobody sets: what a curve and its failures show, and what they don't."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.errors import TelemetryError
from engine.telemetry.markers import Marker, MarkerKind, MarkerRules, from_dict, to_dict
from engine.telemetry.snapshot import Missing, PoolKind
from tests.helpers.readings import DESKTOP, ENGINE, GIB, MIB, card, moment


def seen(*curve: float | None, **changes) -> list[Marker]:
    """The markers of a card whose use runs through ``curve``, GiB a second."""
    rules, found = MarkerRules(), []
    for second, used in enumerate(curve):
        size = Missing("the GPU fell off the bus") if used is None else round(used * GIB)
        engine = (ENGINE,) if used is not None and used > 4 else ()
        device = card(used_bytes=size, processes=(*engine, *DESKTOP))
        found += rules.look(moment(replace(device, **changes), second=second))
    return found


def test_that_a_climb_that_comes_to_rest_is_a_load_at_its_beginning():
    (marker,) = seen(0.5, 0.5, 3, 8, 15, 15.3, 15.3, 15.3, 15.3, 15.3)
    assert (marker.kind, marker.monotonic_s) == (MarkerKind.LOAD, 102.0)
    assert marker.change_bytes == round(15.3 * GIB) - round(0.5 * GIB)
    assert marker.words() == "Load, +14.8 GiB"


def test_that_a_fall_is_an_unload_and_small_steps_are_nothing():
    kinds = [m.kind for m in seen(0.5, 9, 9, 9, 9, 9, 0.5, 0.5, 0.5, 0.5, 0.5)]
    assert kinds == [MarkerKind.LOAD, MarkerKind.UNLOAD]
    assert seen(9, 9.2, 9.2, 9.2, 9.2, 9.0, 9.2, 9.1, 9.1, 9.1, 9.1) == []


def test_that_on_a_large_device_a_workspace_is_no_load():
    large = {"total_bytes": 141 * GIB}
    # Two per cent of 141 GiB are 2.8.
    assert seen(50, 52, 52, 52, 52, 52, **large) == []
    assert len(seen(50, 53, 53, 53, 53, 53, **large)) == 1


def test_that_a_full_card_that_falls_with_a_process_ran_out():
    curve = (0.5, 8, 16, 23.5, 23.6, 0.5, 0.5, 0.5, 0.5, 0.5)
    load, end = seen(*curve)
    assert load.kind is MarkerKind.LOAD
    assert end.kind is MarkerKind.OUT_OF_MEMORY
    assert end.is_trouble
    assert end.words().startswith("Out of memory, perhaps: \u2212")


def test_that_a_card_that_was_not_full_was_only_unloaded():
    kinds = [m.kind for m in seen(0.5, 8, 16, 20, 20, 0.5, 0.5, 0.5, 0.5, 0.5)]
    assert kinds == [MarkerKind.LOAD, MarkerKind.UNLOAD]


def test_that_a_device_that_two_samples_miss_is_lost_once_and_comes_back():
    (lost,) = seen(5, 5, None, None, None, None, 5, 5)
    assert (lost.kind, lost.monotonic_s) == (MarkerKind.LOST, 103.0)
    assert lost.words() == "Device lost: the GPU fell off the bus"
    assert seen(5, None, 5, None, 5) == []
    assert len(seen(5, None, None, 5, None, None)) == 2


def test_that_a_device_that_is_no_longer_named_is_lost():
    rules = MarkerRules()
    rules.look(moment(card()))
    assert rules.look(moment(second=1)) == ()
    (lost,) = rules.look(moment(second=2))
    assert lost.kind is MarkerKind.LOST


def test_that_a_carve_out_without_a_ceiling_is_never_full():
    curve = (0.1, 0.5, 0.5, 0.5, 0.5, 0.1, 0.1, 0.1, 0.1, 0.1)
    changes = {"pool": PoolKind.CARVE_OUT, "total_bytes": 512 * MIB}
    assert MarkerKind.OUT_OF_MEMORY not in [m.kind for m in seen(*curve, **changes)]


def test_that_a_marker_survives_as_a_line():
    marker = Marker(MarkerKind.LOAD, 1.5, 2.5, "first try", "GPU-0", -5 * GIB)
    assert from_dict(to_dict(marker)["marker"]) == marker


@pytest.mark.parametrize("fields", [{}, {"kind": 5}, {"kind": "note", "uuid": []}])
def test_that_a_wrong_marker_is_an_error(fields):
    with pytest.raises(TelemetryError):
        from_dict(fields)


def told(*curve: float, at: int) -> list[str]:
    """What the markers of ``curve`` say where a runtime tells of an unload at second ``at``."""
    rules, found = MarkerRules(), []
    for second, used in enumerate(curve):
        engine = (ENGINE,) if used > 4 else ()
        snapshot = moment(
            card(used_bytes=round(used * GIB), processes=(*engine, *DESKTOP)), second=second
        )
        found += rules.look(snapshot)
        if second == at:
            rules.tell_unload("Ollama, llama3.1:8b", snapshot)
    return [m.words() for m in found if m.kind is MarkerKind.UNLOAD]


def test_that_an_unload_that_a_runtime_tells_of_is_one_marker_with_its_name():
    fall = (9.0, 9.0, 9.0, 0.5, 0.5, 0.5, 0.5, 0.5)
    assert told(*fall, at=2) == ["Unload, −8.5 GiB: Ollama, llama3.1:8b"]
    # Marked by then: its memory came back before the runtime was asked.
    assert told(*fall, at=7) == ["Unload, −8.5 GiB"]


def test_that_an_unload_whose_memory_others_took_is_marked_all_the_same():
    assert told(*(9.0,) * 20, at=2) == ["Unload: Ollama, llama3.1:8b"]
    (marker,) = [Marker(MarkerKind.UNLOAD, 1.0, 2.0, "Ollama, llama3.1:8b")]
    assert from_dict(to_dict(marker)["marker"]) == marker
