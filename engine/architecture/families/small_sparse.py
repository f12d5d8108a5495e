"""Small mixtures of experts, each a known kind of attention with a known kind of experts.

Source:
    transformers 5.24.0, the modelling file of each type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.families import attention, mixers, patterns
from engine.architecture.families.base import (
    DENSE,
    FULL,
    LINEAR,
    SLIDING,
    Family,
    Moe,
    state_doubt,
)
from engine.architecture.families.dense import AB
from engine.architecture.families.sparse import DEEPSEEK_MOE, times_shared
from engine.architecture.spec import Direction
from engine.words import tr

if TYPE_CHECKING:
    from engine.architecture.spec import Doubt
    from engine.config.facts import Facts

ARIA = Family(
    q_bias=AB, o_bias=AB, mlp_bias="mlp_bias", feed_pattern=patterns.all_sparse,
    moe=Moe(
        experts="moe_num_experts", active="moe_topk", width="intermediate_size", fused=True,
        router="mlp.router", shared="mlp.shared_experts",
        shared_width=times_shared("moe_num_shared_experts", "intermediate_size"),
    ),
)  # fmt: skip


def _all_full(facts: Facts, layers: int) -> tuple[str, ...]:
    """The window is for lists that ask for it."""
    facts.settle("sliding_window")
    return patterns.all_full(facts, layers)


def _all_sparse_unless_stated(facts: Facts, layers: int) -> tuple[str, ...]:
    return patterns.stated_feeds(facts, layers) or patterns.all_sparse(facts, layers)


MELLUM = Family(
    q_bias=AB, o_bias=AB, qk_norm="head", pattern=_all_full, feed_pattern=_all_sparse_unless_stated,
    moe=Moe(experts="num_local_experts"),
)  # fmt: skip


def _flint_pattern(facts: Facts, layers: int) -> tuple[str, ...]:
    """Full in the first two layers, in every fourth and in the last."""
    facts.settle("sliding_window")
    full = {0, 1, layers - 1}
    return tuple(FULL if i in full or i % 4 == 1 else SLIDING for i in range(layers))


def _flint_feeds(facts: Facts, layers: int) -> tuple[str, ...]:
    """As Qwen's; the first two layers are dense where no list says which ones are."""
    feeds = patterns.sparse_steps(facts, layers)
    return feeds if facts.has("mlp_only_layers") else (DENSE, DENSE, *feeds[2:])[:layers]


_SHARED = Moe(
    shared="mlp.shared_expert", shared_width=lambda f: f.count("shared_expert_intermediate_size")
)
FLINT = Family(
    q_bias=AB, o_bias=AB, qk_norm="head", sinks=True, pattern=_flint_pattern,
    feed_pattern=_flint_feeds, moe=_SHARED,
)  # fmt: skip
_LARA = (LINEAR, SLIDING, LINEAR, FULL, SLIDING)


def _lara_pattern(_facts: Facts, layers: int) -> tuple[str, ...]:
    return tuple(_LARA[i % len(_LARA)] for i in range(layers))


LARA_MINI = Family(
    q_bias=AB, o_bias=AB, qk_norm="head", mixers={LINEAR: mixers.gated_delta_net},
    pattern=_lara_pattern, feed_pattern=patterns.all_sparse, moe=_SHARED, tied=True,
)  # fmt: skip


def _shared_out(facts: Facts, _kind: str) -> tuple[int, int]:
    """The class reads no width of a head."""
    facts.settle("head_dim")
    width = facts.integer("hidden_size") // facts.integer("num_attention_heads")
    return width, width


DEEPSEEK_OCR2 = Family(
    q_bias=AB, o_bias=AB, mlp_bias="mlp_bias", head_dim=_shared_out, moe=DEEPSEEK_MOE,
    feed_pattern=patterns.dense_first("first_k_dense_replace", 1),
)  # fmt: skip
_REFERENCE = "reference_sliding_attention"


def _unlimited_pattern(facts: Facts, layers: int) -> tuple[str, ...]:
    return (_REFERENCE if facts.count("sliding_window") else FULL,) * layers


def _unlimited_doubts(facts: Facts) -> list[Doubt]:
    kinds = facts.words("layer_types") or _unlimited_pattern(facts, 1)
    if _REFERENCE not in kinds:
        return []
    window = facts.count("sliding_window")
    # A static cache of transformers holds prompt, answer and both joined: more than all prompt.
    return state_doubt(
        tr(
            "it keeps the prompt and the last {window} tokens of the answer: counted as all prompt"
        ).format(window=window),
        Direction.EITHER,
    )


UNLIMITED_OCR = Family(
    q_bias=AB, o_bias=AB, mlp_bias="mlp_bias", head_dim=_shared_out, moe=DEEPSEEK_MOE,
    mixers={_REFERENCE: attention.gqa}, pattern=_unlimited_pattern, doubts=_unlimited_doubts,
    feed_pattern=patterns.dense_first("first_k_dense_replace", 1),
)  # fmt: skip

FAMILIES = {
    "aria_text": ARIA, "mellum": MELLUM, "flint": FLINT, "lara_mini": LARA_MINI,
    "deepseek_ocr2_text": DEEPSEEK_OCR2, "unlimited_ocr_text": UNLIMITED_OCR,
}  # fmt: skip
