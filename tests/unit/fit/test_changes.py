"""What would fit: only changes that truly do, cheapest first."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.architecture.read import read
from engine.deployment.spec import Deployment
from engine.fit.changes import changes, tokens_words
from engine.fit.verdict import Fit
from engine.sizing import size
from engine.source import catalogue as catalogue_of_models
from tests.helpers.published import RTX_4090, gpu, machine, model

HERE = machine(RTX_4090)
OVER = Deployment(max_model_len=32_768, concurrency=2)


def test_that_each_change_fits_and_carries_its_own_verdict() -> None:
    known = model("Llama-3.1-8B")
    found = changes(known, OVER, HERE)
    assert found
    for change in found:
        verdict = size(known, change.deployment, HERE).verdict
        assert verdict.fit in (Fit.FITS, Fit.TIGHT)
        assert verdict == change.verdict
        assert change.deployment != OVER


def test_that_the_changes_of_the_drawn_screen_are_offered_in_its_order() -> None:
    labels = [c.label for c in changes(model("Llama-3.1-8B"), OVER, HERE)]
    assert labels[0].startswith("Context 2")
    assert labels[0].endswith("k")
    assert labels[1:4] == ["FP8 KV cache", "1 at a time", "FP8 weights"]
    assert labels[4:] in ([], [labels[-1]])
    assert all("llama.cpp" in label for label in labels[4:])


def test_that_a_second_card_is_offered_first() -> None:
    labels = [c.label for c in changes(model("Llama-3.1-8B"), OVER, machine(RTX_4090, 2))]
    assert labels[0] == "TP 2"


def test_that_pairs_are_tried_when_no_single_change_helps() -> None:
    plan = Deployment(max_model_len=32_768, concurrency=2)
    found = changes(model("Llama-3.1-70B"), plan, machine(RTX_4090, 4))
    same = [change for change in found if change.deployment.runtime == "vllm"]
    assert same
    assert all(change.deployment.tensor_parallel_size == 4 for change in same)
    assert all(", " in change.label for change in same)


def test_that_transformers_offers_what_transformers_can_do() -> None:
    plan = Deployment(runtime="transformers", max_model_len=32_768, concurrency=4)
    found = changes(model("Llama-3.1-8B"), plan, HERE)
    assert found
    assert not any("FP8 KV" in change.label for change in found)


def test_that_lengths_read_like_lengths() -> None:
    assert tokens_words(21 * 1024) == "21k"
    assert tokens_words(1280) == "1,280"


def test_that_llama_cpp_offers_its_own_ways() -> None:
    plan = Deployment(runtime="llama.cpp", max_model_len=32_768, concurrency=4)
    labels = [c.label for c in changes(model("Llama-3.1-8B"), plan, HERE)]
    assert "Q8_0 KV cache" in labels
    assert any(label.endswith("layers on the GPU") for label in labels)
    assert not any("TP" in label for label in labels)


def test_that_a_plan_without_a_context_is_shortened_from_the_runtimes_default() -> None:
    found = changes(model("Llama-3.1-8B"), Deployment(), HERE)
    (shorter,) = [c for c in found if c.label.startswith("Context")]
    assert 1024 <= (shorter.deployment.max_model_len or 0) < 131_072


def test_that_a_prompt_is_shortened_with_its_context() -> None:
    plan = Deployment(
        runtime="transformers", max_model_len=100_000, prompt_len=90_000, concurrency=1
    )
    found = changes(model("Llama-3.1-8B"), plan, HERE)
    (shorter,) = [c for c in found if c.label.startswith("Context")]
    assert shorter.deployment.prompt_len == min(90_000, shorter.deployment.max_model_len or 0)


@settings(max_examples=40, deadline=None)
@given(
    name=st.sampled_from(["Llama-3.1-8B", "gpt-oss-20b", "gemma-3-4b", "Qwen3-32B"]),
    context=st.integers(256, 131_072),
    concurrency=st.integers(1, 16),
    changed=st.sampled_from(
        [
            {"runtime": "vllm"},
            {"runtime": "vllm", "live_tokens": 50_000, "gpu_memory_utilization": 0.8},
            {"runtime": "vllm", "kv_pool_bytes": 2**31},
            {"runtime": "llama.cpp", "n_ctx": 131_072},
            {"runtime": "llama.cpp", "n_parallel": 4, "kv_unified": False},
            {"runtime": "transformers", "batch_size": 8, "attn_implementation": "eager"},
        ]
    ),
    cards=st.sampled_from([(12.0, 1), (23.64, 1), (23.64, 4)]),
)
def test_that_every_change_truly_fits(
    name: str, context: int, concurrency: int, changed: dict[str, Any], cards: tuple[float, int]
) -> None:
    known, here = model(name), machine(gpu(cards[0], sm_count=100), cards[1])
    plan = Deployment(max_model_len=context, concurrency=concurrency, **changed)
    for change in changes(known, plan, here):
        sized = size(known, change.deployment, here)
        assert sized.verdict == change.verdict
        assert change.verdict.fit in (Fit.FITS, Fit.TIGHT)
        assert change.verdict.margin_bytes >= 0
        if change.label.startswith("Context"):
            promised = change.deployment.max_model_len or 0
            assert change.label == f"Context {tokens_words(promised)}"
            assert sized.budget.deployment.max_model_len == promised
        if change.deployment.runtime != plan.runtime:
            assert not any("is a setting of" in line for line in sized.budget.warnings)


def test_that_a_total_given_to_llama_cpp_is_replaced_by_a_context_that_fits() -> None:
    plan = Deployment(runtime="llama.cpp", n_ctx=131_072)
    found = changes(model("Llama-3.1-8B"), plan, HERE)
    (shorter,) = [c for c in found if c.label.startswith("Context")]
    assert shorter.deployment.n_ctx is None
    assert 32_768 < (shorter.deployment.max_model_len or 0) < 131_072


def test_that_nothing_is_offered_where_nothing_fits() -> None:
    tiny = machine(gpu(2.0))
    assert changes(model("Llama-3.1-70B"), OVER, tiny) == ()


def test_that_llama_cpp_keeps_the_experts_of_gpt_oss_where_vllm_has_no_room() -> None:
    # 12.8 GiB in vLLM; llama.cpp's published file holds 11.3 GiB, 0.6 of them on the host.
    plan = Deployment(runtime="vllm", max_model_len=4096)
    found = changes(model("gpt-oss-20b"), plan, machine(gpu(13.0)))
    other = [c for c in found if c.deployment.runtime == "llama.cpp"]
    assert [c.label for c in other] == ["MXFP4_MOE, llama.cpp"]
    assert other[0].verdict.fit in (Fit.FITS, Fit.TIGHT)


def test_that_a_refused_start_is_offered_what_starts() -> None:
    entry = catalogue_of_models.find("Qwen/Qwen3.5-9B")
    assert entry is not None
    hybrid = read(catalogue_of_models.raw(entry))
    plan = Deployment(runtime="vllm", max_model_len=8192, concurrency=4)
    card = machine(RTX_4090)
    found = {change.label: change.deployment for change in changes(hybrid, plan, card)}
    assert found["No CUDA graphs"].enforce_eager
    (fewer,) = (plan for label, plan in found.items() if label.startswith("max_num_seqs"))
    most = fewer.max_num_seqs
    assert most is not None
    assert size(hybrid, fewer, card).verdict.starts
    assert not size(hybrid, plan.with_(max_num_seqs=most + 1), card).verdict.starts
