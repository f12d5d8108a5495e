"""Decoders with a mixture of experts (attention as in the dense ones)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.families import attention, patterns
from engine.architecture.families.base import Family, Moe
from engine.architecture.families.dense import AB

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.config.facts import Facts


def _times_shared(
    count_key: str, width_key: str = "moe_intermediate_size"
) -> Callable[[Facts], int]:
    def width(facts: Facts) -> int:
        shared = facts.count(count_key)
        return shared * facts.integer(width_key) if shared else 0

    return width


MIXTRAL = Family(
    pattern=patterns.windowed_if_stated, feed_pattern=patterns.all_sparse,
    moe=Moe(
        experts="num_local_experts", width="intermediate_size", names=("w1", "w3", "w2"),
        container="block_sparse_moe.experts", router="block_sparse_moe.gate",
    ),
)  # fmt: skip
QWEN2_MOE = Family(
    q_bias="qkv_bias", pattern=patterns.after_max_window_layers, feed_pattern=patterns.sparse_steps,
    moe=Moe(
        shared="mlp.shared_expert", shared_gate="mlp.shared_expert_gate",
        shared_width=lambda f: f.count("shared_expert_intermediate_size"),
    ),
)  # fmt: skip
QWEN3_MOE = Family(
    q_bias=AB, o_bias=AB, qk_norm="head", pattern=patterns.after_max_window_layers,
    feed_pattern=patterns.sparse_steps, moe=Moe(),
)  # fmt: skip
GPT_OSS = Family(
    q_bias=AB, o_bias=AB, sinks=True, pattern=patterns.every(2), feed_pattern=patterns.all_sparse,
    moe=Moe(
        experts="num_local_experts", width="intermediate_size", router="mlp.router",
        router_bias=True, fused=True, expert_bias=True,
    ),
)  # fmt: skip
DEEPSEEK_MOE = Moe(
    experts="n_routed_experts", shared="mlp.shared_experts",
    shared_width=_times_shared("n_shared_experts"),
)  # fmt: skip
DEEPSEEK = Family(
    attention=attention.mla, q_bias=AB, feed_pattern=patterns.deepseek, moe=DEEPSEEK_MOE,
    mtp=lambda f: f.count("num_nextn_predict_layers"),
)  # fmt: skip
GLM4_MOE = Family(
    q_bias=AB, qk_norm="head", qk_norm_if="use_qk_norm", feed_pattern=patterns.deepseek,
    moe=DEEPSEEK_MOE, mtp=lambda f: f.count("num_nextn_predict_layers"),
)  # fmt: skip

FAMILIES = {
    "mixtral": MIXTRAL, "qwen2_moe": QWEN2_MOE, "qwen3_moe": QWEN3_MOE, "gpt_oss": GPT_OSS,
    "deepseek_v2": DEEPSEEK, "deepseek_v3": DEEPSEEK, "kimi_k2": DEEPSEEK, "glm4_moe": GLM4_MOE,
}  # fmt: skip
