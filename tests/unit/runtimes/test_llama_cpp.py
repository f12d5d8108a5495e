"""llama.cpp's defaults, roundings and refusals; right values by hand or from its own output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from engine.architecture.read import read
from engine.budget.model import Budget, Region
from engine.deployment.spec import Deployment
from engine.devices.device import Device, DeviceKind, Machine, Slot, Vendor
from engine.errors import DeploymentError
from engine.evidence import Basis, exactly
from engine.runtimes.llama_cpp import LlamaCpp, file_bytes, placements
from engine.source.raw import RawModel
from engine.units import GIB, MIB

if TYPE_CHECKING:
    from engine.architecture.model import Model

_LLAMA_8B: dict[str, object] = {
    "model_type": "llama",
    "vocab_size": 128256,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
_WINDOWED: dict[str, object] = {
    "model_type": "gemma3_text",
    "vocab_size": 262208,
    "hidden_size": 3840,
    "intermediate_size": 15360,
    "num_hidden_layers": 48,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 256,
    "sliding_window": 1024,
    "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16",
}


def _model(config: dict[str, object]) -> Model:
    return read(RawModel("model", "test", config=config))


def _slot(kind: DeviceKind, gib: float, vendor: Vendor = Vendor.NVIDIA) -> Slot:
    size = round(gib * GIB)
    capacity = exactly(size, Basis.SETTING, "test")
    device = Device("device", vendor, kind, "", size, capacity, sm_count=100)
    return Slot(device, exactly(0, Basis.SETTING, "test"))


def _gpus(*gib: float) -> Machine:
    cards = tuple(_slot(DeviceKind.DISCRETE, size) for size in gib)
    return Machine("test", cards, _slot(DeviceKind.HOST, 64, Vendor.CPU), is_here=False)


def _host(gib: float) -> Machine:
    host = _slot(DeviceKind.HOST, gib, Vendor.CPU)
    return Machine("test", (host,), host, is_here=True)


def _plan(machine: Machine, config: dict[str, object] | None = None, **fields: Any) -> Budget:
    fields.setdefault("weight_format", "Q4_K_M")
    deployment = Deployment(runtime="llama.cpp", **fields)
    return LlamaCpp().plan(_model(config or _LLAMA_8B), deployment, machine)


def _kv(budget: Budget) -> int:
    return sum(r.regions[Region.KV_CACHE].estimate.likely_bytes for r in budget.ranks)


def test_that_8192_tokens_of_llama_8b_take_one_gibibyte_in_f16() -> None:
    assert _kv(_plan(_gpus(24), max_model_len=8192)) == GIB


@pytest.mark.parametrize(
    ("cache", "bytes_per_token"),
    [("f16", 131_072), ("q8_0", 69_632), ("q4_0", 36_864), ("f32", 262_144)],
)
def test_that_quantised_caches_take_whole_blocks(cache: str, bytes_per_token: int) -> None:
    budget = _plan(_gpus(24), max_model_len=8192, cache_type_k=cache, cache_type_v=cache)
    assert _kv(budget) == 8192 * bytes_per_token
    assert budget.sequence_state.bytes_per_token == bytes_per_token


def test_that_the_context_is_rounded_up_to_256_cells() -> None:
    assert _plan(_gpus(24), max_model_len=5000).deployment.n_ctx == 5120


def test_that_a_plan_of_few_requests_shares_one_cache_in_four_slots() -> None:
    settled = _plan(_gpus(24), max_model_len=8192, concurrency=3).deployment
    assert (settled.n_ctx, settled.n_parallel, settled.kv_unified) == (24576, 4, True)


def test_that_a_plan_of_many_requests_gives_each_its_slot_and_stream() -> None:
    budget = _plan(_gpus(24), max_model_len=1024, concurrency=8)
    settled = budget.deployment
    assert (settled.n_ctx, settled.n_parallel, settled.kv_unified) == (8192, 8, False)
    assert budget.sequence_state.max_concurrency == 8


def test_that_slots_asked_for_do_not_share_their_cache() -> None:
    settled = _plan(_gpus(24), n_ctx=8192, n_parallel=4).deployment
    assert settled.kv_unified is False
    assert settled.max_model_len == 2048


@pytest.mark.parametrize(
    ("fields", "cells"),
    [
        ({"n_parallel": 4}, 4 * 8192),
        ({"n_parallel": 4, "kv_unified": True}, 8192),
        ({"n_parallel": 2, "kv_unified": True, "concurrency": 3}, 2 * 8192),
        ({"kv_unified": False}, 4 * 8192),
    ],
)
def test_that_each_slot_of_its_own_has_room_for_the_context(
    fields: dict[str, Any], cells: int
) -> None:
    settled = _plan(_gpus(24), max_model_len=8192, **fields).deployment
    assert settled.n_ctx == cells
    assert settled.max_model_len == 8192


def test_that_sizes_of_the_sequence_state_are_of_the_fullest_device() -> None:
    # 32 layers on two equal cards: with the output layer 33 units, so 17 and 15 layers of cache.
    state = _plan(_gpus(24, 24), max_model_len=8192).sequence_state
    assert state.bytes_per_token == 17 * 4096
    assert state.pool_bytes == state.reserved_bytes_per_sequence == 8192 * 17 * 4096
    assert state.architecture_bytes_per_sequence == GIB
    # Without a GPU, or with all layers kept off it, everything is on the host.
    for machine, layers in ((_host(64), None), (_gpus(24), 0)):
        held = _plan(machine, max_model_len=8192, n_gpu_layers=layers).sequence_state
        assert (held.pool_bytes, held.bytes_per_token) == (GIB, 131_072)


def test_that_a_context_that_fits_is_the_models_own() -> None:
    budget = _plan(_gpus(48))
    assert budget.deployment.n_ctx == 131072
    assert any("default" in note and "131,072" in note for note in budget.assumptions)


def test_that_a_context_that_does_not_fit_is_lowered_until_a_gibibyte_is_free() -> None:
    budget = _plan(_gpus(12))
    gpu = budget.ranks[0]
    held = (Region.WEIGHTS, Region.KV_CACHE, Region.ACTIVATIONS)
    projected = sum(gpu.regions[r].estimate.likely_bytes for r in held)
    per_step = 256 * 131_072
    assert projected <= 11 * GIB < projected + 2 * per_step
    assert any("--fit lowers" in note for note in budget.assumptions)


def test_that_the_context_is_never_lowered_below_4096() -> None:
    assert _plan(_gpus(2)).deployment.n_ctx == 4096


def test_that_an_explicit_zero_keeps_the_models_own_context() -> None:
    assert _plan(_gpus(12), n_ctx=0).deployment.n_ctx == 131072


def test_that_window_layers_keep_the_window_of_every_slot_and_one_micro_batch() -> None:
    # Gemma 3: 40 of 48 layers slide. cells = pad256(4 x 1024 + 512) = 4,608; rows of 8 x 256.
    budget = _plan(_gpus(80), _WINDOWED, max_model_len=32768)
    row = 2 * 8 * 256 * 2
    assert _kv(budget) == row * (8 * 32768 + 40 * 4608)
    least = row * (8 * 32768 + 40 * 1024)
    assert budget.ranks[0].regions[Region.KV_CACHE].least_bytes == least
    assert "window" in budget.ranks[0].regions[Region.KV_CACHE].gap


def test_that_swa_full_keeps_the_whole_context_everywhere() -> None:
    budget = _plan(_gpus(80), _WINDOWED, max_model_len=8192, swa_full=True)
    assert _kv(budget) == 2 * 8 * 256 * 2 * 48 * 8192


def test_that_a_tied_embedding_is_held_on_the_host_and_on_the_device() -> None:
    tied = _LLAMA_8B | {"tie_word_embeddings": True}
    budget = _plan(_gpus(24), tied, max_model_len=4096)
    assert budget.llama_cpp is not None
    embedding = 128256 * 4096 // 256 * 210  # Q6_K: a tied embedding is the output
    assert budget.llama_cpp.model_buffers["CPU"] == embedding
    weights = budget.ranks[0].regions[Region.WEIGHTS]
    assert weights.least_bytes == weights.estimate.likely_bytes - embedding
    assert "twice" in weights.gap


def test_that_every_gpu_is_a_rank_and_the_host_another() -> None:
    budget = _plan(_gpus(24, 24), max_model_len=8192)
    assert [r.rank for r in budget.ranks] == [0, 1, 2]
    assert budget.ranks[2].slot.device.kind is DeviceKind.HOST
    # 33 units over two equal cards: layers 0 to 16 here, 17 to 31 and the output there.
    shares = [r.regions[Region.KV_CACHE].estimate.likely_bytes for r in budget.ranks]
    assert shares == [17 * GIB // 32, 15 * GIB // 32, 0]


def test_that_the_last_layers_go_to_the_gpu_first() -> None:
    budget = _plan(_gpus(24), max_model_len=8192, n_gpu_layers=11)
    shares = [r.regions[Region.KV_CACHE].estimate.likely_bytes for r in budget.ranks]
    assert shares == [10 * GIB // 32, 22 * GIB // 32]


def test_that_a_shared_memory_is_one_rank_with_everything_in_it() -> None:
    unified = _slot(DeviceKind.UNIFIED, 36, Vendor.APPLE)
    machine = Machine("mac", (unified,), unified, is_here=False)
    budget = _plan(machine, max_model_len=8192)
    assert len(budget.ranks) == 1
    weights = budget.ranks[0].regions[Region.WEIGHTS].estimate.likely_bytes
    assert weights == pytest.approx(file_bytes(budget.model, "Q4_K_M"), abs=MIB)


def test_that_without_a_gpu_everything_is_in_ram_and_the_map_is_named() -> None:
    budget = _plan(_host(16), max_model_len=8192)
    assert budget.llama_cpp is not None
    assert set(budget.llama_cpp.model_buffers) == {"CPU"}
    assert "RssFile" in budget.ranks[0].regions[Region.WEIGHTS].note
    assert "RssFile" not in (
        _plan(_host(16), max_model_len=8192, mmap=False).ranks[0].regions[Region.WEIGHTS].note
    )


def test_that_logits_of_every_slot_are_reserved_on_the_host() -> None:
    budget = _plan(_gpus(24), max_model_len=8192)
    assert budget.llama_cpp is not None
    assert budget.llama_cpp.output_buffer == 4 * 128256 * 4


def test_that_a_server_reserves_fewer_logits_than_the_library() -> None:
    # Printed by llama.cpp on a GPU at 8k: 290.5 MiB with all outputs, 124 MiB with one.
    def compute(**fields: Any) -> int:
        found = _plan(_gpus(24), n_ctx=8192, n_parallel=1, **fields).llama_cpp
        assert found is not None
        return found.compute_buffers["CUDA0"]

    assert compute(n_outputs_max=0) == pytest.approx(290.52 * MIB, abs=0.01 * MIB)
    assert compute(n_outputs_max=1) == pytest.approx(124.0 * MIB, abs=0.1 * MIB)


def test_that_every_rank_has_every_region() -> None:
    for machine in (_gpus(24), _gpus(24, 24), _host(32)):
        for rank in _plan(machine, max_model_len=8192).ranks:
            assert set(rank.regions) == set(Region)
            assert not rank.has_pool


def test_that_a_mix_takes_its_file_size() -> None:
    # 4,912,898,304 bytes of tensors in the published file, 256 of them rotary factors.
    assert file_bytes(_model(_LLAMA_8B), "Q4_K_M") == 4_912_898_304 - 256


def test_that_auto_keeps_sixteen_bits() -> None:
    model = _model(_LLAMA_8B)
    norms = 65 * 4096
    assert file_bytes(model, "auto") == 2 * (8_030_261_248 - norms) + 4 * norms


def test_that_a_larger_model_offers_what_fit_would_do() -> None:
    model = _model(_LLAMA_8B)
    plan = Deployment(runtime="llama.cpp", weight_format="bf16", max_model_len=8192)
    (found,) = placements(model, plan, _gpus(12))
    assert found.n_gpu_layers is not None
    fitted = LlamaCpp().plan(model, found, _gpus(12)).ranks[0]
    assert fitted.free_bytes > 0
    more = found.with_(n_gpu_layers=found.n_gpu_layers + 3)
    assert LlamaCpp().plan(model, more, _gpus(12)).ranks[0].free_bytes < GIB
    assert placements(model, plan, _gpus(48)) == ()


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({"kv_cache_dtype": "fp8"}, "kv_cache_dtype", "q8_0"),
        ({"cache_type_k": "fp8"}, "cache_type_k", "q8_0"),
        ({"cache_type_v": "q8_0", "flash_attn": "off"}, "cache_type_v", "flash"),
        ({"flash_attn": "maybe"}, "flash_attn", "auto"),
        ({"weight_format": "awq-int4"}, "weight_format", "Q4_K_M"),
        ({"split_mode": "row"}, "split_mode", "layer"),
        ({"tensor_split": (1.0, 1.0, 1.0)}, "tensor_split", "GPU"),
        ({"tensor_split": (0.0,)}, "tensor_split", "0"),
        ({"tensor_split": (float("nan"),)}, "tensor_split", "0"),
        ({"n_parallel": 0}, "n_parallel", "1 to 256"),
        ({"concurrency": 1000}, "concurrency", "1 to 256"),
        ({"max_model_len": 0}, "max_model_len", "1 to"),
        ({"n_ubatch": 0}, "n_ubatch", "1 to"),
        ({"n_ctx": -1}, "n_ctx", "0"),
        ({"n_outputs_max": -1}, "n_outputs_max", "0"),
        ({"n_cpu_moe": -1}, "n_cpu_moe", "0"),
    ],
)
def test_that_an_impossible_plan_names_the_setting(
    fields: dict[str, Any], field: str, words: str
) -> None:
    with pytest.raises(DeploymentError) as caught:
        _plan(_gpus(24), **fields)
    assert caught.value.field == field
    assert words in caught.value.message


def test_that_an_unknown_architecture_is_a_bound() -> None:
    odd = _LLAMA_8B | {"model_type": "made_up"}
    budget = _plan(_gpus(24), odd, max_model_len=8192)
    assert budget.bounds
    assert budget.ranks[0].regions[Region.WEIGHTS].estimate.basis is Basis.BOUND
