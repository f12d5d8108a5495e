"""Recordings: written, cut off, damaged, hostile."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from engine.devices import catalogue
from engine.devices import plain as device_plain
from engine.errors import TelemetryError
from engine.telemetry import plain
from engine.telemetry.commands import recognise
from engine.telemetry.markers import Marker, MarkerKind
from engine.telemetry.record import SCHEMA, Recorder, RecordingEndedError, Replay, free_path
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
ROOT = Path(__file__).parents[3]


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


LIMITED = """
import resource, signal, sys
from pathlib import Path
from engine.errors import TelemetryError
from engine.telemetry.record import Recorder
from tests.unit.telemetry.test_record import snapshot
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
recorder = Recorder(Path(sys.argv[1]), {})
try:
    for second in range(100):
        recorder.write(snapshot(second))
    recorder.close()
except TelemetryError as error:
    print(error.message)
"""


def test_that_a_full_disk_ends_the_recording_with_a_sentence_and_keeps_whole_lines(tmp_path: Path):
    path = tmp_path / "full.jsonl"
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path)],
        capture_output=True, text=True, check=True, timeout=120,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    told = "The recording 'full.jsonl' has ended: File too large. What was written before is kept."
    assert done.stdout.strip() == told
    content = path.read_bytes()
    assert 10_000 < len(content) <= 20_000
    assert content.endswith(b"}\n")
    replay = Replay(path)
    assert len(list(replay.snapshots())) == content.count(b"\n") - 1
    replay.close()


def test_that_a_header_that_has_no_room_leaves_no_file(tmp_path: Path):
    path = tmp_path / "none.jsonl"
    done = subprocess.run(
        [sys.executable, "-c", LIMITED.replace("20_000", "10"), str(path)],
        capture_output=True, text=True, timeout=120, check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert "The recording 'none.jsonl' cannot be written: File too large." in done.stderr
    assert not path.exists()


KILLED = """
import sys, time
from pathlib import Path
from engine.telemetry.record import Recorder
from tests.unit.telemetry.test_record import snapshot
recorder = Recorder(Path(sys.argv[1]), {})
second = 0
while True:
    recorder.write(snapshot(second))
    print(second, flush=True)
    second += 1
    time.sleep(0.005)
"""


def test_that_a_kill_in_the_midst_of_writing_costs_less_than_a_second(tmp_path: Path):
    path = tmp_path / "killed.jsonl"
    writer = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path)],
        stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert writer.stdout is not None
    handed = [int(writer.stdout.readline()) for _ in range(300)][-1]
    writer.send_signal(signal.SIGKILL)
    handed = max([handed, *(int(line) for line in writer.stdout if line.endswith("\n"))])
    writer.wait(30)
    writer.stdout.close()
    replay = Replay(path)
    kept = [s.monotonic_s - 100 for s in replay.snapshots()]
    replay.close()
    assert kept == [float(n) for n in range(len(kept))]
    # 200 samples are handed over in a second.
    assert handed - kept[-1] < 200


def test_that_a_recording_that_exists_is_never_touched(tmp_path: Path):
    path = recorded(tmp_path)
    before = path.read_bytes()
    with pytest.raises(TelemetryError, match=r"'session\.jsonl' exists already"):
        Recorder(path, {})
    assert path.read_bytes() == before
    assert free_path(path) == tmp_path / "session 2.jsonl"
    (tmp_path / "session 2.jsonl").touch()
    assert free_path(path) == tmp_path / "session 3.jsonl"
    assert free_path(tmp_path / "other.jsonl.gz") == tmp_path / "other.jsonl.gz"


def test_that_what_is_saved_tells_nothing_of_whose_computer_it_was(tmp_path: Path):
    uuid = "GPU-8f1c2d3e-0000-4abc-9def-0123456789ab"
    command = "vllm serve /mnt/alice/secret-models/Llama-3.1-8B --api-key sk-abcdefghijkl --port 80"
    held = (
        ProcessReading(1, "VLLM::EngineCore", GIB, command),
        ProcessReading(
            2, "python3", GIB, "python3 /home/alice/theses/draft.py --token hf_abcdefgh"
        ),
    )
    card = replace(
        snapshot().devices[0], uuid=uuid, processes=held, note="serial 1560221008123 of alice"
    )
    path = tmp_path / "shared.jsonl"
    recorder = Recorder(path, {"name": "x", "devices": [{"uuid": uuid}]})
    recorder.mark(Marker(MarkerKind.NOTE, 1.0, 2.0, "token=hf_abcdefgh", uuid))
    recorder.write(replace(snapshot(), devices=(card,)))
    recorder.close()
    text = path.read_text()
    for secret in ("8f1c2d3e", "1560221008123", "secret-models", "alice/", "sk-abc", "hf_abc",
                   "theses", "draft.py"):  # fmt: skip
        assert secret not in text
    header, marker, sample = map(json.loads, text.splitlines())
    stand_in = header["machine"]["devices"][0]["uuid"]
    assert stand_in == marker["marker"]["uuid"] == sample["devices"][0]["uuid"]
    assert stand_in.startswith("GPU-")
    first, second = sample["devices"][0]["processes"]
    # The overlay still knows which model is served.
    assert recognise(first["name"], first["command"]).model == "Llama-3.1-8B"
    assert "--port 80" in first["command"]
    assert second["command"] == ""


def test_that_a_recording_of_the_first_version_and_a_packed_one_are_read(tmp_path: Path):
    sample = plain.to_dict(snapshot())
    text = json.dumps({"schema": "plimsoll.recording/1", "machine": {}}) + "\n" + json.dumps(sample)
    plain_file, packed = tmp_path / "old.jsonl", tmp_path / "old.jsonl.gz"
    plain_file.write_text(text + "\n")
    packed.write_bytes(gzip.compress(text.encode() + b"\n"))
    for path in (plain_file, packed):
        replay = Replay(path)
        assert [s.monotonic_s for s in replay.snapshots()] == [100.0]
        replay.close()
    packed.write_bytes(packed.read_bytes()[:-12])
    replay = Replay(packed)
    assert len(list(replay.snapshots())) <= 1
    replay.close()


def test_that_a_marker_among_the_samples_is_passed_by_in_order(tmp_path: Path):
    path = tmp_path / "marked.jsonl"
    recorder = Recorder(path, {})
    for second in range(3):
        recorder.write(snapshot(second))
        recorder.mark(Marker(MarkerKind.NOTE, 100.0 + second, 0.0, "here"))
    recorder.close()
    assert len(path.read_text().splitlines()) == 7
    replay = Replay(path)
    assert [s.monotonic_s for s in replay.snapshots()] == [100.0, 101.0, 102.0]
    replay.close()


def test_that_a_missing_recording_is_named(tmp_path: Path):
    with pytest.raises(TelemetryError, match=r"'no\.jsonl' cannot be opened: No such file"):
        Replay(tmp_path / "no.jsonl")


def test_that_a_pipe_or_folder_is_refused_without_waiting_for_it(tmp_path: Path):
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path):
        with pytest.raises(TelemetryError, match="is not a recording"):
            Replay(path)
