"""What vLLM's loader holds beside the tensors: rotary tables, padding, projections kept twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from engine.architecture.read import read
from engine.budget.model import Region
from engine.deployment.spec import Deployment
from engine.runtimes.registry import get
from engine.source.raw import RawModel
from tests.helpers.published import CONFIGS, gpu, machine

if TYPE_CHECKING:
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
