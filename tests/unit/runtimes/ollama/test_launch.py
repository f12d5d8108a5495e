"""What Ollama hands to llama-server; right values by hand from its own rules."""

from __future__ import annotations

from typing import Any

import pytest

from engine.architecture.read import read
from engine.architecture.spec import Direction
from engine.budget.model import Budget, Region
from engine.deployment.spec import Deployment
from engine.devices.device import Device, DeviceKind, Machine, Slot, Vendor
from engine.errors import DeploymentError
from engine.evidence import Basis, exactly
from engine.fit.changes import changes
from engine.fit.judge import judge
from engine.fit.solve import limits
from engine.fit.verdict import Fit
from engine.runtimes import registry
from engine.runtimes.llama_cpp import LlamaCpp, shape_of
from engine.runtimes.loading import loaded
from engine.runtimes.ollama import launch
from engine.source.raw import RawModel
from engine.units import GIB, MIB
from tests.helpers.published import model as published

_NOTHING = exactly(0, Basis.SETTING, "test")


def _slot(
    kind: DeviceKind, gib: float, vendor: Vendor = Vendor.NVIDIA, held_gib: float = 0
) -> Slot:
    size = round(gib * GIB)
    capacity = exactly(size, Basis.SETTING, "test")
    held = exactly(round(held_gib * GIB), Basis.SETTING, "test")
    return Slot(Device(f"{gib:g} GiB", vendor, kind, "", size, capacity, sm_count=100), held)


def _machine(*gib: float, vendor: Vendor = Vendor.NVIDIA, platform: str = "linux") -> Machine:
    host = _slot(DeviceKind.HOST, 64, Vendor.CPU)
    kind = DeviceKind.UNIFIED if vendor is Vendor.APPLE else DeviceKind.DISCRETE
    cards = tuple(_slot(kind, size, vendor) for size in gib)
    return Machine("test", cards or (host,), host, is_here=False, platform=platform)


def _plan(machine: Machine, name: str = "Llama-3.1-8B", **settings: Any) -> Budget:
    deployment = Deployment(runtime="ollama", **settings)
    return registry.get("ollama").plan(published(name), deployment, machine)


def _said(budget: Budget, words: str) -> bool:
    return any(words in line for line in budget.assumptions)


@pytest.mark.parametrize(
    ("gib", "context"),
    [
        ((22.9,), 4096), ((23.0,), 32768), ((46.9,), 32768), ((23.5, 23.5), 131072),
        ((12.0, 12.0), 32768), ((), 4096),
    ],
)  # fmt: skip
def test_that_the_context_goes_by_the_memory_of_all_gpus_and_ends_where_the_model_does(
    gib: tuple[float, ...], context: int
) -> None:
    assert _plan(_machine(*gib)).deployment.max_model_len == context


def test_that_memory_left_alone_on_each_gpu_lowers_the_default_context() -> None:
    assert _plan(_machine(23.5), gpu_overhead_bytes=GIB).deployment.max_model_len == 4096


@pytest.mark.parametrize(("context", "lower"), [(262144, 32768), (40960, 32768), (32768, 4096)])
def test_that_one_more_start_takes_the_next_lower_tier(context: int, lower: int) -> None:
    assert launch.next_lower_context(context) == lower


def test_that_the_shortest_context_is_not_cut_further() -> None:
    assert launch.next_lower_context(4096) is None
    assert not _said(_plan(_machine(8)), "once more")
    assert _said(_plan(_machine(24)), "once more with num_ctx 4,096")


def test_that_each_request_has_its_slot_and_its_own_cache() -> None:
    settled = _plan(_machine(24), max_model_len=8192, concurrency=4).deployment
    assert (settled.n_ctx, settled.n_parallel, settled.kv_unified) == (32768, 4, False)
    one = _plan(_machine(24), max_model_len=8192).deployment
    assert (one.n_ctx, one.n_parallel) == (8192, 1)


def test_that_a_total_is_shared_out_over_the_slots() -> None:
    settled = _plan(_machine(24), n_ctx=8192, n_parallel=4).deployment
    assert (settled.n_ctx, settled.max_model_len) == (8192, 2048)
    assert _plan(_machine(80), n_ctx=0).deployment.max_model_len == 131072


