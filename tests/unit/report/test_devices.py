"""The other devices in a report: next sizes of the maker, and the smallest of each that fits.

Llama-3.1-8B in BF16 takes 14.96 GiB, four requests of 8,192 tokens 4.00 GiB, and vLLM its own 2 to
3 GiB besides; of a card it takes 92 %. So a card of 16 GB is too small and one of 24 GB is not.
"""

from __future__ import annotations

from collections import Counter

from engine.deployment.spec import Deployment
from engine.devices import catalogue
from engine.devices.device import DeviceKind
from engine.report import devices
from engine.sizing import Sizing, size
from tests.unit.report.test_compose import _real as real

PLAN = Deployment(max_model_len=8192, concurrency=4)


def _on(name: str, plan: Deployment, count: int = 1) -> Sizing:
    model = real(PLAN)[0].budget.model
    return size(model, plan, catalogue.machine(catalogue.find(name), count))


def _names(name: str, plan: Deployment, count: int = 1) -> list[str]:
    return [device.name for device, _ in devices.others(_on(name, plan, count), plan)]


def test_that_a_plan_that_fits_stands_on_the_next_sizes_and_the_smallest_of_each_maker() -> None:
    # One size below the 4090 and two above; AMD's and Intel's smallest of 24 GB; none of Apple,
    # which vLLM does not run on; NVIDIA's smallest of 24 GB is the plan's own.
    assert _names("RTX 4090", PLAN) == [
        "RTX 5080", "Arc Pro B60", "RX 7900 XTX", "RTX 5090", "L40S",
    ]  # fmt: skip


def test_that_a_plan_that_does_not_fit_looks_up_alone() -> None:
    # 4 × 65,536 tokens: 32 GiB of cache, 49 to 50 GiB in all. Two sizes above the 4090 are too
    # small for it; 92 % of an H100's 79 GiB are not.
    names = _names("RTX 4090", PLAN.with_(max_model_len=65_536))
    assert [n for n in names if catalogue.find(n).vendor.value == "NVIDIA"] == [
        "RTX 5090", "L40S", "H100 SXM 80GB",
    ]  # fmt: skip


def test_that_a_maker_of_none_that_fits_is_left_out() -> None:
    # 4 × 131,072 tokens: 64 GiB of cache; the largest of Intel has 32 GB.
    names = _names("RTX 4090", PLAN.with_(max_model_len=131_072))
    assert not [n for n in names if n.startswith("Arc")]


def test_that_devices_that_share_a_computers_memory_are_never_several() -> None:
    plan = PLAN.with_(tensor_parallel_size=2, max_model_len=131_072)
    kinds = {catalogue.find(name).kind for name in _names("L40S", plan, 2)}
    assert kinds == {DeviceKind.DISCRETE}


def test_that_mlx_is_shown_on_macs_alone() -> None:
    # 15 GiB of weights: a Mac of 16 GB gives 11.84 GiB to its GPU, one of 24 GB 17.76.
    plan = Deployment(runtime="mlx", max_model_len=8192)
    assert _names("M3 Max 64 GB", plan) == [
        "M5 24 GB", "M5 Pro 48 GB", "M3 Ultra 96 GB", "M5 Max 128 GB",
    ]  # fmt: skip


def test_that_each_usual_device_is_known_and_the_only_one_of_its_size() -> None:
    found = [catalogue.find(name) for name in devices.USUAL]
    assert [device.name for device in found] == list(devices.USUAL)
    sizes = Counter((device.vendor, device.label) for device in found)
    assert set(sizes.values()) == {1}
