"""Which steps get CUDA graphs by release, and what they take on starts that were logged."""

from __future__ import annotations

import pytest

from engine.budget.model import Region
from engine.devices.device import Vendor
from engine.runtimes.sglang.graphs import Captures, cuda_graphs
from engine.units import GIB, MIB
from tests.helpers.sglang import sized


def captures(**changes: object) -> Captures:
    plain: dict[str, object] = {
        "layers": 32, "decode_max_bs": 8, "prefill_buckets": 0, "ranks": 1,
        "vendor": Vendor.NVIDIA, "shares_host": False, "surely": True,
    }  # fmt: skip
    return Captures(**(plain | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("gib", "changes"),
    [
        # Four sizes of LFM2-700M, Qwen3-0.6B and Granite-4.0-H-Micro; 36 of Qwen3-32B, 52 of
        # Qwen3-8B; 38 on three ranks; batches up to 320 of DeepSeek-V4-Flash on eight.
        (0.03, {"layers": 16}),
        (0.11, {"layers": 28}),
        (0.09, {"layers": 40}),
        (0.13, {"layers": 64, "decode_max_bs": 256}),
        (0.60, {"layers": 36, "decode_max_bs": 512}),
        (0.27, {"layers": 36, "decode_max_bs": 256, "ranks": 3}),
        (1.93, {"layers": 43, "decode_max_bs": 320, "ranks": 8}),
        # Prefill steps alone: 58 sizes of Qwen3-32B, of Qwen3-VL-8B, 74 of Qwen3-8B.
        (2.84, {"layers": 64, "decode_max_bs": 0, "prefill_buckets": 58}),
        (1.40, {"layers": 36, "decode_max_bs": 0, "prefill_buckets": 58}),
        (2.32, {"layers": 36, "decode_max_bs": 0, "prefill_buckets": 74}),
        # On memory that the host shares.
        (1.38, {"layers": 64, "decode_max_bs": 32, "shares_host": True}),
        (0.11, {"layers": 48, "decode_max_bs": 32, "shares_host": True}),
        (6.37, {"layers": 61, "decode_max_bs": 512, "ranks": 8, "vendor": Vendor.AMD}),
    ],
)
def test_that_logged_graphs_lie_in_the_range(gib: float, changes: dict[str, object]) -> None:
    found = cuda_graphs(captures(**changes))
    assert found.low_bytes <= gib * GIB <= found.high_bytes


def test_that_no_batch_means_no_graph() -> None:
    assert cuda_graphs(captures(decode_max_bs=0)).high_bytes == 0


def buckets(name: str, **settings: object) -> int:
    """Sizes of prefill steps, of what their graphs take: 0.75 MiB a layer, 8 MiB at the least."""
    budget = sized(name, gpu="H100 SXM 80GB", **settings).budget
    estimate = budget.ranks[0].regions[Region.CUDA_GRAPHS].estimate
    found = [part.likely_bytes for part in estimate.parts if part.label == "prefill"]
    layers = len(budget.model.spec.layers)
    return round(sum(found) / max(3 * MIB * layers / 4, 8 * MIB))


@pytest.mark.parametrize(
    ("name", "settings", "wanted"),
    [
        ("Qwen/Qwen3-8B", {"runtime_version": "0.5.9"}, 0),
        # Steps up to 8,192 tokens: 58 sizes; a context that is given bounds them in three releases.
        ("Qwen/Qwen3-8B", {"runtime_version": "0.5.12", "max_model_len": 2048}, 58),
        ("Qwen/Qwen3-8B", {"runtime_version": "0.5.15", "max_model_len": 2048}, 42),
        ("Qwen/Qwen3-8B", {"runtime_version": "0.5.17", "max_model_len": 2048}, 58),
        # Of models with a tower, those that are listed.
        ("Qwen/Qwen3.5-4B", {"runtime_version": "0.5.15"}, 0),
        ("Qwen/Qwen3.5-4B", {"runtime_version": "0.5.17"}, 58),
        ("google/gemma-3-4b-it", {"runtime_version": "0.5.23"}, 0),
        # With latents, up to 2,048 tokens; up to 8,192 since 0.5.23; beside an index since 0.5.14.
        ("deepseek-ai/DeepSeek-V2-Lite", {"runtime_version": "0.5.22"}, 42),
        ("deepseek-ai/DeepSeek-V2-Lite", {"runtime_version": "0.5.23"}, 58),
        ("deepseek-ai/DeepSeek-V3.2-Exp", {"runtime_version": "0.5.13"}, 0),
        ("deepseek-ai/DeepSeek-V3.2-Exp", {"runtime_version": "0.5.14"}, 42),
    ],
)
def test_that_prefill_steps_are_captured_by_release(
    name: str, settings: dict[str, object], wanted: int
) -> None:
    assert buckets(name, **settings) == wanted


def test_that_tensorrts_latents_are_not_captured() -> None:
    wide = {"gpu": "B200", "gpu_count": 8, "tensor_parallel_size": 8, "runtime_version": "0.5.19"}
    budget = sized("deepseek-ai/DeepSeek-V3", **wide).budget
    parts = budget.ranks[0].regions[Region.CUDA_GRAPHS].estimate.parts
    assert [part.label for part in parts] == ["decoding"]
