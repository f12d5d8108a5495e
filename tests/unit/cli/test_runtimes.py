"""What ``--runtimes`` adds to ``machine`` and ``watch``: as JSON by the schema, and in words."""

from __future__ import annotations

import json

import jsonschema
import pytest

import resources
from engine.cli.look import Look
from engine.cli.runtimes_text import described
from engine.contract.machine import machine_answer, sample_answer
from engine.devices.here import this_machine
from engine.seen.model import ModelSeen, PoolSeen, RuntimeSeen, StatedBytes
from engine.telemetry.snapshot import Missing
from tests.helpers.readings import card, host, moment
from tests.helpers.seen import ollama, vllm

SNAPSHOT = moment(card(), host())
SEEN = (ollama(), vllm(pool=Missing("x"), raw={"a": "b"}), RuntimeSeen("", "Python"))
PLAIN = Look(colour=False, unicode=True, width=200)


def checked(answer: object, name: str) -> dict:
    schema = json.loads(resources.path("schema", f"{name}.schema.json").read_text("utf-8"))
    found = json.loads(json.dumps(answer))
    jsonschema.validate(found, schema)
    return found


def test_that_the_machine_says_what_runtimes_state_and_drivers_attribute():
    answer = checked(machine_answer(this_machine(SNAPSHOT), SNAPSHOT, SEEN), "machine")
    first, second, third = answer["runtimes"]
    assert (first["stated_bytes"], first["attributed_bytes"]) == (12 * 10**9, 88 * 2**30)
    assert first["difference"].startswith("The engine’s figure is incomplete")
    assert first["attributed"][0]["quality"] == "exact"
    assert first["address"] == "http://127.0.0.1:11434"
    assert second["pool"] == {"missing": "x"}
    assert (second["requests_running"], second["raw"]) == (3, {"a": "b"})
    assert second["difference"] is None
    assert third["version"] == {"missing": "the runtime was not asked"}


def test_that_a_sample_may_hold_them_too():
    answer = checked(sample_answer(SNAPSHOT, SEEN), "sample")
    assert answer["runtimes"][1]["model"]["context_tokens"] == 8192


def test_that_answers_are_as_before_where_nobody_asked():
    assert "runtimes" not in checked(sample_answer(SNAPSHOT), "sample")
    assert "runtimes" not in checked(machine_answer(this_machine(SNAPSHOT), SNAPSHOT), "machine")
    assert checked(sample_answer(SNAPSHOT, ()), "sample")["runtimes"] == []


def test_that_words_say_the_same():
    pool = PoolSeen(tokens=40_000, used_tokens=20_800)
    text = "\n".join(described((ollama(), vllm(pool=pool, model=ModelSeen("m", 8192))), PLAIN))
    assert "Ollama 0.32.0 · gemma4:31b-mtp" in text
    assert "answers at http://127.0.0.1:11434" in text
    assert "stated 11.18 GiB, attributed 88.00 GiB" in text
    assert "The engine’s figure is incomplete" in text
    assert "KV pool 20,800 of 40,000 tokens" in text
    assert "requests 3 running, 0 waiting" in text
    assert "context 8,192 tokens" in text


def test_that_nothing_seen_is_said():
    assert list(described((), PLAIN)) == ["No runtime is seen."]


@pytest.mark.parametrize("stated", [0, 1])
def test_that_a_missing_figure_keeps_its_reason(stated):
    seen = vllm(held=(), stated=(StatedBytes(2**30),) * stated)
    text = "\n".join(described((seen,), PLAIN))
    assert "attributed unknown (they run elsewhere, or as another user’s)" in text
