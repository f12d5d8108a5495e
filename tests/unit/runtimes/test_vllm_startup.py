"""What a start of vLLM takes beside weights and pool: held to logs and to vLLM's own source."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from engine.architecture.spec import ModuleClass
from engine.budget.model import Region
from engine.budget.phases import Phase, peaks
from engine.cancel import CancelToken
from engine.contract.desk import Desk
from engine.contract.request import parse
from engine.deployment.spec import Deployment
from engine.devices import catalogue
from engine.errors import DeploymentError
from engine.evidence import Basis
from engine.runtimes.registry import get
from engine.runtimes.vllm import encoders, graphs, transients
from engine.runtimes.vllm.runner import Runner, Sampling, runner, sampling
from engine.runtimes.vllm.settings import settle
from engine.runtimes.vllm.stage import stage_plans
from tests.helpers.published import GIB, H100, MIB, RTX_4090, gpu, machine, model

if TYPE_CHECKING:
    from engine.budget.model import RankBudget
    from engine.devices.device import Device
    from engine.evidence import Estimate
    from engine.runtimes.vllm.activations import Step
    from engine.runtimes.vllm.stage import StagePlan

A100 = gpu(79.25, "A100 80GB", sm_count=108, capability=8.0)
RTX_3090 = gpu(23.58, "RTX 3090", sm_count=82, capability=8.6)
T4 = gpu(14.74, "T4", sm_count=40, capability=7.5)
B200 = gpu(178.35, "B200", sm_count=148, capability=10.0)
H200 = gpu(139.81, "H200", sm_count=132, capability=9.0)


def rank(name: str, device: Device = H100, **settings: Any) -> RankBudget:
    chosen: dict[str, Any] = {"max_model_len": 8192} | settings
    plan = Deployment(**chosen)
    return get("vllm").plan(model(name), plan, machine(device, plan.ranks)).ranks[0]


def stage(name: str, device: Device = H100, **settings: Any) -> StagePlan:
    chosen: dict[str, Any] = {"max_model_len": 8192} | settings
    plan = Deployment(**chosen)
    settled = settle(model(name), plan, machine(device, plan.ranks))
    return stage_plans(model(name), settled, 8192)[0]


def step(name: str, device: Device = H100, **settings: Any) -> Step:
    return stage(name, device, **settings).step


def activations(name: str, device: Device = H100, **settings: Any) -> Estimate:
    return rank(name, device, **settings).regions[Region.ACTIVATIONS].estimate


# GiB of "peak activation" in published logs, none of which is left out because it does not fit.
@pytest.mark.parametrize(
    ("name", "device", "settings", "gib"),
    [
        ("Llama-3.1-8B", H100, {"runtime_version": "0.19.0"}, 1.89),
        ("Qwen2.5-72B", H100, {"runtime_version": "0.19.0", "tensor_parallel_size": 2}, 2.29),
        ("gemma-2-27b", H100, {"runtime_version": "0.19.0"}, 3.66),
        ("gemma-2-2b", H100, {"runtime_version": "0.19.0"}, 3.62),
        ("phi-2", H100, {"runtime_version": "0.19.0", "max_model_len": 2048}, 0.79),
        ("gpt-oss-20b", H100, {"runtime_version": "0.19.0", "tensor_parallel_size": 2}, 2.87),
        ("Qwen3-30B-A3B", H100, {"runtime_version": "0.19.0"}, 2.68),
        ("Qwen1.5-MoE-A2.7B", H100, {"runtime_version": "0.19.0"}, 2.47),
        ("Qwen3-14B", H100, {"runtime_version": "0.16.0"}, 5.64),
        ("Qwen3-14B", H100, {"runtime_version": "0.17.0"}, 2.23),
        ("Qwen3-0.6B", H100, {"runtime_version": "0.11.0"}, 5.56),
        ("gpt-oss-20b", H100, {"runtime_version": "0.11.0"}, 7.38),
        ("Llama-3-8B", H100, {"runtime_version": "0.6.4", "max_num_batched_tokens": 8192}, 1.26),
        (
            "Llama-3.1-8B",
            RTX_3090,
            {"runtime_version": "0.6.4", "max_model_len": 20_000},
            2.07,
        ),
        (
            "Llama-3.1-8B",
            RTX_3090,
            {"runtime_version": "0.6.4", "max_model_len": 29_000},
            2.99,
        ),
        (
            "phi-4",
            T4,
            {"runtime_version": "0.7.1", "max_num_seqs": 128, "max_num_batched_tokens": 512,
             "max_model_len": 512},
            0.47,
        ),
        (
            "Mistral-7B-v0.3",
            RTX_4090,
            {"runtime_version": "0.8.5", "max_num_seqs": 224, "max_num_batched_tokens": 1024},
            0.28,
        ),
    ],
)  # fmt: skip
def test_that_activations_are_those_of_the_log(
    name: str, device: Device, settings: dict[str, Any], gib: float
):
    found = activations(name, device, **settings)
    assert found.likely_bytes / GIB == pytest.approx(gib, abs=0.015)
    assert found.low_bytes / GIB - 0.005 <= gib <= found.high_bytes / GIB + 0.005


def test_that_the_forward_pass_decides_where_few_words_are_sampled():
    # Granite 3.1 8B has 49,155 words: 0.85 GiB in the log, 0.68 of them would be the sampler's.
    found = activations("granite-3.1-8b", runtime_version="0.19.0")
    assert found.likely_bytes / GIB == pytest.approx(0.85, abs=0.02)
    assert "forward pass" in found.formula


def test_that_the_sampler_is_counted_by_release_and_kernel():
    # By hand, 256 rows × 128,256 words; hidden states 2,048 × 4,096 × 2 B, sampled ones twice,
    # cuBLAS 8,519,680 B; 36 + 2 B a word sorted, 12 + 2 B in 0.17 with 128 rows of words beside.
    cells, hidden, drawn = 256 * 128_256, 2048 * 4096 * 2, 256 * 4096 * 2
    old = activations("Llama-3.1-8B", RTX_4090, runtime_version="0.16.0")
    assert old.likely_bytes == 38 * cells + hidden + 2 * drawn + 8_519_680
    triton = activations("Llama-3.1-8B", RTX_4090, runtime_version="0.17.0")
    assert triton.likely_bytes == 14 * cells + 128 * 128_256 * 4 + hidden + 2 * drawn + 8_519_680
    fused = activations("Llama-3.1-8B", RTX_4090, runtime_version="0.21.0")
    assert fused.likely_bytes == 14 * cells + hidden + 2 * drawn + 8_519_680
    # Below 128 rows all of them are sorted at once, with 48 B a word.
    few = activations("Llama-3.1-8B", RTX_4090, runtime_version="0.16.0", max_num_seqs=100)
    assert few.likely_bytes == 50 * 100 * 128_256 + hidden + 2 * 100 * 8192 + 8_519_680


def test_that_each_release_starts_its_own_runner():
    qwen3, llama = model("Qwen3-8B").spec, model("Llama-3.1-8B").spec
    mixtral, gemma3 = model("Mixtral-8x7B").spec, model("gemma-3-4b").spec
    assert runner(llama, (0, 7, 3), 8.9, "bf16") is Runner.V0
    assert runner(llama, (0, 8, 5), 7.5, "fp16") is Runner.V0
    assert runner(llama, (0, 8, 5), 8.0, "bf16") is Runner.V1
    # DEFAULT_V2_MODEL_RUNNER_ARCHITECTURES of 0.22 and 0.24.
    assert runner(qwen3, (0, 22), 9.0, "bf16") is Runner.V2
    assert runner(qwen3, (0, 22), 9.0, "fp8") is Runner.V1
    assert runner(llama, (0, 22), 9.0, "bf16") is Runner.V1
    assert runner(llama, (0, 24), 9.0, "fp8") is Runner.V2
    # From 0.25 on all without experts or states, from 0.29 on all.
    assert runner(gemma3, (0, 24), 9.0, "bf16") is Runner.V1
    assert runner(gemma3, (0, 25), 9.0, "bf16") is Runner.V2
    assert runner(mixtral, (0, 28), 9.0, "bf16") is Runner.V1
    assert runner(mixtral, (0, 29), 9.0, "bf16") is Runner.V2


def test_that_flashinfer_samples_only_where_it_has_kernels():
    assert sampling(Runner.V1, (0, 21), H100, 256) is Sampling.FUSED
    volta = gpu(31.7, "V100", sm_count=80, capability=7.0)
    assert sampling(Runner.V1, (0, 21), volta, 256) is Sampling.TRITON
    assert sampling(Runner.V1, (0, 19), H100, 4) is Sampling.SORTED
    assert sampling(Runner.V2, (0, 28), H100, 256) is Sampling.IN_PLACE
    assert sampling(Runner.V2, (0, 33), H100, 256) is Sampling.FUSED


@pytest.mark.parametrize(("name", "gib"), [("gemma-3-4b", 3.89), ("gemma-3-12b", 3.94)])
def test_that_the_largest_images_stay_beside_the_sampler(name: str, gib: float):
    found = activations(name, runtime_version="0.19.0")
    assert found.likely_bytes / GIB == pytest.approx(gib, abs=0.015)


def test_that_as_many_largest_images_are_tried_as_a_step_holds():
    # 8,192 tokens hold 32 images of 256; each has 4,096 patches of 3 × 14 × 14 values.
    item = encoders.largest(model("gemma-3-4b"), 8192, 8192)
    assert item is not None
    assert (item.count, item.tokens, item.patches) == (32, 8192, 32 * 4096)
    assert item.pixels == 32 * 3 * 896 * 896
    assert encoders.largest(model("Llama-3.1-8B"), 8192, 8192) is None


def test_that_gemma_4_is_tried_with_videos_whose_patches_are_written_out():
    # A video: 32 frames of 70 tokens and 8 of text; 3 × 3 patches to a token, 3 × 16 × 16 values.
    request = parse({"model": "google/gemma-4-26B-A4B", "runtime": "vllm", "gpu": "H100 80GB"})
    item = encoders.largest(Desk(CancelToken()).plan(request).model, 8192, 8192)
    assert item is not None
    assert (item.count, item.tokens, item.frames) == (3, 3 * 2496, 96)
    assert (item.patches, item.pixels) == (96 * 630, 96 * 630 * 768)
    # Of 10,240 places along each side one is set, first as indices of 8 bytes, then in 16 bits.
    frame, pixels = 630 * 2 * 10_240 * (8 + 2), 2 * item.pixels
    assert item.peak(2, (0, 19), 80 * GIB).likely_bytes == frame + pixels
    # A tenth of 80 GiB holds 41 frames, each of twice 630 × 2 × 10,240 × 8 bytes; of 24 GiB 12.
    assert item.peak(2, (0, 24), 80 * GIB).likely_bytes == 41 * frame + pixels
    assert item.peak(2, (0, 24), 24 * GIB).likely_bytes == 12 * frame + pixels
    between = item.peak(2, (0, 22), 24 * GIB)
    assert between.low_bytes == frame
    assert between.likely_bytes == 12 * frame + pixels


# Sizes by hand from the loops of _set_cudagraph_sizes and of V0's list.
@pytest.mark.parametrize(
    ("settings", "device", "pieces", "whole"),
    [
        # 1, 2, 4, 8 … 248, 256 … 512 by 16; whole up to max_num_seqs.
        ({"runtime_version": "0.19.0"}, H100, 51, 51),
        ({"runtime_version": "0.19.0", "max_num_seqs": 256}, H100, 51, 35),
        ({"runtime_version": "0.19.0", "max_num_seqs": 40}, H100, 13, 8),
        ({"max_num_seqs": 1}, H100, 2, 1),
        ({"runtime_version": "0.9.2", "max_num_seqs": 256}, H100, 67, 0),
        ({"runtime_version": "0.10.2", "max_num_seqs": 128}, H100, 35, 0),
        ({"runtime_version": "0.11.0", "max_num_seqs": 128}, H100, 35, 19),
        ({"runtime_version": "0.7.3", "max_num_seqs": 160}, T4, 0, 23),
        ({"max_num_seqs": 1024, "max_num_batched_tokens": 8192}, B200, 83, 83),
        ({"enforce_eager": True}, H100, 0, 0),
    ],
)
def test_that_capture_sizes_are_those_of_the_release(
    settings: dict[str, Any], device: Device, pieces: int, whole: int
):
    found = graphs.captures(step("Llama-3.1-8B", device, **settings))
    assert (found.pieces, found.whole) == (pieces, whole)


# GiB captured by 0.19 on H100, of which 27 dense starts made the law.
@pytest.mark.parametrize(
    ("name", "settings", "gib"),
    [
        ("Llama-3.1-8B", {}, 0.91),
        ("Llama-3.1-8B", {"tensor_parallel_size": 2}, 0.76),
        ("Llama-3.1-8B", {"tensor_parallel_size": 4}, 0.67),
        ("Llama-3.1-8B", {"pipeline_parallel_size": 2}, 0.65),
        ("Llama-3.1-8B", {"pipeline_parallel_size": 4}, 0.51),
        ("Qwen2.5-72B", {"tensor_parallel_size": 2}, 1.61),
        ("gemma-2-2b", {}, 0.71),
        ("Qwen3-30B-A3B", {}, 1.41),
        ("gpt-oss-20b", {"tensor_parallel_size": 2}, 1.55),
    ],
)
def test_that_graphs_lie_in_their_range(name: str, settings: dict[str, Any], gib: float):
    found = rank(name, runtime_version="0.19.0", **settings).regions[Region.CUDA_GRAPHS].estimate
    assert found.low_bytes <= gib * GIB <= found.high_bytes
    assert found.basis is Basis.FITTED


@pytest.mark.parametrize(
    ("device", "version", "settings", "gib"),
    [
        # Qwen3-8B piece by piece, 67 sizes: on an A100 of 40 GB, and in FP8 on a card of 24 GB.
        (A100, "0.9.2", {}, 2.24),
        (RTX_3090, "0.10.2", {"weight_format": "fp8-block"}, 0.68),
    ],
)
def test_that_pieces_alone_lie_in_their_range(
    device: Device, version: str, settings: dict[str, Any], gib: float
):
    found = rank("Qwen3-8B", device, runtime_version=version, **settings)
    estimate = found.regions[Region.CUDA_GRAPHS].estimate
    assert estimate.low_bytes / GIB <= gib <= estimate.high_bytes / GIB
    assert estimate.likely_bytes / GIB == pytest.approx(0.9, abs=0.1)


def test_that_graphs_of_spread_experts_are_open_upwards():
    # 4.99 GiB were estimated for a large mixture of experts under TP 4 with 51 sizes.
    ask: dict[str, Any] = {"tensor_parallel_size": 4, "runtime_version": "0.24.0"}
    whole, spread = (
        rank("Qwen3-30B-A3B", enable_expert_parallel=each, **ask)
        .regions[Region.CUDA_GRAPHS]
        .estimate
        for each in (False, True)
    )
    assert spread.likely_bytes == whole.likely_bytes
    assert spread.high_bytes > 1.5 * whole.high_bytes


def test_that_buffers_of_the_second_runner_count_from_0_27_on():
    # 1,024 rows of 128,256 counters and of 4,008 masks, 4 B each (penalties.py), block tables of
    # 8,192 / 16 entries, and 3,329 entries of token lists (logit_bias.py, bad_words.py).
    bytes_of_rows = 525_336_576 + 16_416_768 + 1024 * 4 * (512 + 2 * 1024 + 128 + 1024 + 129)
    found = stage("Llama-3.1-8B").buffers
    assert found is not None
    assert found.likely_bytes == bytes_of_rows
    parts = rank("Llama-3.1-8B").regions[Region.RUNTIME].estimate.parts
    assert found in parts
    assert stage("Llama-3.1-8B", runtime_version="0.21.0").buffers is None

    def pool(version: str) -> int:
        known = rank("Llama-3.1-8B", runtime_version=version)
        taken = sum(
            known.regions[region].estimate.likely_bytes
            for region in (Region.WEIGHTS, Region.ACTIVATIONS, Region.CUDA_GRAPHS)
        )
        return taken + known.regions[Region.KV_CACHE].estimate.likely_bytes

    # 0.25 runs the second runner too, but reads only what PyTorch tells of its own. Beside the
    # buffers 0.27 grew by about 200 MiB in two starts, what came before by 256 MiB.
    assert pool("0.25.0") - pool("0.27.0") == pytest.approx(bytes_of_rows - 56 * MIB, abs=MIB)


def test_that_an_indexer_asks_for_more_than_a_start_shows():
    # 9.89 GiB asked for by GLM-5 on H200 at 10,240-token prompts, 48 to 64 requests at once.
    plain = step("Kimi-K2", H200, runtime_version="0.16.0", tensor_parallel_size=8)
    attention = plain.spec.layers[1].attention
    assert attention is not None
    layer = replace(plain.spec.layers[1], attention=replace(attention, index_head_dim=128))
    sparse = plain._replace(spec=replace(plain.spec, layers=(layer,)), tokens=16_384)
    (logits,) = (
        part
        for part in transients.sustained(sparse, H200, 48, 10_240)
        if part.label.startswith("index logits")
    )
    assert logits.low_bytes <= 9.89 * GIB <= logits.high_bytes
    # 0.19 cuts them into 512 MiB, for which the profile run makes room.
    later = transients.sustained(sparse._replace(version=(0, 19)), H200, 48, 10_240)
    assert not any(part.label.startswith("index logits") for part in later)


def test_that_latent_attention_gathers_cached_context_beside_the_budget():
    # 65,536 rows × (512 + 64) × 2 B.
    found = transients.sustained(step("Kimi-K2", tensor_parallel_size=8), H100, 1, 8192)
    assert [part.likely_bytes for part in found] == [75_497_472]


def test_that_flashinfers_workspace_comes_with_the_first_request():
    found = rank("Llama-3.1-8B", B200).moments.sustained
    assert [part.likely_bytes for part in found] == [394 * MIB]
    assert rank("Llama-3.1-8B", H100).moments.sustained == ()


def test_that_decoding_takes_less_than_the_largest_step():
    few = rank("Llama-3.1-8B", concurrency=4)
    prefill, decode = (
        next(p for p in peaks(few) if p.phase is phase) for phase in (Phase.PREFILL, Phase.DECODE)
    )
    assert decode.estimate.likely_bytes < prefill.estimate.likely_bytes
    # Four rows sorted or drawn: under 50 B × 4 × 128,256, and cuBLAS's 32 MiB.
    assert few.moments.decode is not None
    assert 32 * MIB < few.moments.decode.likely_bytes < 32 * MIB + 50 * 4 * 128_256


def test_that_a_first_start_compiles_before_there_is_a_pool():
    def compiling(**settings: Any) -> list[Estimate]:
        return [p for p in rank("Llama-3.1-8B", **settings).moments.load if "compile" in p.label]

    # 2.28 GiB were lost by one cold start on a card of 32 GB, which the next got back.
    (found,) = compiling()
    assert found.likely_bytes == 0
    assert found.high_bytes / GIB == pytest.approx(2.3, abs=0.05)
    assert compiling(enforce_eager=True) == []
    assert compiling(runtime_version="0.7.3") == []


def test_that_a_first_start_is_said_to_leave_less():
    compiled, eager = rank("Llama-3.1-8B"), rank("Llama-3.1-8B", enforce_eager=True)
    assert "second start" in compiled.regions[Region.KV_CACHE].gap
    assert "second start" not in eager.regions[Region.KV_CACHE].gap


def test_that_wsl_keeps_part_of_a_card_from_vllm():
    # 22.45 and 22.75 GiB were free of 23.99 under WSL; the share is of the whole card.
    card = catalogue.find("RTX 4090")
    where = catalogue.machine(card)
    plan = Deployment(platform="wsl", max_model_len=8192, gpu_memory_utilization=0.5)
    (found,) = get("vllm").plan(model("Qwen2-0.5B"), plan, where).ranks
    foreign = found.regions[Region.FOREIGN].estimate
    assert foreign.low_bytes <= 1.25 * GIB < 1.54 * GIB <= foreign.high_bytes
    assert found.slot.device.allocatable.likely_bytes == card.total_bytes


def test_that_unified_memory_opens_the_pool():
    dgx = catalogue.find("GB10")
    whole = catalogue.machine(dgx)
    plan = Deployment(max_model_len=16_384, gpu_memory_utilization=0.49)
    (found,) = get("vllm").plan(model("Qwen3-30B-A3B"), plan, whole).ranks
    pool = found.regions[Region.KV_CACHE].estimate
    # 4.85 GiB in a log: less was taken than the weights hold.
    assert pool.low_bytes <= 4.85 * GIB <= pool.high_bytes


def test_that_a_plan_for_text_alone_leaves_the_encoder_out():
    both = rank("gemma-3-4b", runtime_version="0.19.0").regions
    text = rank("gemma-3-4b", runtime_version="0.19.0", language_model_only=True).regions
    # 14 B × 1,024 × 262,208 words, 4 B × 132 multiprocessors, hidden and sampled states, cuBLAS.
    alone = 14 * 1024 * 262_208 + 4 * 132 * 262_208 + 8192 * 2560 * 2 + 2 * 1024 * 2560 * 2
    assert text[Region.ACTIVATIONS].estimate.likely_bytes == alone + 32 * MIB
    tower = sum(
        tensor.parameters
        for tensor in model("gemma-3-4b").spec.outer
        if tensor.module is ModuleClass.VISION
    )
    saved = both[Region.WEIGHTS].estimate.likely_bytes - text[Region.WEIGHTS].estimate.likely_bytes
    assert saved == 2 * tower > 0
    with pytest.raises(DeploymentError, match=r"from 0\.17 on"):
        rank("gemma-3-4b", runtime_version="0.16.0", language_model_only=True)
