"""What vLLM's loader holds beside the tensors: rotary tables, padding, projections kept twice."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from engine.architecture.read import read
from engine.budget.model import Region
from engine.deployment.spec import Deployment
from engine.devices.device import Vendor
from engine.runtimes.registry import get
from engine.source.raw import RawModel
from tests.helpers.published import CONFIGS, H100, MIB, gpu, machine, model

if TYPE_CHECKING:
    from engine.budget.model import RankBudget
    from engine.devices.device import Device
    from engine.evidence import Estimate


def parts(config: dict[str, Any], capability: float = 8.0, **settings: Any) -> dict[str, Estimate]:
    chosen = Deployment(max_model_len=1024, **settings)
    stated = read(RawModel(id="x", source="published dimensions", config=config))
    where = machine(gpu(79.0, capability=capability), chosen.ranks)
    weights = get("vllm").plan(stated, chosen, where).ranks[0].regions[Region.WEIGHTS]
    return {part.label: part for part in weights.estimate.parts}


def table(config: dict[str, Any]) -> int:
    found = parts(config).get("rotary table")
    return found.likely_bytes if found else 0


LLAMA = CONFIGS["Llama-3.1-8B"]
"""131,072 positions, heads of 128."""


@pytest.mark.parametrize(
    ("more", "size"),
    [
        ({}, 131_072 * 128),
        ({"partial_rotary_factor": 0.25}, 131_072 * 32),
        ({"rope_scaling": {"rope_type": "linear", "factor": 4.0}}, 4 * 131_072 * 128),
        (
            {
                "rope_scaling": {
                    "rope_type": "yarn",
                    "factor": 4.0,
                    "original_max_position_embeddings": 65_536,
                }
            },
            262_144 * 128,
        ),
        # Published without the first length: no more is known than the config's positions.
        ({"rope_scaling": {"rope_type": "yarn", "factor": 32.0}}, 131_072 * 128),
        # Two tables, of the short and the long factors (``phi3_long_rope_scaled_rope.py``).
        (
            {"rope_scaling": {"rope_type": "longrope", "original_max_position_embeddings": 4096}},
            (131_072 + 4096) * 128,
        ),
        # Time, height and width: four times as long (``mrope.py``).
        ({"rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]}}, 4 * 131_072 * 128),
        ({"position_embedding_type": "alibi"}, 0),
        ({"rope_scaling": {"rope_type": "linear", "factor": "four"}}, 131_072 * 128),
        ({"partial_rotary_factor": True}, 131_072 * 128),
    ],
)
def test_that_the_rotary_table_is_as_long_and_wide_as_vllm_makes_it(
    more: dict[str, Any], size: int
) -> None:
    assert table(LLAMA | more) == size * 2


def test_that_two_bases_make_two_tables() -> None:
    # Gemma 3 27B: full layers are stretched eight times beside a vision tower. Gemma 4 26B-A4B
    # takes 48.5 GiB as logged: 25,805,933,872 parameters and 262,144 × (256 + 512) × 2 B.
    assert table(CONFIGS["gemma-3-27b"]) == 131_072 * (128 + 8 * 128) * 2
    logged = (25_805_933_872 * 2 + 262_144 * (256 + 512) * 2) / 2**30
    assert logged == pytest.approx(48.5, abs=0.06)


HYBRID = {
    "model_type": "granitemoehybrid",
    "vocab_size": 100_352,
    "hidden_size": 1536,
    "intermediate_size": 512,
    "shared_intermediate_size": 4096,
    "num_hidden_layers": 4,
    "num_attention_heads": 12,
    "num_key_value_heads": 4,
    "mamba_n_heads": 48,
    "mamba_d_head": 64,
    "mamba_d_state": 128,
    "layer_types": ["mamba", "mamba", "mamba", "attention"],
    "num_local_experts": 0,
    "max_position_embeddings": 131_072,
}


def test_that_layers_beside_states_turn_nothing_where_the_family_does_not() -> None:
    # granite-4.0-h-1b: 1,461,538,368 parameters are 2.72 GiB, as logged; a table would be 0.03.
    assert table(HYBRID) == 0
    assert round(1_461_538_368 * 2 / 2**30, 2) == 2.72


GPT_OSS = CONFIGS["gpt-oss-20b"]
EXPERTS = 10_152_345_600
"""Bytes of gpt-oss-20b's experts in MXFP4: the file's 13,761,264,768 less all else."""


def padding(capability: float, **settings: Any) -> Estimate:
    return parts(GPT_OSS, capability, **settings)["expert padding"]


def test_that_experts_are_padded_as_the_card_s_kernels_need() -> None:
    # Marlin: 2,880 to 3,072 and 2,944. Blackwell's: 3,072 and 3,072.
    marlin = EXPERTS * (3072 * 2944 - 2880**2) // 2880**2
    assert padding(8.0).likely_bytes == pytest.approx(marlin, rel=0.01)
    blackwell = EXPERTS * (3072**2 - 2880**2) // 2880**2
    assert padding(10.0).likely_bytes == pytest.approx(blackwell, rel=0.01)
    # H100 with 0.11 and 0.19 printed 13.47 and 13.64 GiB: 0.64 and 0.81 GiB more than the file.
    for version, more in (("0.11.0", 0.638), ("0.19.0", 0.808)):
        found = padding(9.0, runtime_version=version)
        assert found.likely_bytes / 2**30 == pytest.approx(more, abs=0.03)
        assert found.low_bytes / 2**30 < more < found.high_bytes / 2**30


def test_that_spread_experts_are_padded_whole() -> None:
    # With TP 2, half of 2,880 is padded from 1,440 to 1,536; with EP each expert stays whole.
    spread = {"tensor_parallel_size": 2, "enable_expert_parallel": True}
    whole = padding(8.0).likely_bytes
    assert padding(8.0, **spread).likely_bytes == pytest.approx(whole / 2, rel=0.001)
    assert padding(8.0, tensor_parallel_size=2).likely_bytes > 0.7 * whole


def test_that_latents_are_projected_by_copies_only_where_theirs_are_packed() -> None:
    # DeepSeek-V3 by the specification: 61 × 512 × 128 heads × 256 × 2 B = 2,046,820,352 B in FP8.
    config = CONFIGS["Kimi-K2"] | {"num_attention_heads": 128, "num_key_value_heads": 128}
    found = parts(config, weight_format="fp8-block", num_gpu_blocks_override=1000)
    assert found["absorbed projections"].likely_bytes == 2_046_820_352
    assert "absorbed projections" not in parts(config, num_gpu_blocks_override=1000)


V4: dict[str, Any] = {
    "model_type": "deepseek_v4", "vocab_size": 129_280, "hidden_size": 4096,
    "num_hidden_layers": 4, "num_attention_heads": 64, "head_dim": 512, "qk_rope_head_dim": 64,
    "q_lora_rank": 1024, "o_lora_rank": 1024, "o_groups": 8, "sliding_window": 128,
    "compress_ratios": [0, 0, 4, 128, 0], "index_head_dim": 128, "index_n_heads": 64,
    "index_topk": 512, "n_routed_experts": 8, "moe_intermediate_size": 2048, "hc_mult": 4,
    "num_experts_per_tok": 6, "n_shared_experts": 1, "max_position_embeddings": 1_048_576,
    "torch_dtype": "bfloat16",
}  # fmt: skip


def test_that_deepseek_v4_turns_by_two_tables_in_32_bits() -> None:
    # DeepseekV4ScalingRotaryEmbedding: one for plain layers, one for those that compress.
    assert table(V4) == 2 * 1_048_576 * 64 * 4


def test_that_buffers_of_a_step_lie_in_the_figure_for_the_weights() -> None:
    # 512 chosen keys of 4 bytes a token, and four streams of 4,096 in 16 bits for a draft.
    found = parts(V4, max_num_batched_tokens=2048)["step buffers"]
    assert found.likely_bytes == 2048 * (512 * 4 + 4 * 4096 * 2)
    assert "step buffers" not in parts(LLAMA)


def test_that_what_every_layer_looks_up_is_kept_for_a_step() -> None:
    # torch.zeros(max_num_batched_tokens, num_hidden_layers, hidden_size_per_layer_input), 16 bits.
    text = {
        "model_type": "gemma4_text", "vocab_size": 4096, "hidden_size": 1536,
        "intermediate_size": 6144, "num_hidden_layers": 35, "num_attention_heads": 8,
        "num_key_value_heads": 1, "head_dim": 256, "global_head_dim": 512,
        "hidden_size_per_layer_input": 256, "vocab_size_per_layer_input": 4096,
        "num_kv_shared_layers": 0, "sliding_window": 512, "max_position_embeddings": 131_072,
        "layer_types": (["sliding_attention"] * 4 + ["full_attention"]) * 7,
    }  # fmt: skip
    whole = {"model_type": "gemma4", "text_config": text, "torch_dtype": "bfloat16"}
    found = parts(whole, max_num_batched_tokens=8192)["step buffers"]
    assert found.likely_bytes == 8192 * 35 * 256 * 2
    assert "step buffers" not in parts(text)


def test_that_rocm_s_figure_is_read_from_the_device() -> None:
    # Five starts on AMD's cards print more than their tensors: 0.99 GiB for 0.924 of them, 51.79
    # for 51.44, 13.99 for 13.95.
    amd = replace(gpu(192.0, "MI300X"), vendor=Vendor.AMD)
    chosen = Deployment(max_model_len=1024)
    rank = get("vllm").plan(model("Qwen2-0.5B"), chosen, machine(amd)).ranks[0]
    found = {p.label: p for p in rank.regions[Region.WEIGHTS].estimate.parts}
    held = found["held by the allocator"]
    assert held.low_bytes == 0
    assert 0 < held.likely_bytes < 66 * MIB < held.high_bytes
    assert "held by the allocator" not in parts(LLAMA)


def test_that_marlin_may_drop_zero_points() -> None:
    # 6,979,321,856 weights in groups of 128 with half a byte each: 27.3 MB, the distance between
    # the symmetric and the asymmetric packing of Llama-3.1-8B that were printed (29 MB).
    dropped = parts(LLAMA, weight_format="gptq-int4-no-order")["zero points dropped"]
    assert dropped.low_bytes == pytest.approx(-6_979_321_856 // 128 // 2, rel=0.01)
    assert dropped.likely_bytes == dropped.high_bytes == 0
    assert "zero points dropped" not in parts(LLAMA, weight_format="awq-int4")


def test_that_a_head_lay_on_every_stage_once() -> None:
    config = CONFIGS["Kimi-K2"] | {"num_hidden_layers": 4, "n_routed_experts": 8}
    settings = {"pipeline_parallel_size": 2, "num_gpu_blocks_override": 1000}
    idle = parts(config, runtime_version="0.6.6", **settings)["idle head"]
    assert idle.likely_bytes == 163_840 * 7168 * 2
    assert "idle head" not in parts(config, runtime_version="0.19.0", **settings)
    assert "idle head" not in parts(LLAMA, runtime_version="0.6.6", **settings)


def planned(name: str, device: Device = H100, **settings: Any) -> RankBudget:
    plan = Deployment(max_model_len=8192, **settings)
    return get("vllm").plan(model(name), plan, machine(device, plan.ranks)).ranks[0]


def passing(name: str, device: Device = H100, **settings: Any) -> dict[str, Estimate]:
    return {part.label: part for part in planned(name, device, **settings).moments.load}


@pytest.mark.parametrize(
    ("name", "settings", "more"),
    [
        # "Peak GPU memory usage while loading weights" less what lay there after, GiB, of 0.19.
        ("Llama-3.1-8B", {}, 0.06),
        ("Llama-3.1-8B", {"weight_format": "fp32"}, 0.12),
        ("Llama-3.1-8B", {"weight_format": "fp8"}, 0.19),
        ("Llama-3.3-70B-FP8", {"tensor_parallel_size": 2}, 0.14),
        ("Qwen2.5-7B", {}, 0.06),
        ("Qwen2.5-72B", {"tensor_parallel_size": 4}, 0.13),
        ("Qwen3-30B-A3B", {}, 0.03),
        ("gemma-2-27b", {}, 0.07),
        ("gemma-3-12b", {}, 1.94),
        ("gemma-3-4b", {}, 1.30),
    ],
)
def test_that_loading_peaks_as_the_log_says(
    name: str, settings: dict[str, Any], more: float
) -> None:
    found = passing(name, runtime_version="0.19.0", max_num_batched_tokens=8192, **settings)
    found.pop("cold compile")
    likely = sum(part.likely_bytes for part in found.values()) / 2**30
    assert likely == pytest.approx(more, abs=0.025)


def test_that_a_model_quantised_on_the_way_lay_there_whole_once() -> None:
    def more(version: str) -> int:
        found = passing("Llama-3.1-8B", runtime_version=version, weight_format="fp8")
        return found["weights in 16 bits"].likely_bytes

    # 6,979,321,856 weights in layers, 2 bytes each until all are there and 1 after; 0.13 and 0.14
    # held both (pull request 31914).
    assert more("0.12.0") == pytest.approx(6_979_321_856, rel=0.03)
    assert more("0.14.0") == 2 * 6_979_321_856
    streamed = passing("Llama-3.1-8B", runtime_version="0.19.0", weight_format="fp8")
    # The widest matrix, gate and up: 28,672 × 4,096.
    assert streamed["a matrix in 16 bits"].likely_bytes == pytest.approx(28_672 * 4096, rel=0.01)
    # A file that is stored so is not quantised.
    stored = passing("Llama-3.3-70B-FP8", runtime_version="0.12.0", tensor_parallel_size=2)
    assert "weights in 16 bits" not in stored


def test_that_packed_weights_are_laid_out_anew_layer_by_layer() -> None:
    found = passing("Llama-3.1-8B", weight_format="awq-int4")["a layer laid out anew"]
    # 28,672 × 4,096 in 4 bits, and two bytes and a half for each group of 128.
    assert found.likely_bytes == 28_672 * 4096 * (0.5 + 2.5 / 128)
    assert "a layer laid out anew" not in passing("Llama-3.1-8B")
    # Of experts in 16 bits some kernels want gate and up the other way round: 128 × 1,536 × 2,048.
    experts = passing("Qwen3-30B-A3B")["a layer laid out anew"]
    assert (experts.likely_bytes, experts.high_bytes) == (0, 128 * 1536 * 2048 * 2)
    # Before 0.8 no runner kept embeddings.
    assert "input buffer" not in passing("Llama-3.1-8B", runtime_version="0.7.3")


def test_that_awq_s_own_kernels_unpack_the_widest_matrix() -> None:
    def activations(device: Device, **settings: Any) -> Estimate:
        chosen = {"runtime_version": "0.7.3", "max_num_seqs": 8, "weight_format": "awq-int4"}
        rank = planned("Llama-3.1-8B", device, **(chosen | settings))
        return rank.regions[Region.ACTIVATIONS].estimate

    matrix = 28_672 * 4096 * 2
    turing, ampere = gpu(14.74, "T4", capability=7.5), gpu(23.58, "RTX 3090", capability=8.6)
    plain = activations(turing, weight_format="gptq-int4")
    assert activations(turing).likely_bytes - plain.likely_bytes == matrix
    # Marlin's kernels take their place since Ampere, unless AWQ's own are asked for.
    marlin = activations(ampere)
    plain = activations(ampere, weight_format="gptq-int4")
    assert marlin.likely_bytes == plain.likely_bytes
    assert marlin.high_bytes - plain.high_bytes == matrix
    assert activations(turing, max_num_batched_tokens=255).likely_bytes < matrix


def test_that_cards_without_links_take_less_for_collectives() -> None:
    def inside(version: str) -> Estimate:
        card = gpu(14.74, "T4", capability=7.5)
        rank = planned("Llama-3.2-3B", card, runtime_version=version, tensor_parallel_size=2)
        found = rank.regions[Region.RUNTIME].estimate.parts
        return next(p for p in found if p.label == "collectives, workspaces")

    # 0.12 GiB on two T4 with 0.7 and 0.20 on four cards of 22 GB with 0.8.
    assert inside("0.7.1").low_bytes / 2**30 < 0.12
    assert inside("0.8.5").high_bytes / 2**30 > 0.20
    assert inside("0.7.1").likely_bytes == pytest.approx(0.16 * 2**30, abs=2 * MIB)


def test_that_contexts_lay_in_the_growth_once() -> None:
    def labels(version: str) -> set[str]:
        plan = Deployment(max_model_len=4096, runtime_version=version)
        rank = get("vllm").plan(model("Llama-2-7b"), plan, machine(H100)).ranks[0]
        return {part.label for part in rank.regions[Region.RUNTIME].estimate.parts}

    for version, apart in (("0.2.4", True), ("0.2.5", False), ("0.6.4", False), ("0.6.5", True)):
        assert ("CUDA context" in labels(version)) is apart


def test_that_a_file_that_is_not_there_may_be_packed_otherwise() -> None:
    # 33.94, 18.03 and 8.49 GiB were printed of files of three publishers whose layers come to
    # 33.40, 17.50 and 8.58 if all are packed.
    found = parts(LLAMA, weight_format="awq-int4")["the publisher's packing"]
    tensors = parts(LLAMA, weight_format="awq-int4")["tensors"].likely_bytes
    assert found.low_bytes / tensors == pytest.approx(-0.012, abs=0.001)
    assert found.high_bytes / tensors == pytest.approx(0.03, abs=0.001)
    # vLLM's own, and a config's, are known.
    assert "the publisher's packing" not in parts(LLAMA, weight_format="fp8")
    assert "the publisher's packing" not in parts(GPT_OSS)


def test_that_eager_starts_take_less_for_collectives_on_hopper() -> None:
    def inside(**settings: Any) -> Estimate:
        rank = planned("Llama-3.1-8B", tensor_parallel_size=2, **settings)
        found = rank.regions[Region.RUNTIME].estimate.parts
        return next(p for p in found if p.label == "collectives, workspaces")

    # 2.06 to 2.21 GiB in eleven compiled starts on H100; at most 1.0 for an eager one on H200.
    compiled = inside(runtime_version="0.19.0")
    assert compiled.low_bytes / 2**30 < 2.06
    assert compiled.high_bytes / 2**30 > 2.21
    assert inside(runtime_version="0.19.0", enforce_eager=True).likely_bytes < 2**30
    older = {"runtime_version": "0.11.0"}
    assert inside(**older) == inside(**older, enforce_eager=True)


def test_that_starts_on_amd_s_cards_take_more_outside_pytorch() -> None:
    # Gemma 3 27B under 0.11: 0.9 of 192 GB, less 51.79 of weights, 9.86 of activations and
    # 109.86 of pool, leaves about 1.2 GiB.
    amd = replace(gpu(191.98, "MI300X"), vendor=Vendor.AMD)
    rank = planned("gemma-3-27b", amd, runtime_version="0.11.0")
    inside = next(p for p in rank.regions[Region.RUNTIME].estimate.parts if p.label == "workspaces")
    left = 0.9 * 191.98 - 51.79 - 9.86 - 109.86
    assert inside.low_bytes / 2**30 < left < inside.high_bytes / 2**30
    assert inside.likely_bytes / 2**30 == pytest.approx(left, abs=0.5)
