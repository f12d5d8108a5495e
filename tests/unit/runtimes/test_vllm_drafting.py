"""A draft model of its own beside its target, by hand arithmetic."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from engine.architecture.model import GgufTensor
from engine.architecture.read import read
from engine.budget.model import Region
from engine.cancel import CancelToken
from engine.contract.desk import Desk
from engine.contract.request import parse
from engine.deployment.spec import Deployment
from engine.errors import DeploymentError
from engine.runtimes.registry import get
from engine.source.raw import RawModel
from tests.helpers.published import CONFIGS, H100, machine, model

if TYPE_CHECKING:
    from pathlib import Path

    from engine.architecture.model import Model
    from engine.budget.model import Budget
    from engine.evidence import Estimate

EAGLE3 = {
    "architectures": ["Eagle3DraftModel"], "speculators_model_type": "eagle3",
    "draft_vocab_size": 32_000, "norm_before_residual": True,
    "speculators_config": {"algorithm": "eagle3", "verifier": {"name_or_path": "org/target"}},
    "transformer_layer_config": {
        "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 1,
        "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
        "intermediate_size": 14_336, "vocab_size": 128_256, "tie_word_embeddings": False,
        "torch_dtype": "bfloat16", "max_position_embeddings": 131_072,
    },
}  # fmt: skip
"""RedHatAI/Llama-3.1-8B-Instruct-speculator.eagle3: 950,186,496 elements."""
TABLE = 128_256 * 4096 * 2


def eagle() -> Model:
    return read(RawModel(id="e3", source="published dimensions", config=EAGLE3))


def budget(draft: Model | None, target: str = "Llama-3.1-8B", **settings: Any) -> Budget:
    chosen: dict[str, Any] = {"max_model_len": 8192, "speculative_tokens": 3} | settings
    plan = replace(Deployment(**chosen), draft_model=draft)
    return get("vllm").plan(model(target), plan, machine(H100, plan.ranks))


def part(found: Budget, rank: int = 0) -> Estimate | None:
    parts = found.ranks[rank].regions[Region.WEIGHTS].estimate.parts
    return next((p for p in parts if p.label == "draft model"), None)


def test_that_a_small_model_drafts_with_tables_and_cache_of_its_own() -> None:
    found = budget(model("Llama-3.2-1B"))
    drafted = part(found)
    # 1,235,814,400 parameters, and 131,072 positions × 64: its heads are narrower than its
    # target's, so that the rotary table is its own.
    assert drafted is not None
    assert drafted.likely_bytes == 2 * (1_235_814_400 + 131_072 * 64)
    # 16 tokens in 32 layers of 8 heads of 128, and in 16 layers of 8 heads of 64.
    assert found.sequence_state.bytes_per_block == 16 * (32 * 4096 + 16 * 2048)
    alone = budget(None, speculative_tokens=0).sequence_state
    assert alone.bytes_per_block == 16 * 32 * 4096


def test_that_a_small_model_is_cut_as_its_target() -> None:
    found = budget(model("Llama-3.2-1B"), tensor_parallel_size=2)
    drafted = part(found, 1)
    # Norms are copied: 33 of 2,048 elements. The rotary table is whole.
    matrices = 1_235_814_400 - 33 * 2048
    assert drafted is not None
    assert drafted.likely_bytes == 2 * (matrices // 2 + 33 * 2048 + 131_072 * 64)
    assert found.sequence_state.bytes_per_block == 16 * (32 * 4096 + 16 * 2048) // 2


def test_that_an_eagle_head_takes_its_target_s_embeddings_where_it_may_hold_none() -> None:
    drafted = part(budget(eagle()))
    # 950,186,496 elements as published, of which d2t holds 32,000 of 8 bytes and t2d 128,256 of 1.
    own = 2 * (950_186_496 - 32_000 - 128_256) + 8 * 32_000 + 128_256
    assert drafted is not None
    assert drafted.low_bytes == drafted.likely_bytes == own - TABLE
    assert drafted.high_bytes == own
    # One layer more of the target's own kind.
    assert budget(eagle()).sequence_state.bytes_per_block == 16 * 33 * 4096


def test_that_an_eagle_head_keeps_its_embeddings_on_another_stage() -> None:
    found = budget(eagle(), pipeline_parallel_size=2)
    assert part(found, 0) is None
    drafted = part(found, 1)
    assert drafted is not None
    assert drafted.likely_bytes == drafted.high_bytes
    assert drafted.likely_bytes > TABLE


def test_that_an_eagle_head_keeps_embeddings_of_another_width() -> None:
    found = part(budget(eagle(), "Llama-3.1-70B", tensor_parallel_size=4))
    assert found is not None
    assert found.low_bytes == found.high_bytes


def test_that_the_draft_runs_out_of_the_pool_s_room() -> None:
    alone, both = budget(None, speculative_tokens=0), budget(model("Llama-3.2-1B"))
    pools = [b.ranks[0].regions[Region.KV_CACHE].estimate.likely_bytes for b in (alone, both)]
    drafted = part(both)
    assert drafted is not None
    assert pools[0] - pools[1] >= drafted.likely_bytes


ASSISTANT = {
    "architectures": ["Gemma4AssistantForCausalLM"], "model_type": "gemma4_assistant",
    "backbone_hidden_size": 5376, "num_centroids": 2048, "use_ordered_embeddings": False,
    "tie_word_embeddings": True,
    "text_config": {
        "model_type": "gemma4_text", "hidden_size": 1024, "num_hidden_layers": 4,
        "intermediate_size": 8192, "num_attention_heads": 32, "head_dim": 256,
        "global_head_dim": 512, "num_key_value_heads": 16, "num_global_key_value_heads": 4,
        "num_kv_shared_layers": 4, "hidden_size_per_layer_input": 0, "sliding_window": 1024,
        "vocab_size": 262_144, "max_position_embeddings": 262_144, "torch_dtype": "bfloat16",
        "layer_types": [*["sliding_attention"] * 3, "full_attention"],
    },
}  # fmt: skip


def test_that_an_assistant_reads_its_target_s_cache() -> None:
    # Four layers of Gemma 4 31B's draft attend to what its target keeps (``gemma4_mtp.py``): two
    # cards whose pool is 10.12 GiB print the tokens of the target alone.
    assistant = read(RawModel(id="a", source="published dimensions", config=ASSISTANT))
    alone, both = (budget(draft, "gemma-3-12b") for draft in (None, assistant))
    assert both.sequence_state.bytes_per_block == alone.sequence_state.bytes_per_block
    drafted = part(both)
    assert drafted is not None
    assert drafted.likely_bytes >= 2 * assistant.spec.parameters


DFLASH = {
    "architectures": ["DFlash2DraftModel"], "model_type": "qwen3", "num_target_layers": 64,
    "block_size": 16, "hidden_size": 5120, "num_hidden_layers": 5, "num_attention_heads": 32,
    "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 17_408, "vocab_size": 248_320,
    "tie_word_embeddings": False, "torch_dtype": "bfloat16", "sliding_window": 2048,
    "use_sliding_window": True, "layer_types": ["sliding_attention"] * 5,
    "dflash_config": {
        "mask_token_id": 1, "target_layer_ids": [0, 1, 2, 3, 4], "conv_kernel_size": 2,
        "conv_group_size": 16, "selector_rank": 256, "selector_top_k": 16,
    },
}  # fmt: skip
QWEN_27B = {
    "model_type": "qwen3_5_text", "vocab_size": 248_320, "hidden_size": 5120,
    "intermediate_size": 17_408, "num_hidden_layers": 64, "num_attention_heads": 24,
    "num_key_value_heads": 4, "head_dim": 256, "linear_num_value_heads": 48,
    "linear_num_key_heads": 16, "linear_value_head_dim": 128, "linear_key_head_dim": 128,
    "linear_conv_kernel_dim": 4, "mamba_ssm_dtype": "float16",
    "layer_types": [*["linear_attention"] * 3, "full_attention"] * 16,
    "max_position_embeddings": 262_144, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
}  # fmt: skip


@pytest.mark.parametrize(
    ("version", "length", "blocks", "tokens", "need"),
    [
        # Logged with 6,000,000,000 bytes of pool: 61,303 tokens at 60,928 in 0.29, which asks for
        # 6.37 GiB at 71,680; 75,181 tokens at 71,680 in 0.28.
        ("0.29.0", 60_928, 653, 61_303, None),
        ("0.29.0", 71_680, 653, None, 6.37),
        ("0.28.0", 71_680, 408, 75_181, None),
    ],
)
def test_that_a_block_draft_has_the_pool_of_the_log(
    version: str, length: int, blocks: int, tokens: int | None, need: float | None
) -> None:
    target, draft = (
        read(RawModel(id=name, source="published dimensions", config=config))
        for name, config in (("target", QWEN_27B), ("draft", DFLASH))
    )
    plan = Deployment(
        runtime_version=version,
        max_model_len=length,
        kv_cache_memory_bytes=6_000_000_000,
        speculative_tokens=7,
        max_num_batched_tokens=2048,
        max_num_seqs=4,
        draft_model=draft,
    )
    state = get("vllm").plan(target, plan, machine(H100)).sequence_state
    assert state.block_size == 448
    assert state.num_blocks == blocks
    assert tokens in (None, state.pool_tokens)
    assert need in (None, round(state.reserved_bytes_per_sequence / 2**30, 2))


def test_that_graphs_are_captured_of_the_draft_s_layers_too() -> None:
    alone, both = (
        budget(draft, max_num_seqs=64).ranks[0].regions[Region.CUDA_GRAPHS].estimate
        for draft in (None, model("Llama-3.2-1B"))
    )
    # 32 layers and 16: half as many nodes again, beside what does not follow from layers.
    assert alone.likely_bytes < both.likely_bytes < 1.5 * alone.likely_bytes


def test_that_a_draft_of_its_own_leaves_the_model_s_blocks_out() -> None:
    layers = {"num_hidden_layers": 4, "n_routed_experts": 8, "num_nextn_predict_layers": 1}
    config = CONFIGS["Kimi-K2"] | layers
    target = read(RawModel(id="x", source="published dimensions", config=config))
    plan = Deployment(max_model_len=8192, speculative_tokens=1)
    plans = (plan, replace(plan, draft_model=model("Llama-3.2-1B")))
    own, other = (get("vllm").plan(target, each, machine(H100)) for each in plans)
    assert part(own) is None
    assert part(other) is not None
    tensors = [
        b.ranks[0].regions[Region.WEIGHTS].estimate.parts[0].likely_bytes for b in (own, other)
    ]
    # The block: experts, shared expert, attention, norms and a projection of 2 × 7,168 to 7,168.
    assert tensors[0] - tensors[1] > 2 * (9 * 3 * 7168 * 2048 + 2 * 7168**2)


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"speculative_tokens": 0}, "speculative_tokens"),
        ({"draft": "gguf"}, "draft_model"),
        # 14 heads of Qwen2-0.5B do not divide by 4.
        ({"draft": "Qwen2-0.5B", "tensor_parallel_size": 4}, "draft_model"),
    ],
)
def test_that_a_draft_that_cannot_run_is_refused(settings: dict[str, Any], field: str) -> None:
    name = settings.pop("draft", "Llama-3.2-1B")
    drafts = model("Llama-3.2-1B" if name == "gguf" else name)
    if name == "gguf":
        entry = GgufTensor("output.weight", "Q4_K", (256, 256), 36_864)
        drafts = replace(drafts, gguf_tensors=(entry,))
    with pytest.raises(DeploymentError) as refused:
        budget(drafts, **settings)
    assert refused.value.field == field


def test_that_the_request_s_word_for_a_draft_finds_it(tmp_path: Path) -> None:
    for name, config in (("target", CONFIGS["Llama-3.1-8B"]), ("draft", CONFIGS["Llama-3.2-1B"])):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    request = {
        "model": str(tmp_path / "target"), "draft_model": str(tmp_path / "draft"),
        "speculative_tokens": 3, "max_model_len": 8192, "gpu": "H100 SXM 80GB",
    }  # fmt: skip
    plan = Desk(CancelToken()).plan(parse(request))
    assert plan.deployment.draft_model is not None
    assert plan.deployment.draft_model.spec.parameters == 1_235_814_400