def test_that_some_architectures_run_one_request_at_a_time() -> None:
    config: dict[str, object] = {
        "model_type": "lfm2", "vocab_size": 65536, "hidden_size": 2048, "num_hidden_layers": 16,
        "num_attention_heads": 32, "num_key_value_heads": 8, "block_ff_dim": 12288,
        "full_attn_idxs": [2, 5, 8, 10, 12, 14], "max_position_embeddings": 128000,
        "torch_dtype": "bfloat16",
    }  # fmt: skip
    model = read(RawModel("lfm2", "test", config=config))
    plan = Deployment(runtime="ollama", max_model_len=4096, concurrency=4)
    budget = registry.get("ollama").plan(model, plan, _machine(24))
    assert budget.deployment.n_parallel == 1
    assert any("one request at a time" in line for line in budget.warnings)
    assert limits(model, plan, _machine(24)).max_concurrency == 1


def test_that_a_longer_context_than_trained_is_cut_and_told() -> None:
    budget = _plan(_machine(80), max_model_len=262144)
    assert budget.deployment.max_model_len == 131072
    assert any("cuts num_ctx 262,144 to the 131,072" in line for line in budget.warnings)
    found = limits(published("Llama-3.1-8B"), budget.deployment.with_(n_ctx=None), _machine(80))
    assert found.max_context == 131072


