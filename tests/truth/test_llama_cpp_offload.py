"""llama.cpp with some layers on the host: what a GPU holds of what it is lent.

The figures are llama.cpp's own (b11549): its loader, scheduler and graph allocator ran in no-alloc
mode on files of real shapes, with a stand-in for one CUDA device, as in the first corpus. None of
its 2,842 runs has layers on the host and a context beyond 8,192 on one GPU.
"""

from __future__ import annotations

from typing import Any

import pytest

from engine.budget.model import Region
from tests.truth.scoring import gguf

_RUNS = [
    ("Llama-3.1-8B", 16, 32768, "f16", "on", 276828160),
    ("Llama-3.1-8B", 16, 32768, "q8_0", "on", 320198144),
    ("Llama-3.1-8B", 16, 32768, "f16", "off", 2457866240),
    ("Llama-3.1-8B", 16, 131072, "f16", "on", 981471232),
    ("Qwen3-8B", 18, 32768, "f16", "on", 209719296),
    ("Qwen3-8B", 18, 32768, "q8_0", "on", 297800704),
    ("Qwen3-8B", 18, 32768, "f16", "off", 2457866240),
    ("Qwen3-8B", 18, 131072, "f16", "on", 713035776),
    ("Gemma-3-27B", 31, 32768, "f16", "on", 354424832),
    ("Gemma-3-27B", 31, 32768, "q8_0", "on", 497032192),
    ("Gemma-3-27B", 31, 32768, "f16", "off", 2546472960),
    ("Gemma-3-27B", 31, 131072, "f16", "on", 1260394496),
    ("Phi-4", 20, 32768, "f16", "on", 316674048),
    ("Phi-4", 20, 32768, "q8_0", "on", 397940224),
    ("Phi-4", 20, 32768, "f16", "off", 2961182720),
    ("Phi-4", 20, 131072, "f16", "on", 847253504),
    ("Mixtral-8x7B", 16, 32768, "f16", "on", 653791232),
    ("Mixtral-8x7B", 16, 32768, "q8_0", "on", 599266304),
    ("Mixtral-8x7B", 16, 32768, "f16", "off", 2390757376),
    ("Mixtral-8x7B", 16, 131072, "f16", "on", 1098387456),
    ("Qwen3-30B-A3B", 24, 32768, "f16", "on", 304091392),
    ("Qwen3-30B-A3B", 24, 32768, "q8_0", "on", 293082368),
    ("Qwen3-30B-A3B", 24, 32768, "f16", "off", 2319978496),
    ("Qwen3-30B-A3B", 24, 131072, "f16", "on", 440930304),
    ("gpt-oss-20b", 12, 32768, "f16", "on", 273653888),
    ("gpt-oss-20b", 12, 32768, "q8_0", "on", 274179200),
    ("gpt-oss-20b", 12, 32768, "f16", "off", 4427616256),
    ("gpt-oss-20b", 12, 131072, "f16", "on", 443027456),
    ("DeepSeek-V3", 59, 32768, "f16", "on", 549720064),
    ("DeepSeek-V3", 59, 32768, "q8_0", "on", 653398016),
    ("DeepSeek-V3", 59, 32768, "f16", "off", 9091157888),
    ("DeepSeek-V3", 59, 131072, "f16", "on", 834932608),
    ("Qwen3.5-27B", 32, 32768, "f16", "on", 270274560),
    ("Qwen3.5-27B", 32, 32768, "q8_0", "on", 354161408),
    ("Qwen3.5-27B", 32, 32768, "f16", "off", 1914441728),
    ("Qwen3.5-27B", 32, 131072, "f16", "on", 773591040),
    ("Qwen3-Next-80B-A3B", 24, 32768, "f16", "on", 584060928),
    ("Qwen3-Next-80B-A3B", 24, 32768, "q8_0", "on", 602936064),
    ("Qwen3-Next-80B-A3B", 24, 32768, "f16", "off", 1284509696),
    ("Qwen3-Next-80B-A3B", 24, 131072, "f16", "on", 886050816),
    ("Granite-4.0-H-Small", 20, 32768, "f16", "on", 387121408),
    ("Granite-4.0-H-Small", 20, 32768, "q8_0", "on", 416482560),
    ("Granite-4.0-H-Small", 20, 32768, "f16", "off", 2449473536),
    ("Granite-4.0-H-Small", 20, 131072, "f16", "on", 973078528),
    ("Nemotron-H-8B", 26, 32768, "f16", "on", 218267648),
    ("Nemotron-H-8B", 26, 32768, "q8_0", "on", 236241024),
    ("Nemotron-H-8B", 26, 32768, "f16", "off", 2265333888),
    ("Nemotron-H-8B", 26, 131072, "f16", "on", 260718720),
    ("Llama-4-Scout-17B-16E", 24, 32768, "f16", "on", 797446144),
    ("Llama-4-Scout-17B-16E", 24, 32768, "q8_0", "on", 736744960),
    ("Llama-4-Scout-17B-16E", 24, 32768, "f16", "off", 2966425600),
    ("Llama-4-Scout-17B-16E", 24, 131072, "f16", "on", 1300762624),
]
"""Model, layers on the GPU, context, cache type, flash attention, the GPU's compute buffer."""


