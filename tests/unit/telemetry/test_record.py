"""Recordings: written, cut off, damaged, hostile."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from engine.devices import catalogue
from engine.devices import plain as device_plain
from engine.errors import TelemetryError
from engine.telemetry import plain
from engine.telemetry.record import SCHEMA, Recorder, RecordingEndedError, Replay
from engine.telemetry.snapshot import (
    DeviceReading,
    Missing,
    Part,
    PoolKind,
    ProcessReading,
    Quality,
    TelemetrySnapshot,
)

GIB = 2**30


def snapshot(second: int = 0, used: int | Missing = 20 * GIB) -> TelemetrySnapshot:
    process = ProcessReading(4211, "vllm", 19 * GIB, "vllm serve m")
    unknown = ProcessReading(7, "x", Missing("not told"))
    card = DeviceReading(
        uuid="GPU-0",
        name="NVIDIA GeForce RTX 4090",
        pool=PoolKind.VRAM,
        total_bytes=24 * GIB,
        used_bytes=used,
        free_bytes=3 * GIB,
        reserved_bytes=Missing("this driver counts its reserve as used"),
        processes=(process, unknown),
        source="NVML 580.126.09",
        note="n",
        sm_count=128,
        compute_capability=8.9,
    )
    silent = Missing("the GPU fell off the bus")
    lost = DeviceReading(
        "GPU-1", "x", PoolKind.VRAM, silent, silent, silent, silent, silent, "NVML 580.126.09"
    )
    return TelemetrySnapshot(100.0 + second, 1.75e9 + second, (card, lost), ("a note",))


def recorded(folder: Path, count: int = 3) -> Path:
    path = folder / "session.jsonl"
    machine = catalogue.machine(catalogue.find("RTX 4090"))
    recorder = Recorder(path, device_plain.to_dict(machine))
    for second in range(count):
        recorder.write(snapshot(second))
    recorder.close()
    return path


def test_that_a_snapshot_survives_as_json_with_its_reasons():
    original = snapshot()
    text = json.dumps(plain.to_dict(original))
    assert plain.from_dict(json.loads(text)) == original


def test_that_ceiling_parts_spill_and_quality_survive_as_json():
    card = snapshot().devices[0]
    apu = replace(
        card,
        pool=PoolKind.CARVE_OUT,
        ceiling_bytes=120 * GIB,
        available_bytes=Missing("not told"),
        spill_bytes=2 * GIB,
        parts=(Part("GTT", 124 * GIB, Missing("no right to read it")),),
        age_s=4.5,
        pci_address="0000:c1:00.0",
        processes=(
            ProcessReading(
                1, "x", GIB, quality=Quality.OVER_COUNTS, spill_bytes=3 * GIB, committed_bytes=5
            ),
        ),
    )
    before = replace(snapshot(), devices=(apu,))
    assert plain.from_dict(json.loads(json.dumps(plain.to_dict(before)))) == before


def test_that_a_sample_of_before_the_ceiling_was_written_is_still_read():
    record = plain.to_dict(snapshot())
    for device in record["devices"]:
        for key in (
            "ceiling_bytes",
            "available_bytes",
            "spill_bytes",
            "parts",
            "age_s",
            "pci_address",
            "pressure",
        ):
            del device[key]
        for process in device["processes"] if isinstance(device["processes"], list) else ():
            del process["quality"], process["spill_bytes"], process["committed_bytes"]
    assert plain.from_dict(record) == snapshot()


def test_that_a_missing_value_is_written_as_its_reason_and_never_as_zero():
    device = plain.to_dict(snapshot(used=Missing("gone")))["devices"][0]
    assert device["used_bytes"] == {"missing": "gone"}


def test_that_a_recording_plays_back_moment_by_moment_and_then_says_that_it_ended(tmp_path: Path):
    replay = Replay(recorded(tmp_path))
    times = [replay.sample().monotonic_s for _ in range(3)]
    assert times == [100.0, 101.0, 102.0]
    with pytest.raises(RecordingEndedError, match=r"'session\.jsonl' has ended"):
        replay.sample()
    replay.close()


def test_that_a_replayed_reading_says_what_it_is_a_recording_of(tmp_path: Path):
    replay = Replay(recorded(tmp_path))
    assert replay.sample().devices[0].source == "recording session.jsonl, NVML 580.126.09"
    assert replay.machine["name"] == "RTX 4090"
    replay.close()


def test_that_a_recording_cut_off_in_its_last_line_plays_up_to_there(tmp_path: Path):
    path = recorded(tmp_path)
    path.write_bytes(path.read_bytes()[:-40])
    replay = Replay(path)
    assert len(list(replay.snapshots())) == 2
    replay.close()


def test_that_damage_in_the_middle_is_named_by_its_line(tmp_path: Path):
    path = recorded(tmp_path)
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join([*lines[:2], "garbage\n", *lines[2:]]), encoding="utf-8")
    replay = Replay(path)
    replay.sample()
    with pytest.raises(TelemetryError) as caught:
        replay.sample()
    replay.close()
    assert caught.value.message == (
        "The recording 'session.jsonl' is damaged in line 3: it is not JSON."
    )


@pytest.mark.parametrize(
    "content",
    [b"", b"{}\n", b"not json\n", b'{"schema": 1}\n', b"[" * 100_000 + b"\n", b"\xff\xfe\x00",
     b'"text"\n', b'{"model_type": "llama"}\n'],
)  # fmt: skip
def test_that_a_file_that_is_no_recording_is_refused_in_one_sentence(
    tmp_path: Path, content: bytes
):
    path = tmp_path / "other.json"
    path.write_bytes(content)
    with pytest.raises(TelemetryError) as caught:
        Replay(path)
    assert caught.value.message == "'other.json' is not a recording of Plimsoll."


def test_that_a_recording_of_a_later_version_is_refused_with_its_version(tmp_path: Path):
    path = tmp_path / "new.jsonl"
    path.write_text('{"schema": "plimsoll.recording/9"}\n')
    with pytest.raises(TelemetryError, match=r"another version \(plimsoll\.recording/9\)"):
        Replay(path)


@pytest.mark.parametrize(
    "damage",
    [
        {"used_bytes": "20"}, {"used_bytes": 2**63}, {"used_bytes": True}, {"used_bytes": None},
        {"used_bytes": 1.5}, {"pool": "cloud"}, {"uuid": None}, {"processes": 5},
        {"processes": [1]}, {"processes": [{"pid": -1, "name": "x", "used_bytes": 1}]},
        {"processes": [{}] * 5000}, {"used_bytes": {"missing": 3}}, {"name": ["x"]},
    ],
)  # fmt: skip
def test_that_a_field_out_of_bounds_is_an_error_and_not_a_number(
    tmp_path: Path, damage: dict[str, object]
):
    sample = plain.to_dict(snapshot())
    sample["devices"][0].update(damage)
    path = tmp_path / "bad.jsonl"
    path.write_text(json.dumps({"schema": SCHEMA}) + "\n" + json.dumps(sample) + "\n")
    replay = Replay(path)
    with pytest.raises(TelemetryError, match="damaged in line 2"):
        replay.sample()
    replay.close()


def test_that_an_endless_line_is_refused_before_it_fills_memory(tmp_path: Path):
    path = tmp_path / "long.jsonl"
    with path.open("wb") as file:
        file.write(json.dumps({"schema": SCHEMA}).encode() + b"\n")
        file.seek(2**33, 1)  # a sparse file of 8 GiB of zeros
        file.write(b"\n")
    replay = Replay(path)
    with pytest.raises(TelemetryError, match="line 2: the line is too long"):
        replay.sample()
    replay.close()


def test_that_text_in_a_recording_cannot_steer_a_terminal(tmp_path: Path):
    sample = plain.to_dict(snapshot())
    sample["devices"][0]["name"] = "\x1b[31mcard\u202e"
    path = tmp_path / "steer.jsonl"
    path.write_text(json.dumps({"schema": SCHEMA}) + "\n" + json.dumps(sample) + "\n")
    replay = Replay(path)
    assert replay.sample().devices[0].name == "\\x1b[31mcard\\u202e"
    replay.close()


def test_that_a_recording_without_samples_says_so(tmp_path: Path):
    replay = Replay(recorded(tmp_path, count=0))
    with pytest.raises(TelemetryError, match="holds no samples"):
        replay.sample()
    replay.close()


def test_that_a_place_that_cannot_be_written_is_named(tmp_path: Path):
    with pytest.raises(TelemetryError, match=r"'x\.jsonl' cannot be written: No such file"):
        Recorder(tmp_path / "nowhere" / "x.jsonl", {})


def test_that_a_full_disk_is_reported_and_not_lost():
    path = Path("/dev/full")
    if not path.exists():
        pytest.skip("needs a device that is always full")
    with pytest.raises(TelemetryError, match="No space left on device"):
        Recorder(path, {})


def test_that_a_missing_recording_is_named(tmp_path: Path):
    with pytest.raises(TelemetryError, match=r"'no\.jsonl' cannot be opened: No such file"):
        Replay(tmp_path / "no.jsonl")


def test_that_a_pipe_or_folder_is_refused_without_waiting_for_it(tmp_path: Path):
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path):
        with pytest.raises(TelemetryError, match="is not a recording"):
            Replay(path)
