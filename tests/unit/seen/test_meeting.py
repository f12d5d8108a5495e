"""What an address that was typed turns out to be, through real requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine.cancel import CancelToken, JobCancelledError
from engine.errors import EndpointError, TelemetryError
from engine.seen.meeting import Met, meet
from tests.helpers.exporter import serving as exporting
from tests.helpers.runtime_server import serving

if TYPE_CHECKING:
    from pathlib import Path

MIB = 2**20


def met(typed: str, machine: str | None = None, *, offline: bool = False) -> Met:
    found = meet(typed, CancelToken(), lambda: offline, machine)
    if found.sampler is not None:
        found.sampler.close()
    return found


def test_that_a_recorded_page_of_slices_is_a_machine_with_its_first_sample(shared: Path):
    with exporting() as exporter:
        exporter.page((shared / "live/samples/dcgm/dcgm-exporter_mig_a30.prom").read_text())
        found = met(exporter.address)
    assert found.first is not None
    # DCGM counts in MiB.
    assert [d.free_bytes for d in found.first.devices] == [6012 * MIB] * 3
    assert {d.machine for d in found.first.devices} == {"host-a"}


@pytest.mark.parametrize(
    ("file", "label"),
    [
        ("vllm/metrics_0.25.1_loaded.prom", "vLLM"),
        ("sglang/metrics_2025-11_0.5.1.prom", "SGLang"),
    ],
)
def test_that_a_runtime_s_recorded_page_is_a_runtime_and_no_machine(
    shared: Path, file: str, label: str
):
    page = (shared / "live/samples" / file).read_text()
    with serving({"/metrics": page}) as runtime:
        found = met(f"{runtime.address}/metrics")
    assert (found.runtime, found.first, found.machines) == (label, None, ())


def test_that_llama_server_is_a_runtime_too(shared: Path):
    page = (shared / "live/samples/llamacpp/server_metrics_2025-06.prom").read_text()
    props = {"default_generation_settings": {"n_ctx": 4096}, "total_slots": 1}
    with serving({"/metrics": page, "/props": props}) as runtime:
        assert met(runtime.address.shown).runtime == "llama.cpp"


def test_that_of_several_machines_one_is_chosen_and_brings_its_cards_and_its_ram():
    def row(name: str, value: int, instance: str, **labels: str) -> dict[str, object]:
        return {
            "metric": {"__name__": name, "instance": instance, **labels},
            "value": [1.0, str(value)],
        }

    rows = [
        made
        for box in ("a", "b")
        for made in (
            row("DCGM_FI_DEV_FB_USED", 1000, f"{box}:9400", UUID=f"GPU-{box}"),
            row("DCGM_FI_DEV_FB_FREE", 9000, f"{box}:9400", UUID=f"GPU-{box}"),
            row("node_memory_MemTotal_bytes", 2**36, f"{box}:9100"),
            row("node_memory_MemAvailable_bytes", 2**35, f"{box}:9100"),
        )
    ]
    with exporting() as server:
        server.prometheus(*rows)
        assert met(server.address).machines == ("a", "b")
        chosen = met(server.address, "b")
    assert chosen.first is not None
    assert [(d.machine, d.used_bytes) for d in chosen.first.devices] == [
        ("b", 1000 * MIB), ("b", 2**35),
    ]  # fmt: skip


def test_that_what_is_neither_costs_one_sentence():
    for page, sentence in (("up 1\n", "states no memory: DCGM's"), ("<html>", "no metrics page")):
        told = pytest.raises(TelemetryError, match=sentence)
        with serving({"/metrics": page}) as other, told:
            met(other.address.shown)
    with pytest.raises(EndpointError, match="name and password"):
        met("http://me:hunter2@box:9400")


def test_that_offline_and_cancelled_meetings_ask_nobody():
    with pytest.raises(TelemetryError, match="Offline mode is on"):
        met("10.0.0.5:9400", offline=True)
    token = CancelToken()
    token.cancel()
    with exporting() as exporter:
        exporter.page("node_memory_MemTotal_bytes 1\n")
        with pytest.raises(JobCancelledError):
            meet(exporter.address, token, lambda: False)
        assert exporter.asked == []


def test_that_a_machine_without_a_name_can_be_chosen_among_others():
    page = (
        'DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-a",Hostname="box"} 1\n'
        'DCGM_FI_DEV_FB_USED{gpu="1",UUID="GPU-b"} 2\n'
    )
    with exporting() as exporter:
        exporter.page(page)
        assert met(exporter.address).machines == ("", "box")
        found = met(exporter.address, "")
    assert found.first is not None
    assert [device.uuid for device in found.first.devices] == ["GPU-b"]