# Llama 3.1 8B: 32 layers, 8 KV heads, 4,096 / 32 = 128 wide: 131,072 B a token in F16.
def test_that_ollamas_own_estimate_is_the_file_and_a_plain_cache() -> None:
    shape = shape_of(published("Llama-3.1-8B"), "Q4_K_M")
    assert launch.predicted_bytes(shape, 8192) == shape.weights.size_bytes + GIB
    # It divides the width by the heads, whatever head_dim says, and knows no windows:
    # Gemma 3 27B is 5,376 wide with 32 heads of 128; 62 layers, 16 KV heads.
    gemma = shape_of(published("gemma-3-27b"), "Q4_K_M")
    assert launch.predicted_bytes(gemma, 8192) - gemma.weights.size_bytes == (
        2 * 62 * 16 * (5376 // 32) * 8192 * 2
    )


@pytest.mark.parametrize(
    ("context", "predicted", "available", "tokens"),
    [
        (4096, 1, 100, 512),
        (4097, 1, 100, 1024),
        (32768, 1, 100, 1024),
        (32769, 1, 100, 2048),
        # 60 % for the large one, else 75 % for the middle one, each with its surcharge under 80 %.
        (65536, 60, 100, 2048),
        (65536, 61, 100, 1024),
        (65536, 75, 100, 1024),
        (65536, 76, 100, 512),
        (8192, 7, 10, 1024),
        (8192, 7.5, 10, 512),
        (65536, 5, 8, 1024),
        # Without a GPU nothing is compared.
        (65536, 5, 0, 2048),
        (8192, 5, 0, 1024),
    ],
)
def test_that_the_batch_goes_by_context_and_room(
    context: int, predicted: float, available: float, tokens: int
) -> None:
    shape = shape_of(published("Llama-3.1-8B"), "Q4_K_M")
    found = launch.batch(shape, context, round(predicted * GIB), round(available * GIB))
    assert found == tokens


def test_that_logical_and_physical_batch_are_one_and_can_be_set() -> None:
    settled = _plan(_machine(24)).deployment
    assert (settled.n_batch, settled.n_ubatch) == (1024, 1024)
    settled = _plan(_machine(24), n_batch=256).deployment
    assert (settled.n_batch, settled.n_ubatch) == (256, 256)


@pytest.mark.parametrize(("gib", "context", "tokens"), [(8, 8192, 256), (8, 4096, 512),
                                                        (24, 8192, 512)])  # fmt: skip
def test_that_cuda_without_flash_attention_takes_small_batches(
    gib: float, context: int, tokens: int
) -> None:
    settled = _plan(_machine(gib), max_model_len=context, flash_attn="off").deployment
    assert settled.n_batch == tokens


def test_that_one_gpu_is_taken_where_it_holds_the_estimate_in_four_fifths() -> None:
    # 4.6 GiB of file and 1 GiB of cache: 80 % of 8 GiB less the context holds it, of 6 not.
    assert len(_plan(_machine(8, 24, 8), max_model_len=8192).ranks) == 2
    gpu = _plan(_machine(8, 24, 8), max_model_len=8192).ranks[0]
    assert gpu.slot.device.name == "24 GiB"
    spread = _plan(_machine(6, 6), max_model_len=8192)
    assert len(spread.ranks) == 3
    assert _said(spread, "Spread over 2 GPUs")
    assert len(_plan(_machine(8, 24, 8), max_model_len=8192, sched_spread=True).ranks) == 4


def test_that_gpus_of_two_makers_are_never_mixed() -> None:
    host = _slot(DeviceKind.HOST, 64, Vendor.CPU)
    cards = (
        _slot(DeviceKind.DISCRETE, 8, Vendor.AMD),
        _slot(DeviceKind.DISCRETE, 6),
        _slot(DeviceKind.DISCRETE, 6),
    )
    budget = _plan(Machine("mixed", cards, host, is_here=False), "Qwen2.5-72B", max_model_len=4096)
    vendors = [rank.slot.device.vendor for rank in budget.ranks]
    assert vendors == [Vendor.NVIDIA, Vendor.NVIDIA, Vendor.CPU]


def test_that_what_others_hold_counts_when_a_gpu_is_chosen() -> None:
    host = _slot(DeviceKind.HOST, 64, Vendor.CPU)
    cards = (_slot(DeviceKind.DISCRETE, 24, held_gib=20), _slot(DeviceKind.DISCRETE, 12))
    budget = _plan(Machine("busy", cards, host, is_here=True), max_model_len=4096)
    assert budget.ranks[0].slot.device.name == "12 GiB"


@pytest.mark.parametrize(
    ("machine", "settings", "mapped"),
    [
        (_machine(24), {}, True),
        (_machine(24, platform="windows"), {}, False),
        (_machine(24), {"platform": "windows"}, False),
        (_machine(24, vendor=Vendor.AMD, platform="windows"), {}, True),
        (_machine(), {}, False),
        (_machine(24), {"n_gpu_layers": 0}, False),
        (_machine(24), {"mmap": False}, False),
        (_machine(16, vendor=Vendor.APPLE), {"max_model_len": 4096}, True),
        (_machine(5, vendor=Vendor.APPLE), {"max_model_len": 8192}, False),
    ],
)
def test_that_the_file_is_mapped_only_where_ollama_does(
    machine: Machine, settings: dict[str, Any], mapped: bool
) -> None:
    assert _plan(machine, **settings).deployment.mmap is mapped


def test_that_a_gpu_that_shares_the_ram_reads_the_file_past_the_page_cache() -> None:
    host = _slot(DeviceKind.HOST, 120, Vendor.CPU)
    spark = Machine("spark", (_slot(DeviceKind.UNIFIED, 120),), host, is_here=False)
    budget = _plan(spark)
    assert budget.deployment.mmap is False
    assert _said(budget, "shares the RAM")


def test_that_short_ram_here_keeps_the_file_from_being_mapped() -> None:
    # 4.6 GiB of file and 8 GB of headroom against 10 GiB of RAM; elsewhere the RAM is not known.
    host = _slot(DeviceKind.HOST, 10, Vendor.CPU)
    cards = (_slot(DeviceKind.DISCRETE, 24),)
    here = Machine("here", cards, host, is_here=True, platform="linux")
    there = Machine("there", cards, host, is_here=False, platform="linux")
    assert _plan(here).deployment.mmap is False
    assert _plan(there).deployment.mmap is True


def test_that_keys_and_values_have_one_type() -> None:
    settled = _plan(_machine(24), kv_cache_dtype="q8_0", max_model_len=8192).deployment
    assert (settled.cache_type_k, settled.cache_type_v) == ("q8_0", "q8_0")
    cache = _plan(_machine(24), cache_type_k="q4_0", cache_type_v="q4_0", max_model_len=8192)
    held = cache.ranks[0].regions[Region.KV_CACHE].estimate.likely_bytes
    assert held == 8192 * 131072 * 9 // 32
    with pytest.raises(DeploymentError, match="one type for keys and values") as refused:
        _plan(_machine(24), cache_type_k="q8_0")
    assert refused.value.field == "cache_type_k"


def test_that_a_packed_cache_without_flash_attention_is_refused() -> None:
    with pytest.raises(DeploymentError) as refused:
        _plan(_machine(24), kv_cache_dtype="q8_0", flash_attn="off")
    assert refused.value.field == "cache_type_v"


def test_that_a_checkpoint_is_what_its_library_serves_by_default() -> None:
    assert loaded(published("Llama-3.1-8B"), "ollama").name == "Q4_K_M"
    assert loaded(published("gpt-oss-20b"), "ollama").name == "MXFP4_MOE"
    budget = _plan(_machine(24), max_model_len=8192)
    plain = LlamaCpp().plan(
        published("Llama-3.1-8B"),
        Deployment(runtime="llama.cpp", weight_format="Q4_K_M", max_model_len=8192),
        _machine(24),
    )
    weights = [b.ranks[0].regions[Region.WEIGHTS].estimate for b in (budget, plain)]
    assert weights[0].likely_bytes == weights[1].likely_bytes
    assert budget.deployment.weight_format == "auto"


def test_that_every_figure_beneath_is_llama_servers_own() -> None:
    ours = _plan(_machine(24), max_model_len=8192, n_parallel=2)
    plain = LlamaCpp().plan(
        published("Llama-3.1-8B"),
        Deployment(
            runtime="llama.cpp", weight_format="Q4_K_M", max_model_len=8192, n_parallel=2,
            n_batch=1024, n_ubatch=1024, runtime_version="b10500",
        ),
        _machine(24),
    )  # fmt: skip
    assert ours.llama_cpp == plain.llama_cpp
    assert ours.deployment.runtime == "ollama"
    assert judge(ours).detail.startswith("Ollama takes")


def test_that_what_does_not_fit_can_leave_layers_on_the_host() -> None:
    plan = Deployment(runtime="ollama", max_model_len=8192)
    found = changes(published("Llama-3.1-70B"), plan, _machine(24))
    labels = [change.label for change in found if "on the GPU" in change.label]
    assert labels
    assert all(change.deployment.runtime == "ollama" for change in found)
    assert judge(_plan(_machine(24), "Llama-3.1-70B", max_model_len=8192)).fit is Fit.DOES_NOT_FIT


def test_that_older_releases_are_a_bound_where_their_runners_differed() -> None:
    plain = _plan(_machine(24), max_model_len=8192, runtime_version="0.24.0")
    assert plain.direction(Region.ACTIVATIONS) is Direction.EITHER
    assert plain.direction(Region.KV_CACHE) is None
    windowed = _plan(_machine(24), "gemma-3-4b", max_model_len=8192, runtime_version="0.9")
    assert windowed.direction(Region.KV_CACHE) is Direction.EITHER
    assert windowed.ranks[0].regions[Region.KV_CACHE].estimate.basis is Basis.BOUND
    assert _plan(_machine(24), max_model_len=8192, runtime_version="0.30.0").doubts == ()


@pytest.mark.parametrize("text", ["newest", "", "v", "b1234"])
def test_that_a_version_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(DeploymentError) as refused:
        _plan(_machine(24), runtime_version=text)
    assert refused.value.field == "runtime_version"


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"n_parallel": 0}, "n_parallel"),
        ({"concurrency": 0}, "concurrency"),
        ({"max_model_len": 0}, "max_model_len"),
        ({"max_model_len": -1}, "max_model_len"),
        ({"n_batch": 0}, "n_batch"),
        ({"kv_cache_dtype": "fp8"}, "kv_cache_dtype"),
        ({"weight_format": "awq-int4"}, "weight_format"),
        ({"gpu_overhead_bytes": -1}, "gpu_overhead_bytes"),
    ],
)
def test_that_what_cannot_be_started_is_refused_with_its_setting(
    settings: dict[str, Any], field: str
) -> None:
    with pytest.raises(DeploymentError) as refused:
        _plan(_machine(24), **settings)
    assert refused.value.field == field


def test_that_settings_of_others_are_told() -> None:
    budget = _plan(_machine(24), gpu_memory_utilization=0.8)
    assert "gpu_memory_utilization is a setting of vLLM; Ollama ignores it." in budget.warnings
    plain = Deployment(runtime="llama.cpp", weight_format="Q4_K_M", sched_spread=True)
    told = LlamaCpp().plan(published("Llama-3.1-8B"), plain, _machine(24)).warnings
    assert "sched_spread is a setting of Ollama; llama.cpp ignores it." in told


def test_that_every_default_used_is_listed() -> None:
    budget = _plan(_machine(24))
    for words in ("OLLAMA_NUM_PARALLEL = 1", "num_ctx 32,768", "num_batch 1,024", "KV cache in f16",
                  "Ollama's own estimate is 8.6 GiB"):  # fmt: skip
        assert _said(budget, words), words
    size = shape_of(published("Llama-3.1-8B"), "Q4_K_M").weights.size_bytes
    assert f"{(size + 4 * GIB) / GIB:.1f}" == "8.6"
    assert budget.ranks[0].regions[Region.FOREIGN].estimate == _NOTHING
    assert size > 4000 * MIB
