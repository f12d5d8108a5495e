"""The published schemas are valid, fresh, and take the contract's own example."""

from __future__ import annotations

import json

import jsonschema
import pytest

import resources
from engine.contract.answer import error_answer
from engine.contract.schema import schemas
from engine.devices import catalogue as devices
from engine.devices import plain as plain_devices
from engine.errors import UsageError
from engine.telemetry.markers import Marker, MarkerKind
from engine.telemetry.record import Recorder
from engine.telemetry.snapshot import (
    DeviceReading,
    Missing,
    PoolKind,
    ProcessReading,
    TelemetrySnapshot,
)


def published(name: str) -> dict[str, object]:
    return json.loads(resources.path("schema", f"{name}.schema.json").read_text("utf-8"))


@pytest.mark.parametrize("name", sorted(schemas()))
def test_that_the_published_schema_is_what_the_code_answers_by(name):
    # Refresh with: python packaging/schemas.py
    assert published(name) == json.loads(json.dumps(schemas()[name]))


@pytest.mark.parametrize("name", sorted(schemas()))
def test_that_the_schema_itself_is_valid(name):
    jsonschema.Draft202012Validator.check_schema(schemas()[name])


def test_that_an_error_carries_code_sentence_and_field_and_hides_nothing_in_them():
    answer = error_answer("a", UsageError("No \x1b[31m\u202eevil here.", field="model\x00"))
    assert answer == {
        "schema": "plimsoll.budget/1",
        "id": "a",
        "error": {
            "code": "bad_request",
            "message": "No \\x1b[31m\\u202eevil here.",
            "field": "model\\x00",
        },
    }
    jsonschema.validate(answer, published("budget"))


def test_that_the_published_schemas_refuse_what_the_contract_does_not_know():
    answer = error_answer(1, UsageError("x")) | {"extra": 1}
    assert not jsonschema.Draft202012Validator(published("budget")).is_valid(answer)


def test_that_every_line_of_a_recording_follows_the_published_schema(tmp_path):
    here = devices.machine(devices.find("RTX 4090"), 2)
    card = DeviceReading(
        uuid="GPU-0", name="RTX 4090", pool=PoolKind.VRAM, total_bytes=24 * 2**30,
        used_bytes=Missing("the driver is asleep"), free_bytes=2**30, reserved_bytes=0,
        processes=(ProcessReading(7, "python", 2**30, "python serve.py"),), source="NVML",
    )  # fmt: skip
    path = tmp_path / "run.jsonl"
    recorder = Recorder(path, plain_devices.to_dict(here))
    recorder.write(TelemetrySnapshot(monotonic_s=1.5, wall_time_s=1.7e9, devices=(card,)))
    recorder.mark(Marker(MarkerKind.LOAD, 1.5, 1.7e9, "", "GPU-0", -(2**30)))
    recorder.close()
    header, sample, marker = map(json.loads, path.read_text("utf-8").splitlines())
    judge = jsonschema.Draft202012Validator(published("recording"))
    judge.validate(header)
    judge.validate(sample)
    judge.validate(marker)
    assert header["schema"] == published("recording")["title"] == "plimsoll.recording/2"
    assert not judge.is_valid(header | {"machine": {}})
    assert not judge.is_valid({k: v for k, v in sample.items() if k != "devices"})
