"""ik_llama.cpp's caches in 2025, as its logs printed them: the part that is no bound."""

from __future__ import annotations

from typing import Any

import pytest

from engine.architecture.read import read
from engine.budget.model import Budget, Region
from engine.deployment.spec import Deployment
from engine.devices.device import Device, DeviceKind, Machine, Slot, Vendor
from engine.evidence import Basis, exactly
from engine.fit.judge import judge
from engine.fit.verdict import Fit
from engine.runtimes.registry import get
from engine.source.raw import RawModel
from engine.units import GIB, MIB
from tests.helpers.published import model as published

_PRINTED_MIB = 0.0051
_PADDING_BYTES = 640
"""Quantised rows are padded on CUDA, otherwise than in llama.cpp: less than this a layer."""

DEEPSEEK_V3: dict[str, object] = {
    "model_type": "deepseek_v3",
    "vocab_size": 129280,
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "moe_intermediate_size": 2048,
    "num_hidden_layers": 61,
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "first_k_dense_replace": 3,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "max_position_embeddings": 163840,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
GLM_Z1_32B: dict[str, object] = {
    "model_type": "glm4",
    "vocab_size": 151552,
    "hidden_size": 6144,
    "intermediate_size": 23040,
    "num_hidden_layers": 61,
    "num_attention_heads": 48,
    "num_key_value_heads": 2,
    "head_dim": 128,
    "attention_bias": False,
    "max_position_embeddings": 32768,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
_BY_HAND = {"DeepSeek-V3": DEEPSEEK_V3, "GLM-Z1-32B": GLM_Z1_32B}

# Record, model, context, type of keys and of values, "KV buffer size" of all devices in MiB.
CACHES: list[tuple[str, str, int, str, str, float]] = [
    ("ik-023", "gemma-3-27b", 32768, "f16", "f16", 15872.00),
    ("ik-025", "Qwen3-235B-A22B", 32768, "q8_0", "q8_0", 3196.05),
    ("ik-026", "Qwen3-235B-A22B", 32768, "f16", "f16", 6016.00),
    ("ik-029", "Qwen3-235B-A22B", 16384, "q8_0", "q8_0", 1598.05),
    ("ik-089", "Qwen3-235B-A22B", 65536, "q8_0", "f16", 3038.00 + 3038.02 + 3136.02),
    ("ik-105", "Qwen3-235B-A22B", 40960, "q8_0", "q8_0", 3995.05),
    ("ik-046", "Llama-3.1-8B", 1024, "iq4_nl", "f16", 82.00),
    ("ik-079", "Qwen3-30B-A3B", 32768, "f16", "f16", 1600.00 + 1472.00),
    ("ik-084", "DeepSeek-V3", 32768, "q8_0", "q8_0", 592.89 + 573.76),
    ("ik-087", "DeepSeek-V3", 61440, "q8_0", "q8_0", 1111.66 + 1075.80),
    ("ik-096", "DeepSeek-V3", 65536, "q8_0", "q8_0", 1185.77 + 1147.51),
    ("ik-119", "DeepSeek-V3", 16384, "f16", "f16", 450.00 + 342.00 + 306.00),
    ("ik-131", "DeepSeek-V3", 32768, "f16", "f16", 2196.00),
    ("ik-163", "GLM-Z1-32B", 32768, "f16", "f16", 1952.00),
    ("ik-188", "Kimi-K2", 2048, "q8_0", "q8_0", 37.07 + 35.87),
]


def _machine() -> Machine:
    size = 2048 * GIB
    capacity = exactly(size, Basis.SETTING, "more than any of them needs")
    nothing = exactly(0, Basis.SETTING, "nothing else")
    card = Device("card", Vendor.NVIDIA, DeviceKind.DISCRETE, "", size, capacity, sm_count=84)
    host = Device("host", Vendor.CPU, DeviceKind.HOST, "", size, capacity)
    return Machine("test", (Slot(card, nothing),), Slot(host, nothing), is_here=False)


def _plan(name: str, **settings: Any) -> Budget:
    config = _BY_HAND.get(name)
    model = read(RawModel(name, "test", config=config)) if config else published(name)
    deployment = Deployment(runtime="ik_llama.cpp", weight_format="Q8_0", **settings)
    return get("ik_llama.cpp").plan(model, deployment, _machine())


@pytest.mark.parametrize("record", CACHES, ids=[f"{r[0]} {r[1]}" for r in CACHES])
def test_that_the_cache_is_the_one_that_was_printed(
    record: tuple[str, str, int, str, str, float],
) -> None:
    _, name, context, keys, values, mib = record
    budget = _plan(name, n_ctx=context, cache_type_k=keys, cache_type_v=values, flash_attn="on")
    cache = budget.ranks[0].regions[Region.KV_CACHE].estimate
    layers = len(budget.model.spec.layers)
    assert cache.basis is Basis.EXACT
    padding = layers * _PADDING_BYTES if keys not in ("f16", "iq4_nl") else 0
    printed = 3 * _PRINTED_MIB * MIB
    assert mib * MIB - padding - printed <= cache.likely_bytes <= mib * MIB + printed


def test_that_a_window_saves_nothing_there_and_does_in_llama_cpp() -> None:
    fork = _plan("gemma-3-27b", n_ctx=32768)
    plain = get("llama.cpp").plan(
        published("gemma-3-27b"),
        Deployment(runtime="llama.cpp", weight_format="Q8_0", n_ctx=32768, n_parallel=1),
        _machine(),
    )
    size = fork.ranks[0].regions[Region.KV_CACHE].estimate.likely_bytes
    assert size > 4 * plain.ranks[0].regions[Region.KV_CACHE].estimate.likely_bytes


def test_that_all_of_a_file_in_q8_0_is_what_was_printed() -> None:
    # ik-026: 196,001.25 on the host, 630.59 pinned, 41,723.89 MiB on the card.
    budget = _plan("Qwen3-235B-A22B", n_ctx=32768)
    assert budget.llama_cpp is not None
    held = sum(budget.llama_cpp.model_buffers.values())
    assert held == pytest.approx((196001.25 + 630.59 + 41723.89) * MIB, rel=1e-4)


# Record, model, context, micro-batch, types, flash attention, whether experts are on the host,
# "CUDA0 compute buffer size" and "CUDA_Host compute buffer size" in MiB.
WORK: list[tuple[str, str, int, int, str, str, str, bool, float, float]] = [
    ("ik-023", "gemma-3-27b", 32768, 512, "f16", "f16", "on", False, 522.62, 138.51),
    ("ik-025", "Qwen3-235B-A22B", 32768, 512, "q8_0", "q8_0", "on", True, 312.75, 128.01),
    ("ik-026", "Qwen3-235B-A22B", 32768, 512, "f16", "f16", "on", True, 312.75, 128.01),
    ("ik-029", "Qwen3-235B-A22B", 16384, 512, "q8_0", "q8_0", "on", True, 312.75, 120.01),
    ("ik-046", "Llama-3.1-8B", 1024, 512, "iq4_nl", "f16", "off", False, 266.50, 10.01),
    ("ik-105", "Qwen3-235B-A22B", 40960, 4096, "q8_0", "q8_0", "on", True, 2502.00, 704.05),
    ("ik-163", "GLM-Z1-32B", 32768, 512, "f16", "f16", "on", False, 308.00, 76.01),
]


@pytest.mark.parametrize("record", WORK, ids=[f"{r[0]} {r[1]}" for r in WORK])
def test_that_the_compute_buffer_is_the_one_that_was_printed(
    record: tuple[str, str, int, int, str, str, str, bool, float, float],
) -> None:
    _, name, context, tokens, keys, values, flash, on_host, device, host = record
    budget = _plan(
        name, n_ctx=context, n_batch=max(2048, tokens), n_ubatch=tokens, flash_attn=flash,
        cache_type_k=keys, cache_type_v=values, n_cpu_moe=999 if on_host else 0,
    )  # fmt: skip
    assert budget.llama_cpp is not None
    work, beside = (rank.regions[Region.ACTIVATIONS].estimate for rank in budget.ranks)
    assert work.likely_bytes == pytest.approx(device * MIB, abs=_PRINTED_MIB * MIB)
    output = budget.llama_cpp.output_buffer
    assert beside.low_bytes <= host * MIB + output <= beside.high_bytes + 0.05 * MIB
    # With BLAS built in, ik-029 has a quarter of a MiB more, in a buffer of its own.
    if record[0] != "ik-029":
        pinned = budget.llama_cpp.compute_buffers["CUDA_Host"]
        assert pinned == pytest.approx(host * MIB, abs=0.02 * MIB)


@pytest.mark.parametrize("layers", [-2, 999, None])
def test_that_all_layers_are_all_however_they_are_asked_for(layers: int | None) -> None:
    # ik-023, with -ngl all, -ngl 999 and without.
    budget = _plan("gemma-3-27b", n_ctx=32768, flash_attn="on", n_gpu_layers=layers)
    work = budget.ranks[0].regions[Region.ACTIVATIONS].estimate
    assert work.likely_bytes == pytest.approx(522.62 * MIB, abs=_PRINTED_MIB * MIB)


def test_that_latent_attention_is_a_bound_with_its_reason() -> None:
    budget = _plan("DeepSeek-V3", n_ctx=8192)
    work = budget.ranks[0].regions[Region.ACTIVATIONS].estimate
    assert work.basis is Basis.BOUND
    assert any("-mla, -amb" in reason for reason in budget.bounds)
    assert judge(budget).fit is Fit.UNKNOWN
