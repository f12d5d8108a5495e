"""Models that a runtime has given up, by its own word."""

from __future__ import annotations

from engine.seen.model import NO_MODEL, ModelSeen, Reach, RuntimeSeen
from engine.seen.phase_state import phase_state
from engine.seen.unloads import unloaded
from engine.telemetry.snapshot import Missing
from tests.helpers.seen import ollama

FIRST = ollama(model=ModelSeen("llama3.1:8b"))
SECOND = ollama(model=ModelSeen("qwen3:4b"))
EMPTY = ollama(model=NO_MODEL, stated=())


def names(
    before: tuple[RuntimeSeen, ...], now: tuple[RuntimeSeen, ...]
) -> list[tuple[str, RuntimeSeen]]:
    return [
        (row.model.name, server)
        for row, server in unloaded(before, now)
        if isinstance(row.model, ModelSeen)
    ]


def test_that_a_model_that_is_listed_no_more_is_unloaded():
    assert names((FIRST, SECOND), (SECOND,)) == [("llama3.1:8b", SECOND)]
    assert names((FIRST,), (EMPTY,)) == [("llama3.1:8b", EMPTY)]


def test_that_nothing_is_told_by_who_is_gone_or_silent():
    silent = ollama(reach=Reach.SILENT, model=Missing("it was not asked"))
    assert names((FIRST,), ()) == []
    assert names((FIRST,), (silent,)) == []
    assert names((FIRST, SECOND), (FIRST, SECOND)) == []
    assert names((EMPTY,), (FIRST,)) == []


def test_that_a_runtime_without_a_model_is_not_loaded_and_one_that_names_none_is_unknown():
    assert phase_state(EMPTY).is_loaded is False
    assert phase_state(FIRST).is_loaded is True
    assert phase_state(ollama(model=Missing("it states none"))).is_loaded is None
