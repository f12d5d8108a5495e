"""Machines elsewhere: exporters' pages and a Prometheus server, through real requests."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING, Any

import pytest

from engine.devices import elsewhere
from engine.errors import EndpointError, TelemetryError
from engine.source.activity import ACTIVITY
from engine.telemetry import wire
from engine.telemetry.adapters import exporters
from engine.telemetry.adapters.prometheus import PrometheusAdapter
from engine.telemetry.prometheus_text import parsed
from engine.telemetry.snapshot import Missing, PoolKind
from tests.helpers.exporter import Exporter, serving
from tests.helpers.live_records import fault

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from engine.telemetry.snapshot import DeviceReading

MIB, GIB = 2**20, 2**30
A100 = 'gpu="0",UUID="GPU-a",device="nvidia0",modelName="NVIDIA A100-SXM4-40GB",Hostname="box"'


@pytest.fixture
def exporter() -> Iterator[Exporter]:
    with serving() as server:
        yield server


def read(text: str) -> tuple[DeviceReading, ...]:
    return exporters.readings(parsed(text), elsewhere.card_total_bytes, "box:9400")


def dcgm(labels: str = A100, **fields: object) -> str:
    return "".join(f"DCGM_FI_DEV_FB_{key}{{{labels}}} {value}\n" for key, value in fields.items())


def test_that_the_total_is_the_same_with_and_without_the_reserve(shared: Path):
    assert "sum 40324" in fault(shared, "B13")["input"]
    (before,) = read(dcgm(USED=1000, FREE=39324))
    (after,) = read(dcgm(USED=1000, FREE=39324, RESERVED=636))
    assert before.total_bytes == after.total_bytes == 40960 * MIB
    assert before.reserved_bytes == Missing("reserved not exported")
    assert after.reserved_bytes == 636 * MIB
    for reading in (before, after):
        assert isinstance(reading.ceiling_bytes, int)
        assert reading.used_bytes == 1000 * MIB
        assert round(100 * 1000 * MIB / reading.ceiling_bytes, 1) == 2.5


def test_that_a_card_that_no_table_has_falls_short_and_says_so():
    labels = 'gpu="0",UUID="GPU-a",modelName="NVIDIA Q7"'
    (reading,) = read(dcgm(labels, USED=1000, FREE=9000))
    assert reading.total_bytes == 10000 * MIB
    assert reading.note == "Reserved memory is not exported, so the total falls short by it."


def test_that_an_exported_total_is_believed():
    (reading,) = read(dcgm(USED=1000, FREE=39324, TOTAL=40960))
    assert reading.total_bytes == 40960 * MIB
    assert reading.note == ""


@pytest.mark.parametrize(
    "blank",
    ["9223372036854775794", "9223372036854775792", "2147483632", "2147483644", "NaN", "-1", "+Inf"],
)
def test_that_a_blank_value_is_absent_and_not_a_size(blank: str):
    (reading,) = read(dcgm(USED=blank, FREE=39324))
    assert reading.used_bytes == Missing("not exported")
    assert isinstance(reading.total_bytes, Missing)


def test_that_a_size_that_no_computer_has_is_none():
    labels = 'gpu="0",UUID="GPU-a",modelName="X"'
    (reading,) = read(dcgm(labels, USED=2**48 // MIB - 1, FREE=5))
    assert reading.used_bytes == 2**48 - MIB
    (reading,) = read(dcgm(labels, USED=2**48 // MIB, FREE=5))
    assert reading.used_bytes == Missing("not exported")


def test_that_more_devices_than_a_computer_has_are_not_watched(exporter: Exporter):
    def cards(count: int) -> str:
        return "".join(
            dcgm(f'gpu="{n}",UUID="GPU-{n}",Hostname="box"', USED=1, FREE=9) for n in range(count)
        )

    adapter = PrometheusAdapter(exporter.address, elsewhere.card_total_bytes)
    exporter.page(cards(512))
    assert len(adapter.sample()) == 512
    exporter.page(cards(513))
    with pytest.raises(TelemetryError, match="513 devices of one computer: up to 512 are watched"):
        adapter.sample()
    # As many of several computers are a server's.
    exporter.page(cards(300) + cards(300).replace("GPU-", "GPU-f").replace("box", "other"))
    assert len(adapter.sample()) == 600


def test_that_a_recorded_page_of_slices_gives_each_slice(shared: Path):
    text = (shared / "live/samples/dcgm/dcgm-exporter_mig_a30.prom").read_text()
    found = read(text)
    assert [r.uuid[-4:] for r in found] == ["0a/3", "0a/4", "0b/3"]
    assert {r.name for r in found} == {"NVIDIA A30 MIG 1g.6gb @ host-a"}
    assert {r.free_bytes for r in found} == {6012 * MIB}
    assert all(isinstance(r.used_bytes, Missing) for r in found)


def test_that_the_card_behind_its_slices_is_no_device():
    whole = dcgm(USED=50, FREE=40000, RESERVED=900)
    part = dcgm(f'{A100},GPU_I_ID="3",GPU_I_PROFILE="2g.10gb"', USED=12, FREE=9844, RESERVED=0)
    (reading,) = read(whole + part)
    assert reading.name == "NVIDIA A100-SXM4-40GB MIG 2g.10gb @ box"
    assert reading.total_bytes == 9856 * MIB


def test_that_a_recorded_page_of_clocks_and_blanks_states_no_memory(shared: Path):
    assert read((shared / "live/samples/dcgm/dcgm-exporter_sentinel.prom").read_text()) == ()


def test_that_a_card_that_pods_share_counts_once():
    pods = "".join(dcgm(f'{A100},pod="p{n}"', USED=1000, FREE=39324, RESERVED=636) for n in (1, 2))
    (reading,) = read(pods)
    assert reading.used_bytes == 1000 * MIB


def test_that_the_gpu_exporter_s_bytes_are_read_with_the_card_s_name():
    (reading,) = read(
        'nvidia_smi_memory_total_bytes{uuid="df6e7a7c"} 12878610432\n'
        'nvidia_smi_memory_used_bytes{uuid="df6e7a7c"} 471859200\n'
        'nvidia_smi_memory_free_bytes{uuid="df6e7a7c"} 12140412928\n'
        'nvidia_smi_memory_reserved_bytes{uuid="df6e7a7c"} 266338304\n'
        'nvidia_smi_gpu_info{uuid="df6e7a7c",name="NVIDIA GeForce RTX 3080 Ti"} 1\n'
    )
    assert (reading.name, reading.uuid) == ("NVIDIA GeForce RTX 3080 Ti", "GPU-df6e7a7c")
    assert (reading.total_bytes, reading.used_bytes) == (12878610432, 471859200)
    assert reading.ceiling_bytes == 12878610432 - 266338304


def test_that_node_exporter_tells_a_linux_and_a_mac():
    linux, mac = read(
        'node_memory_MemTotal_bytes{instance="a:9100"} 68719476736\n'
        'node_memory_MemAvailable_bytes{instance="a:9100"} 34359738368\n'
        'node_memory_total_bytes{instance="m:9100"} 68719476736\n'
        # 900000 − 20000 + 262144 + 131072 pages of 16 KiB
        f'node_memory_internal_bytes{{instance="m:9100"}} {900000 * 16384}\n'
        f'node_memory_purgeable_bytes{{instance="m:9100"}} {20000 * 16384}\n'
        f'node_memory_wired_bytes{{instance="m:9100"}} {262144 * 16384}\n'
        f'node_memory_compressed_bytes{{instance="m:9100"}} {131072 * 16384}\n'
    )
    assert (linux.pool, linux.name, linux.free_bytes) == (PoolKind.HOST, "a:9100", 32 * GIB)
    assert isinstance(mac.used_bytes, int)
    assert round(mac.used_bytes / GIB, 1) == 19.4


def test_that_macmon_tells_a_mac():
    # The sizes of its recorded answer on a MacBook of 24 GB
    (mac,) = read(
        'macmon_memory_ram_total_bytes{chip="Apple M3 Pro"} 25769803776\n'
        'macmon_memory_ram_used_bytes{chip="Apple M3 Pro"} 20985479168\n'
    )
    assert (mac.pool, mac.name) == (PoolKind.HOST, "Apple M3 Pro")
    assert (mac.used_bytes, mac.free_bytes) == (20985479168, 25769803776 - 20985479168)
    assert mac.source == "macmon box:9400"


def test_that_an_exporter_is_scraped_wherever_its_page_is_named(exporter: Exporter):
    exporter.page(dcgm(USED=1000, FREE=39324, RESERVED=636))
    for typed in (exporter.address, f"http://{exporter.address}/metrics"):
        adapter = PrometheusAdapter(typed, elsewhere.card_total_bytes)
        (reading,) = adapter.sample()
        assert reading.used_bytes == 1000 * MIB
        assert reading.source == f"DCGM {exporter.address}"
    # Asked once whether it is a server, then no more
    adapter = PrometheusAdapter(exporter.address, elsewhere.card_total_bytes)
    exporter.asked.clear()
    adapter.sample()
    adapter.sample()
    assert [path.partition("?")[0] for path in exporter.asked] == [
        "/api/v1/query",
        "/metrics",
        "/metrics",
    ]


def series(name: str, *points: tuple[float, object], **labels: str) -> dict[str, Any]:
    return {
        "metric": {"__name__": name, **labels},
        "values": [[at, str(value)] for at, value in points],
    }


def test_that_a_server_is_asked_for_memory_alone(exporter: Exporter):
    labels = {"UUID": "GPU-a", "gpu": "0", "modelName": "NVIDIA A100-SXM4-40GB"}
    rows = [
        {
            "metric": {"__name__": f"DCGM_FI_DEV_FB_{field}", "instance": "box:9400", **labels},
            "value": [1796000000.25, str(value)],
        }
        for field, value in (("USED", 1000), ("FREE", 39324), ("RESERVED", 636))
    ]
    exporter.prometheus(*rows, {"metric": "garbage", "value": 5}, {"metric": {}, "value": [[], {}]})
    (reading,) = PrometheusAdapter(exporter.address, elsewhere.card_total_bytes).sample()
    assert reading.name == "NVIDIA A100-SXM4-40GB @ box:9400"
    assert (reading.total_bytes, reading.used_bytes) == (40960 * MIB, 1000 * MIB)
    assert "DCGM_FI_DEV_FB_USED" in exporter.asked[-1]
    assert not [path for path in exporter.asked if path.startswith("/metrics")]


def test_that_what_a_server_has_kept_comes_as_snapshots_in_order(exporter: Exporter):
    at = 1796000000.0
    exporter.prometheus(
        series("node_memory_MemTotal_bytes", (at, 64 * GIB), (at + 15, 64 * GIB), instance="a"),
        series("node_memory_MemAvailable_bytes", (at + 15, GIB), (at, 32 * GIB), instance="a"),
    )
    adapter = PrometheusAdapter(exporter.address, elsewhere.card_total_bytes)
    first, second = adapter.history(at, at + 15, 15)
    assert (first.wall_time_s, first.devices[0].free_bytes) == (at, 32 * GIB)
    assert (second.wall_time_s, second.devices[0].free_bytes) == (at + 15, GIB)
    assert second.monotonic_s - first.monotonic_s == 15


def test_that_a_week_is_asked_in_steps_that_a_server_grants(exporter: Exporter):
    exporter.prometheus(series("node_memory_MemTotal_bytes", (1.0, GIB)))
    adapter = PrometheusAdapter(exporter.address, elsewhere.card_total_bytes)
    adapter.history(0.0, 7 * 86400.0, 1.0)
    step = float(exporter.asked[-1].rpartition("step=")[2])
    assert 7 * 86400 / step <= 11_000


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ("<html>", "does not answer as Prometheus does"),
        ("[" * 100_000, "does not answer as Prometheus does"),
        ("[]", "does not answer as Prometheus does"),
        (
            '{"status": "error", "error": "too many points."}',
            "refused the question: too many points.",
        ),
        ('{"status": "success", "data": null}', "has kept no memory figures"),
        ('{"status": "success", "data": {"result": 5}}', "has kept no memory figures"),
        (
            '{"status": "success", "data": {"result": [{"metric": {}, "value": [1%s, "1"]}]}}'
            % ("0" * 400),
            "has kept no memory figures",
        ),
    ],
)
def test_that_an_answer_that_is_none_costs_one_sentence(
    exporter: Exporter, answer: str, sentence: str
):
    exporter.page(answer, "/api/v1/query_range")
    with pytest.raises(TelemetryError, match=sentence):
        PrometheusAdapter(exporter.address, elsewhere.card_total_bytes).history(0, 60, 15)


def test_that_a_page_without_memory_says_what_is_understood(exporter: Exporter):
    exporter.page("up 1\n")
    with pytest.raises(TelemetryError, match="states no memory: DCGM's exporter"):
        PrometheusAdapter(exporter.address, elsewhere.card_total_bytes).sample()


def test_that_a_redirect_is_followed_at_home_and_nowhere_else(exporter: Exporter):
    exporter.redirect("/real", "/metrics")
    exporter.page(dcgm(USED=1, FREE=2, RESERVED=3), "/real")
    adapter = PrometheusAdapter(f"{exporter.address}/metrics", elsewhere.card_total_bytes)
    assert adapter.sample()[0].used_bytes == MIB
    with serving() as other:
        other.page(dcgm(USED=1, FREE=2, RESERVED=3))
        exporter.redirect(f"http://{other.address}/metrics")
        with pytest.raises(TelemetryError, match="which is not followed"):
            adapter.sample()
        assert other.asked == []
    exporter.redirect("/metrics")
    with pytest.raises(TelemetryError, match="in circles"):
        adapter.sample()


@pytest.mark.parametrize("place", ["//evil.example/x", "http://[", "file:///etc/passwd"])
def test_that_an_odd_redirect_is_refused(exporter: Exporter, place: str):
    exporter.redirect(place)
    with pytest.raises(TelemetryError):
        PrometheusAdapter(f"{exporter.address}/metrics", elsewhere.card_total_bytes).sample()


def test_that_an_endless_answer_is_cut_off(exporter: Exporter, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(wire, "MOST_BYTES", 100_000)
    exporter.page("a 1\n" * 100_000)
    with pytest.raises(TelemetryError, match="more than 0 MiB"):
        PrometheusAdapter(f"{exporter.address}/metrics", elsewhere.card_total_bytes).sample()


def test_that_nobody_at_home_says_so():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(TelemetryError, match=f"Nothing answers at http://127.0.0.1:{port}"):
        PrometheusAdapter(f"127.0.0.1:{port}", elsewhere.card_total_bytes).sample()


def test_that_a_page_that_wants_a_key_is_not_watched(exporter: Exporter):
    exporter.places["/metrics"] = lambda _: (401, "who are you?", {})
    with pytest.raises(TelemetryError, match="wants a name or a key"):
        PrometheusAdapter(f"{exporter.address}/metrics", elsewhere.card_total_bytes).sample()


def test_that_offline_another_machine_is_not_asked():
    adapter = PrometheusAdapter("10.0.0.5:9400", elsewhere.card_total_bytes, lambda: True)
    asked = ACTIVITY.total
    with pytest.raises(TelemetryError, match="Offline mode is on"):
        adapter.sample()
    assert ACTIVITY.total == asked


@pytest.mark.parametrize("typed", ["", "   ", "http://u:p@box:9400", "box:port", "x" * 2000])
def test_that_what_is_no_address_is_refused(typed: str):
    with pytest.raises(EndpointError) as caught:
        PrometheusAdapter(typed, elsewhere.card_total_bytes)
    assert caught.value.field == "address"


def test_that_every_question_is_in_the_list_of_what_was_sent(exporter: Exporter):
    exporter.page(dcgm(USED=1, FREE=2, RESERVED=3))
    before = ACTIVITY.total
    PrometheusAdapter(exporter.address, elsewhere.card_total_bytes).sample()
    asked = ACTIVITY.all[-(ACTIVITY.total - before) :]
    assert [(a.host, a.path, a.status) for a in asked] == [
        (exporter.address, "/api/v1/query", 404),
        (exporter.address, "/metrics", 200),
    ]


def test_that_the_terminal_follows_an_exporter(
    exporter: Exporter, capsys: pytest.CaptureFixture[str]
):
    from engine.cli.entry import main

    exporter.page(dcgm(USED=1000, FREE=39324))
    assert main(["watch", "--prometheus", exporter.address, "--count", "1", "--jsonl"]) == 0
    device = json.loads(capsys.readouterr().out)["devices"][0]
    assert device["total_bytes"] == 40960 * MIB
    assert device["reserved_bytes"] == {"missing": "reserved not exported"}


def test_that_a_server_s_past_can_be_kept_as_a_recording(
    exporter: Exporter, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    from engine.cli.entry import main

    at = 1796000000.0
    exporter.prometheus(
        series("node_memory_MemTotal_bytes", (at, 64 * GIB), (at + 15, 64 * GIB), instance="a"),
        series("node_memory_MemAvailable_bytes", (at, GIB), (at + 15, 2 * GIB), instance="a"),
    )
    target = tmp_path / "then.jsonl"
    ask = ["watch", "--prometheus", exporter.address, "--since", "2026-11-29T10:00+00:00"]
    assert main([*ask, "--until", "2026-11-29T10:05+00:00", "--record", str(target)]) == 0
    assert "start=1795946400.0&end=1795946700.0" in exporter.asked[-1]
    capsys.readouterr()
    assert main(["watch", "--replay", str(target), "--jsonl"]) == 0
    played = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [s["devices"][0]["free_bytes"] for s in played] == [GIB, 2 * GIB]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--since", "yesterday"], "a time like"),
        (["--since", "2026-11-20T10:00"], "are for --prometheus"),
        (["--prometheus", "box", "--until", "2026-11-20T10:00"], "--until needs --since"),
        (["--prometheus", "ftp://box"], "This is no address"),
        (["--prometheus", "box", "--replay", "x"], "not allowed with"),
    ],
)
def test_that_options_that_do_not_go_together_cost_one_sentence(
    options: list[str], words: str, capsys: pytest.CaptureFixture[str]
):
    from engine.cli.entry import main

    assert main(["watch", *options]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("blank", ["140737488355328", "1.40737488355331e+14"])
def test_that_a_blank_of_a_double_is_absent_too(blank: str):
    # dcgm_fields.h: DCGM_FP64_BLANK is 2^47, not found, not supported and not permitted follow
    (reading,) = read(dcgm(USED=1000, FREE=39324, RESERVED=blank))
    assert reading.reserved_bytes == Missing("reserved not exported")
    assert reading.total_bytes == 40960 * MIB


def test_that_a_card_that_two_exporters_tell_of_is_one():
    serial = "0bd6c2a1-1111-2222-3333-444455556666"
    labels = f'gpu="0",UUID="GPU-{serial}",modelName="NVIDIA A100-SXM4-40GB",Hostname='
    one = dcgm(f'{labels}"node-a"', USED=1000, FREE=39324, RESERVED=636)
    again = dcgm(f'{labels}"pod-x"', USED=1001, FREE=39323, RESERVED=636)
    other = "".join(
        f'nvidia_smi_memory_{key}_bytes{{instance="box:9835",uuid="{uuid}"}} {size * MIB}\n'
        for uuid in (serial, "another")
        for key, size in (("total", 40960), ("used", 1000), ("free", 39324), ("reserved", 636))
    )
    found = read(one + again + other)
    assert [reading.used_bytes for reading in found] == [1000 * MIB, 1000 * MIB]
    assert [reading.uuid for reading in found] == [
        f"node-a/GPU-{serial}", "box:9835/GPU-another",
    ]  # fmt: skip


def test_that_bandwidth_and_percent_are_no_memory():
    text = dcgm(USED=1000, FREE=39324, RESERVED=636)
    text += f"DCGM_FI_DEV_MEM_COPY_UTIL{{{A100}}} 97\nDCGM_FI_DEV_FB_USED_PERCENT{{{A100}}} 0.02\n"
    assert read(text) == read(dcgm(USED=1000, FREE=39324, RESERVED=636))


def test_that_figures_beyond_the_stated_total_are_shown_and_marked():
    (reading,) = read(dcgm(USED=5000, FREE=39324, RESERVED=636, TOTAL=40960))
    assert (reading.total_bytes, reading.used_bytes) == (40960 * MIB, 5000 * MIB)
    assert reading.note == "the driver's figures contradict each other"


def test_that_a_computer_with_more_available_than_it_has_is_marked_and_not_negative():
    (reading,) = read(
        f"node_memory_MemTotal_bytes {16 * GIB}\nnode_memory_MemAvailable_bytes {24 * GIB}\n"
    )
    assert reading.total_bytes == 16 * GIB
    assert reading.used_bytes == Missing("the driver's figures contradict each other")
    assert isinstance(reading.free_bytes, Missing)


@pytest.mark.parametrize("more", [{}, {"RESERVED": 0}, {"RESERVED": 0, "TOTAL": 0}])
def test_that_zeros_all_over_are_no_empty_card(more: dict[str, int]):
    # GB10: NVML succeeds with zeros, and DCGM passes them on
    labels = 'gpu="0",UUID="GPU-a",modelName="NVIDIA GB10"'
    (reading,) = read(dcgm(labels, USED=0, FREE=0, **more))
    none = Missing("the driver states a total of 0")
    assert (reading.total_bytes, reading.used_bytes, reading.free_bytes) == (none, none, none)


def test_that_an_empty_card_is_empty():
    (reading,) = read(dcgm(USED=0, FREE=40324, RESERVED=636))
    assert (reading.used_bytes, reading.total_bytes) == (0, 40960 * MIB)
