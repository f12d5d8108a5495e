"""What changed between builds of llama.cpp: figures of their logs, or hand arithmetic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from engine.architecture.read import read
from engine.deployment.spec import Deployment
from engine.devices.device import Device, DeviceKind, Machine, Slot, Vendor
from engine.errors import DeploymentError
from engine.evidence import Basis, exactly
from engine.runtimes.llama_cpp import LlamaCpp
from engine.runtimes.llama_cpp.builds import NEWEST, build_of, note
from engine.source.raw import RawModel
from tests.helpers.published import GIB, MIB, model

if TYPE_CHECKING:
    from engine.budget.model import Budget, LlamaCppBuffers

_PRINTED_MIB = 0.0051
"""The log has two decimals."""


def _machine(vendor: Vendor = Vendor.NVIDIA, gib: int = 640) -> Machine:
    capacity = exactly(gib * GIB, Basis.SETTING, "test")
    nothing = exactly(0, Basis.SETTING, "test")
    kind = DeviceKind.UNIFIED if vendor is Vendor.APPLE else DeviceKind.DISCRETE
    card = Device("card", vendor, kind, "", gib * GIB, capacity, sm_count=100)
    host = Device("host", Vendor.CPU, DeviceKind.HOST, "", gib * GIB, capacity)
    return Machine("test", (Slot(card, nothing),), Slot(host, nothing), is_here=False)


def _plan(name: str, build: str | None, vendor: Vendor = Vendor.NVIDIA, **settings: Any) -> Budget:
    chosen: dict[str, Any] = {"weight_format": "Q4_K_M", "n_parallel": 1} | settings
    deployment = Deployment(runtime="llama.cpp", runtime_version=build, **chosen)
    return LlamaCpp().plan(model(name), deployment, _machine(vendor))


def _buffers(budget: Budget) -> LlamaCppBuffers:
    assert budget.llama_cpp is not None
    return budget.llama_cpp


def _kv_mib(budget: Budget) -> float:
    return sum(_buffers(budget).kv_buffers.values()) / MIB


# Gemma 3 12B: 8 layers with all cells and 40 with a window of 1,024; 8 heads of 256, K and V.
@pytest.mark.parametrize(
    ("build", "sliding_cells"),
    [("b5353", 8192), ("b5456", 1024 + 2048), ("b5600", 1024 + 512), (None, 1024 + 512)],
)
def test_that_windows_came_in_may_2025_and_held_a_batch_at_first(
    build: str | None, sliding_cells: int
) -> None:
    cells = 8 * 8192 + 40 * sliding_cells
    assert _kv_mib(_plan("gemma-3-12b", build, n_ctx=8192)) == cells * 8 * 256 * 2 * 2 / MIB


def test_that_latents_are_kept_since_april_2025() -> None:
    # Keys of 128 + 64 and values of 128 for 64 heads; since then a latent of 512 + 64.
    whole, latent = 61 * 64 * (192 + 128) * 2, 61 * 576 * 2
    assert _kv_mib(_plan("Kimi-K2", "b4798", n_ctx=8192)) == whole * 8192 / MIB
    assert _kv_mib(_plan("Kimi-K2", "b5200", n_ctx=8192)) == latent * 8192 / MIB


def test_that_slots_have_streams_of_their_own_since_july_2025() -> None:
    before = _plan("Llama-3.1-8B", "b5850", n_ctx=8192, n_parallel=4)
    after = _plan("Llama-3.1-8B", "b5950", n_ctx=8192, n_parallel=4)
    assert before.deployment.kv_unified is True
    assert after.deployment.kv_unified is False
    # The cells are as many; a request has a quarter of them in both.
    assert _kv_mib(before) == _kv_mib(after) == 1024
    assert before.deployment.max_model_len == after.deployment.max_model_len == 2048
    shared = _plan("Llama-3.1-8B", None, n_ctx=8192, n_parallel=4, kv_unified=True)
    assert shared.deployment.max_model_len == 8192


@pytest.mark.parametrize(
    ("build", "flash", "cells"),
    [("b6123", "off", 4128), ("b6123", "on", 4352), ("b6900", "off", 4100), ("b7100", "off", 4352)],
)
def test_that_cells_are_rounded_as_each_build_does(build: str, flash: str, cells: int) -> None:
    budget = _plan("Llama-3.1-8B", build, n_ctx=4100, flash_attn=flash)
    assert _kv_mib(budget) == cells * 131_072 / MIB


def test_that_the_output_layer_went_last_before_december_2025() -> None:
    # Issue 13729, b5466: "offloaded 30/49 layers", 10,750.86 and 6,940.48 MiB.
    held = _buffers(_plan("Qwen3-30B-A3B", "b5466", n_ctx=4096, n_gpu_layers=30)).model_buffers
    assert held["CUDA0"] / MIB == pytest.approx(10_750.86, abs=_PRINTED_MIB)
    assert held["CPU"] / MIB == pytest.approx(6940.48, abs=_PRINTED_MIB)
    # Since then the head is the first of the 30: Q6_K, 151,936 x 2,048, and a norm.
    later = _buffers(_plan("Qwen3-30B-A3B", "b7600", n_ctx=4096, n_gpu_layers=30)).model_buffers
    moved = 151_936 * 2048 * 210 // 256 + 2048 * 4
    layer = held["CUDA0"] // 30
    assert later["CUDA0"] == pytest.approx(held["CUDA0"] + moved - layer, rel=0.01)


def test_that_large_batches_borrowed_the_output_matrix_in_july_2025() -> None:
    # Qwen3-14B in Q8_0 without a layer on its Radeon: 1,094.99 MiB there, 18.01 MiB pinned.
    work = _buffers(
        _plan(
            "Qwen3-14B", "b5850", Vendor.AMD, weight_format="Q8_0", n_gpu_layers=0, n_ctx=4096,
            flash_attn="off",
        )
    ).compute_buffers  # fmt: skip
    assert work["ROCm0"] / MIB == pytest.approx(1094.99, abs=_PRINTED_MIB)
    assert work["ROCm_Host"] / MIB == pytest.approx(18.01, abs=_PRINTED_MIB)


def test_that_every_row_of_logits_was_reserved_until_june_2026() -> None:
    # Llama 3.2 3B under Metal: 64.12 MiB and 5.00 MiB, "n_tokens = 128".
    older = _plan("Llama-3.2-3B", "b8300", Vendor.APPLE, n_ctx=4096, n_ubatch=128)
    work = _buffers(older).compute_buffers
    assert work["MTL0"] / MIB == pytest.approx(64.12, abs=_PRINTED_MIB)
    assert work["MTL_Host"] / MIB == pytest.approx(5.00, abs=_PRINTED_MIB)
    newer = _plan("Llama-3.2-3B", "b9600", Vendor.APPLE, n_ctx=4096, n_ubatch=128)
    assert _buffers(newer).compute_buffers["MTL0"] < 20 * MIB


def test_that_defaults_are_those_of_the_build() -> None:
    assert _plan("Llama-3.1-8B", "b6324", n_ctx=4096).deployment.flash_attn is False
    assert _plan("Llama-3.1-8B", "b6325", n_ctx=4096).deployment.flash_attn is True
    one = _plan("Llama-3.1-8B", "b7078", n_parallel=None).deployment
    assert (one.n_parallel, one.n_ctx) == (1, 4096)
    four = _plan("Llama-3.1-8B", "b7400", n_parallel=None).deployment
    assert (four.n_parallel, four.kv_unified, four.n_ctx) == (4, True, 4096)
    assert _plan("Llama-3.1-8B", "b7500").deployment.n_ctx == 131_072


@pytest.mark.parametrize(
    ("mode", "build", "backend", "message"),
    [
        ("row", "b9600", "cuda", "split_mode row is gone from cuda in b9600"),
        ("row", None, "vulkan", "split_mode row is gone from vulkan"),
        ("tensor", "b8737", "cuda", "b8737 has no split_mode tensor"),
        ("columns", None, "cuda", "none of none, layer, row and tensor"),
    ],
)
def test_that_a_split_which_a_build_has_not_is_refused(
    mode: str, build: str | None, backend: str, message: str
) -> None:
    with pytest.raises(DeploymentError, match=message) as refused:
        _plan("Llama-3.1-8B", build, n_ctx=4096, split_mode=mode, backend=backend)
    assert refused.value.field == "split_mode"


def test_that_splits_are_taken_where_a_build_has_them() -> None:
    assert _plan("Llama-3.1-8B", "b9500", n_ctx=4096, split_mode="row").ranks
    assert _plan("Llama-3.1-8B", "b8738", n_ctx=4096, split_mode="tensor").ranks
    sycl = _plan("Llama-3.1-8B", None, Vendor.INTEL, n_ctx=4096, split_mode="row")
    assert sycl.ranks


# Head width, and the builds that fuse attention over it (``fattn.cu``, ``ggml-vulkan.cpp``).
@pytest.mark.parametrize(
    ("heads", "backend", "flash"),
    [(32, "cuda", True), (16, "cuda", True), (8, "cuda", True), (64, "cuda", True),
     (128, "cuda", False), (128, "vulkan", True), (128, "metal", True)],
)  # fmt: skip
def test_that_auto_fuses_attention_where_a_kernel_is(
    heads: int, backend: str, *, flash: bool
) -> None:
    config: dict[str, object] = {
        "model_type": "llama", "vocab_size": 32000, "hidden_size": 4096,
        "intermediate_size": 11008, "num_hidden_layers": 4, "num_attention_heads": heads,
        "num_key_value_heads": heads, "max_position_embeddings": 4096,
        "tie_word_embeddings": False, "torch_dtype": "float16",
    }  # fmt: skip
    vendor = Vendor.APPLE if backend == "metal" else Vendor.NVIDIA
    deployment = Deployment(runtime="llama.cpp", weight_format="F16", n_ctx=2048, backend=backend)
    found = LlamaCpp().plan(
        read(RawModel("model", "test", config=config)), deployment, _machine(vendor)
    )
    assert found.deployment.flash_attn is flash


def test_that_a_build_is_read_from_its_name_or_number() -> None:
    assert build_of("b6123").number == build_of("6123").number == 6123
    assert build_of(None).number == NEWEST
    for text in ("2026.10", "2025-07", "b12", "latest"):
        with pytest.raises(DeploymentError, match="is no build of") as refused:
            build_of(text)
        assert refused.value.field == "runtime_version"


def test_that_a_plan_says_what_it_rests_on() -> None:
    assert note(build_of(None), is_default=True) == (
        f"llama.cpp b{NEWEST}, the newest whose buffers were read."
    )
    assert "older than b4798" in note(build_of("b4000"), is_default=False)
    assert "newer than" in note(build_of("b20000"), is_default=False)
    budget = _plan("Llama-3.1-8B", "b4000", n_ctx=4096)
    assert note(build_of("b4000"), is_default=False) in budget.assumptions