_ALL = {"n_gpu_layers": 999}
_Q8 = {"type_k": "q8_0", "type_v": "q8_0"}
_LOADS: list[tuple[str, dict[str, int], dict[str, Any], int]] = [
    ("Llama-3.1-8B", {"n_gpu_layers": 16}, {"op_offload": False}, 138422400),
    ("Phi-4", {"n_gpu_layers": 20}, {"op_offload": False}, 164636800),
    ("Mixtral-8x7B", {"n_gpu_layers": 999, "cpu_moe": 999}, {}, 527972352),
    ("Mixtral-8x7B", {"n_gpu_layers": 999, "cpu_moe": 16}, {"op_offload": False}, 243283968),
    ("Qwen3-30B-A3B", {"n_gpu_layers": 999, "cpu_moe": 24}, {"n_ctx": 131072}, 362297600),
    ("Qwen3-235B-A22B", {"n_gpu_layers": 999, "cpu_moe": 47}, {"n_ubatch": 2048}, 1298194432),
    ("Qwen3-8B", {"n_gpu_layers": 0}, {"n_ctx": 131072}, 713035776),
    ("Llama-3.1-8B", _ALL, {"n_ctx": 131072, "offload_kqv": False}, 713037824),
    ("Qwen3.5-27B", _ALL, {"n_ctx": 131072, "offload_kqv": False}, 763367424),
    ("DeepSeek-V3", _ALL, {"n_ctx": 57344, **_Q8}, 469772416),
    ("DeepSeek-V3", _ALL, {"n_ctx": 65536, **_Q8}, 687876224),
    ("DeepSeek-V2-Lite", _ALL, {"n_ctx": 12288, **_Q8}, 102246528),
]
"""Model, where it is, what differs from a context of 32,768, the GPU's compute buffer."""


def _compute(model: str, layers: int, **settings: Any) -> Any:
    return _lent(model, {"n_gpu_layers": layers}, settings)


def _lent(model: str, load: dict[str, int], settings: dict[str, Any], gpu: int = 0) -> Any:
    file_type = "MXFP4_MOE" if model.startswith("gpt-oss") else "Q4_K_M"
    budget = gguf.planned(
        {
            "model": model,
            "file_type": file_type,
            "backend": "GPU",
            "load": load,
            "settings": {"n_outputs_max": 1, **settings},
        }
    )
    return budget.ranks[gpu].regions[Region.ACTIVATIONS].estimate.parts[0]


@pytest.mark.parametrize(("model", "layers", "n_ctx", "cache", "flash", "measured"), _RUNS)
def test_that_a_gpu_is_lent_the_hosts_caches(
    model: str, layers: int, n_ctx: int, cache: str, flash: str, measured: int
) -> None:
    ours = _compute(model, layers, n_ctx=n_ctx, type_k=cache, type_v=cache, fa=flash)
    assert ours.low_bytes <= measured <= ours.high_bytes


@pytest.mark.parametrize(("model", "load", "settings", "measured"), _LOADS)
def test_that_experts_and_products_are_lent_as_measured(
    model: str, load: dict[str, int], settings: dict[str, Any], measured: int
) -> None:
    ours = _lent(model, load, {"n_ctx": 32768, **settings})
    assert ours.likely_bytes == pytest.approx(measured, rel=0.001)


def test_that_nothing_is_lent_for_micro_batches_below_32() -> None:
    ours = _lent("Llama-3.1-8B", {"n_gpu_layers": 16}, {"n_ctx": 32768, "n_ubatch": 16})
    assert ours.low_bytes <= 4325888 <= ours.high_bytes


@pytest.mark.parametrize(
    ("model", "layers", "measured"),
    [("Llama-3.1-8B", 16, 171976832), ("Phi-4", 20, 198191232), ("DeepSeek-V3", 30, 463476864)],
)
def test_that_the_second_gpu_is_lent_nothing(model: str, layers: int, measured: int) -> None:
    ours = _lent(model, {"n_gpu_layers": layers, "gpus": 2}, {"n_ctx": 65536}, gpu=1)
    assert ours.likely_bytes == pytest.approx(measured, rel=0.001)


@pytest.mark.parametrize(("model", "copies"), [("Qwen3-8B", 2), ("Llama-3.1-8B", 3)])
def test_that_a_long_context_is_copied_whole(model: str, copies: int) -> None:
    """131,072 cells of 1,024 f16 elements are 256 MiB; the mask is 128 MiB."""
    mib = 1024**2
    mask, unit, queries = 128 * mib, 8 * mib, 8 * mib
    ours = _compute(model, 16, n_ctx=131072)
    assert ours.likely_bytes == pytest.approx(
        mask + copies * 256 * mib + 4 * unit + queries, abs=mib
    )
