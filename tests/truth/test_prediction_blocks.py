"""What repositories store beside the built model, against the prediction blocks that are counted.

Source:
    ``configs/index.jsonl`` and ``configs/hub_catalogue.jsonl`` beside the checkout: the totals
    of all stored numbers that the Hub publishes. They also hold what is no parameter: the biases
    that correct a router (one number an expert), tables of the hashing routers, and the scales of
    FP8 (one number for 128 x 128 weights).
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from engine.architecture.read import specify

CONFIGS = Path(__file__).resolve().parents[2].parent / "shared" / "configs"
pytestmark = pytest.mark.skipif(
    not CONFIGS.is_dir(), reason="the published configs are not beside this checkout"
)

STATED = ("num_nextn_predict_layers", "num_mtp_modules", "mtp_num_hidden_layers")
# Scales of the layers and the block together, by hand. DeepSeek-V3: attention, dense, experts.
V3_SCALES = 62 * (672 + 2304 + 280 + 1024 + 7168) + 3 * 3 * 144 * 56 + 59 * 257 * 3 * 16 * 56
V32_SCALES = V3_SCALES + 62 * (64 * 12 + 56)
GLM5_SCALES = (
    79 * (768 + 2048 + 240 + 896 + 6144 + 512 + 48) + 3 * 3 * 96 * 48 + 76 * 257 * 3 * 16 * 48
)
M2_SCALES = 62 * (1152 + 2 * 192 + 1152 + 256 * 3 * 12 * 24)
HASHED = 3 * 129_280 * 6
# The copies of Step's config leave out that sliding layers have 96 heads, not 64: in 33 of the
# layers and the 3 blocks 32 heads of 128 in query and output, and their gates.
STEP_HEADS = 36 * (2 * 32 * 128 + 32) * 4096
BESIDE = {
    "deepseek-ai/DeepSeek-R1": 59 * 256,
    "deepseek-ai/DeepSeek-R1-0528": 59 * 256 + V3_SCALES,
    "deepseek-ai/DeepSeek-V3": 59 * 256 + V3_SCALES,
    "deepseek-ai/DeepSeek-V3.1": 59 * 256 + V3_SCALES,
    "deepseek-ai/DeepSeek-V3.2": 59 * 256,
    "deepseek-ai/DeepSeek-V3.2-Exp": 59 * 256 + V32_SCALES,
    "deepseek-ai/DeepSeek-V4-Flash": 41 * 256 + HASHED,
    "deepseek-ai/DeepSeek-V4-Pro": 59 * 384 + HASHED,
    "zai-org/GLM-4.5": 90 * 160,
    "zai-org/GLM-5": 76 * 256,
    "zai-org/GLM-5-FP8": 76 * 256 + GLM5_SCALES,
    "zai-org/GLM-5.1": 76 * 256,
    "zai-org/GLM-5.1-FP8": 76 * 256 + GLM5_SCALES,
    "zai-org/GLM-5.2": 76 * 256,
    "zai-org/GLM-5.2-FP8": 76 * 256,
    "stepfun-ai/Step-3.7-Flash": STEP_HEADS + 42 * 288,
    "stepfun-ai/Step-3.7-Flash-FP8": STEP_HEADS + 42 * 288 + 42 * 288 * 3 * 10 * 32,
    # The blocks are stated and not stored.
    "MiniMaxAI/MiniMax-M2.5": 62 * 256 + M2_SCALES,
    "MiniMaxAI/MiniMax-M2.7": 62 * 256,
}
"""Model -> stored numbers that are no parameters; none in the others."""


@cache
def rows(name: str) -> tuple[dict[str, Any], ...]:
    lines = (CONFIGS / name).read_text(encoding="utf-8").splitlines()
    return tuple(json.loads(line) for line in lines)


def published(name: str) -> int:
    return next(r["parameters_raw"] for r in rows("hub_catalogue.jsonl") if r["name"] == name)


def states_blocks(config: dict[str, Any]) -> bool:
    inner: dict[str, Any] = config.get("text_config") or {}
    return any(owner.get(key) for owner in (config, inner) for key in STATED)


def stored(config: dict[str, Any]) -> int:
    spec = specify(config)
    return spec.parameters + sum(tensor.parameters for tensor in spec.mtp)


def test_that_stored_totals_come_out_to_the_number() -> None:
    apart: dict[str, int] = {}
    compared = 0
    for row in rows("index.jsonl"):
        config = json.loads((CONFIGS / row["file"]).read_text(encoding="utf-8"))
        total = row.get("safetensors_total")
        # In NVFP4 two values are counted as one: those totals are no numbers of parameters.
        if total is None or not states_blocks(config) or row["id"].endswith("-NVFP4"):
            continue
        compared += 1
        difference = total - stored(config) - BESIDE.get(row["id"], 0)
        if difference:
            apart[row["id"]] = difference
    assert not apart
    assert compared >= 28


STEP_35 = {
    "model_type": "step3p5", "hidden_size": 4096, "intermediate_size": 11264,
    "num_hidden_layers": 45, "num_attention_heads": 64, "num_attention_groups": 8,
    "head_dim": 128, "vocab_size": 128_896, "sliding_window": 512,
    "attention_other_setting": {"num_attention_heads": 96}, "use_head_wise_attn_gate": True,
    "moe_num_experts": 288, "moe_intermediate_size": 1280, "share_expert_dim": 1280,
    "moe_layers_enum": ",".join(str(i) for i in range(3, 45)), "num_nextn_predict_layers": 3,
    "layer_types": ["full_attention", *["sliding_attention"] * 3] * 12,
}  # fmt: skip
GLM_45_AIR = {
    "model_type": "glm4_moe", "hidden_size": 4096, "intermediate_size": 10944,
    "num_hidden_layers": 46, "num_attention_heads": 96, "num_key_value_heads": 8,
    "head_dim": 128, "attention_bias": True, "use_qk_norm": False, "vocab_size": 151_552,
    "n_routed_experts": 128, "moe_intermediate_size": 1408, "n_shared_experts": 1,
    "first_k_dense_replace": 1, "num_nextn_predict_layers": 1,
}  # fmt: skip
K_EXAONE = {
    "model_type": "exaone_moe", "hidden_size": 6144, "intermediate_size": 18432,
    "num_hidden_layers": 48, "num_attention_heads": 64, "num_key_value_heads": 8,
    "head_dim": 128, "vocab_size": 153_600, "num_experts": 128, "moe_intermediate_size": 2048,
    "num_shared_experts": 1, "first_k_dense_replace": 1, "num_nextn_predict_layers": 1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "config", "beside"),
    [
        ("stepfun-ai/Step-3.5-Flash", STEP_35, 42 * 288),
        ("zai-org/GLM-4.5-Air", GLM_45_AIR, 46 * 128),
        # The classes' own defaults are these models.
        ("zai-org/GLM-4.7-Flash", {"model_type": "glm4_moe_lite"}, 47 * 64),
        ("tencent/Hy3", {"model_type": "hy_v3"}, 80 * 192),
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", {"model_type": "qwen3_next"}, 0),
        ("inclusionAI/Ling-3.0-flash", {"model_type": "bailing_hybrid"}, 41 * 512),
        # Experts and the dense MLP have a scale a row; attention and the block are plain.
        (
            "LGAI-EXAONE/K-EXAONE-236B-A23B-FP8", K_EXAONE,
            47 * 128 + 47 * 129 * (2 * 2048 + 6144) + 2 * 18_432 + 6144,
        ),
    ],
)  # fmt: skip
def test_totals_of_the_catalogue(name: str, config: dict[str, Any], beside: int) -> None:
    assert stored({"num_nextn_predict_layers": 1, **config}) + beside == published(name)


def test_the_block_of_glm_ocr() -> None:
    config = {
        "model_type": "glm_ocr_text", "hidden_size": 1536, "intermediate_size": 4608,
        "num_hidden_layers": 16, "num_attention_heads": 16, "num_key_value_heads": 8,
        "head_dim": 128, "vocab_size": 59_392, "num_nextn_predict_layers": 1,
    }  # fmt: skip
    without = published("sherif1313/Arabic-GLM-OCR-v1")
    block = sum(tensor.parameters for tensor in specify(config).mtp)
    assert published("zai-org/GLM-OCR") - without == block


@pytest.mark.parametrize(
    ("name", "built"),
    [
        # What transformers builds, and the biases of 62 or 57 routers: no block is stored.
        ("MiniMaxAI/MiniMax-M2", 228_689_748_992 + 62 * 256),
        ("MiniMaxAI/MiniMax-M3", 427_040_132_864 + 57 * 128),
        # Nor here, though the config of the 4-bit release states one.
        ("nvidia/NVIDIA-Nemotron-3.5-Lightning-30B-A3B-BF16", 31_577_937_344),
        ("Qwen/Qwen3-Coder-Next", 79_674_391_296),
    ],
)
def test_that_not_every_repository_stores_what_its_family_may(name: str, built: int) -> None:
    assert published(name) == built
