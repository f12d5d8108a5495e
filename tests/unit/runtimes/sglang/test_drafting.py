"""A draft model of its own beside its target: weights, pool, moments, by hand arithmetic."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from engine.architecture.read import read
from engine.budget.model import Region
from engine.deployment.spec import Deployment
from engine.errors import DeploymentError
from engine.runtimes.sglang import Sglang
from engine.source.raw import RawModel
from tests.helpers.published import H100, machine, model

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.budget.model import Budget
    from engine.evidence import Estimate

EAGLE3 = {
    "architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama",
    "hidden_size": 4096, "num_hidden_layers": 1, "num_attention_heads": 32,
    "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 14_336,
    "vocab_size": 128_256, "draft_vocab_size": 32_000, "tie_word_embeddings": False,
    "torch_dtype": "bfloat16", "max_position_embeddings": 2048,
}  # fmt: skip
"""jamesliu1/sglang-EAGLE3-Llama-3.1-Instruct-8B, for Llama-3.1-8B."""
ATTENTION = 2 * 4096 * (4096 + 1024 + 1024) + 4096 * 4096
"""Queries, keys and values read the embedding beside the hidden state."""
MATRICES = 3 * 4096 * 4096 + ATTENTION + 3 * 4096 * 14_336 + 32_000 * 4096
NORMS = 4 * 4096
TABLES = 32_000 * 8 + 128_256
"""Between the draft's words and its target's."""
EMBEDDING = 128_256 * 4096 * 2


def eagle(**config: Any) -> Model:
    return read(RawModel(id="e3", source="published dimensions", config=EAGLE3 | config))


def plan(draft: Model | None, name: str = "Llama-3.1-8B", **settings: Any) -> Budget:
    chosen: dict[str, Any] = {
        "max_model_len": 8192, "speculative_tokens": 3, "mem_fraction_static": 0.8,
    } | settings  # fmt: skip
    deployment = replace(Deployment(runtime="sglang", **chosen), draft_model=draft)
    return Sglang().plan(model(name), deployment, machine(H100, deployment.ranks))


def part(found: Budget) -> Estimate | None:
    parts = found.ranks[0].regions[Region.WEIGHTS].estimate.parts
    return next((p for p in parts if p.label == "draft model"), None)


def likely(found: Budget, region: Region) -> int:
    return found.ranks[0].regions[region].estimate.likely_bytes


def test_that_an_eagle_head_gives_its_embeddings_up() -> None:
    found = plan(eagle())
    drafted = part(found)
    # Its rotary table ends sooner than its target's, and is its own: 2,048 × 128 × 4 B.
    assert drafted is not None
    assert drafted.likely_bytes == 2 * (MATRICES + NORMS) + TABLES + 2048 * 128 * 4
    assert drafted.low_bytes == drafted.high_bytes
    (own,) = (p for p in found.ranks[0].moments.load if p.label == "the draft's own tables")
    assert own.likely_bytes == EMBEDDING


def test_that_a_head_of_all_words_is_given_up_too() -> None:
    drafted = part(plan(eagle(draft_vocab_size=None)))
    assert drafted is not None
    size = 2 * (MATRICES - 32_000 * 4096 + NORMS)
    assert drafted.likely_bytes - size - 2048 * 128 * 4 == 0


def test_that_a_head_of_another_width_keeps_its_embeddings() -> None:
    found = plan(eagle(), "Llama-3.1-70B", tensor_parallel_size=4)
    assert not [p for p in found.ranks[0].moments.load if p.label == "the draft's own tables"]


def test_that_a_small_model_shares_nothing() -> None:
    found = plan(model("Llama-3.2-1B"))
    drafted = part(found)
    # 1,235,814,400 parameters; its narrower heads have a rotary table of their own.
    assert drafted is not None
    assert drafted.likely_bytes == 2 * 1_235_814_400 + 131_072 * 64 * 4
    # 32 layers of 8 heads of 128, and 16 layers of 8 heads of 64.
    layout = found.sequence_state
    assert layout.bytes_per_token == 32 * 4096 + 16 * 2048


def test_that_each_layer_that_drafts_counts_like_one_of_its_target() -> None:
    small = model("Llama-3.2-1B")
    found = plan(small)
    weights = likely(found, Region.WEIGHTS)
    runtime = found.ranks[0].regions[Region.RUNTIME].estimate
    late = ("request tables", "attention workspace")
    before = sum(p.likely_bytes for p in runtime.parts if p.label not in late)
    free = H100.allocatable.likely_bytes - before
    # 48 layers of 4,096 B, though 16 of them take half as much.
    assert found.sequence_state.pool_tokens == int(free * 0.8 - weights) // (48 * 4096)


def test_that_a_draft_comes_out_of_the_reserve_before_0_5_14() -> None:
    settings: dict[str, Any] = {"runtime_version": "0.5.12"}
    alone = plan(None, speculative_tokens=0, **settings)
    both = plan(model("Llama-3.2-1B"), **settings)
    assert both.sequence_state.pool_tokens == alone.sequence_state.pool_tokens
    drafted = part(both)
    assert drafted is not None
    grown = [likely(b, Region.KV_CACHE) for b in (alone, both)]
    tokens = alone.sequence_state.pool_tokens or 0
    assert grown[1] - grown[0] == (tokens + 1) * 16 * 2048


def test_that_a_block_draft_counts_as_wide_as_it_is_since_0_5_18() -> None:
    # 3 layers of 2 heads of 128: a quarter of its target's width.
    config = {"architectures": ["DFlashDraftModel"], "num_hidden_layers": 3}
    draft = eagle(num_key_value_heads=2, draft_vocab_size=None, **config)
    assert draft.spec.draft == "dflash_draft"
    pools = [
        plan(draft, runtime_version=version).sequence_state.pool_tokens or 0
        for version in ("0.5.17", "0.5.18")
    ]
    # 35 layers of 4,096 B, then 32 of 4,096 and 3 of 1,024.
    assert pools[1] / pools[0] == pytest.approx(35 * 4 / (32 * 4 + 3), rel=1e-5)


def test_that_every_rank_has_the_whole_draft_where_attention_is_split_by_data() -> None:
    cut = plan(eagle(), tensor_parallel_size=2)
    whole = plan(eagle(), tensor_parallel_size=2, data_parallel_size=2, enable_dp_attention=True)
    parts = [part(found) for found in (cut, whole)]
    assert parts[0] is not None
    assert parts[1] is not None
    assert parts[1].likely_bytes == 2 * (MATRICES + NORMS) + TABLES + 2048 * 128 * 4
    # The projection of three hidden states is not cut.
    assert parts[0].likely_bytes < parts[1].likely_bytes


@pytest.mark.parametrize(
    ("settings", "draft", "field"),
    [
        ({"speculative_tokens": 0}, "Llama-3.2-1B", "speculative_tokens"),
        # 14 heads of Qwen2-0.5B do not divide by 4.
        ({"tensor_parallel_size": 4}, "Qwen2-0.5B", "draft_model"),
    ],
)
def test_that_a_draft_that_cannot_run_is_refused(
    settings: dict[str, Any], draft: str, field: str
) -> None:
    with pytest.raises(DeploymentError) as refused:
        plan(model(draft), **settings)
    assert refused.value.field == field


def test_that_no_word_says_that_a_draft_is_left_out() -> None:
    assert not [w for w in plan(eagle()).warnings if "draft" in w]
    assert [w for w in plan(None).warnings if "draft model is not counted" in w]
