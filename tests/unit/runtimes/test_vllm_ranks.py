"""Which rank of vLLM holds what: experts, stages and adapters, by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from engine.budget.model import Budget, Region
from engine.cancel import CancelToken
from engine.contract.desk import Desk
from engine.contract.request import parse
from engine.deployment.spec import Deployment
from engine.devices import catalogue
from engine.errors import DeploymentError
from engine.runtimes.registry import get
from engine.sizing import size
from tests.helpers.published import H100, machine, model

if TYPE_CHECKING:
    from engine.devices.device import Machine


def plan(name: str, where: Machine, **settings: Any) -> Budget:
    chosen: dict[str, Any] = {"max_model_len": 8192, "concurrency": 4} | settings
    return get("vllm").plan(model(name), Deployment(**chosen), where)


def tensors_on_a_rank(name: str, **sizes: Any) -> int:
    plan = Deployment(runtime="vllm", max_model_len=2048, **sizes)
    where = machine(H100, plan.ranks * plan.data_parallel_size)
    return tensors_of(size(model(name), plan, where).budget)


def tensors_of(budget: Budget) -> int:
    parts = budget.ranks[-1].regions[Region.WEIGHTS].estimate.parts
    return next(part.likely_bytes for part in parts if part.label == "tensors")


def test_that_replicas_share_the_experts_out() -> None:
    # 48 layers of 128 experts of 3 × 2,048 × 768; everything else is on every rank of DP.
    experts = 48 * 128 * 3 * 2048 * 768 * 2
    whole = tensors_on_a_rank("Qwen3-30B-A3B")
    assert tensors_on_a_rank("Qwen3-30B-A3B", data_parallel_size=2) == whole - experts // 2
    # Whole experts where they are spread: 128 over 2 × 2 ranks, and over 3: 43, 43 and 42.
    halved = tensors_on_a_rank("Qwen3-30B-A3B", tensor_parallel_size=2) - experts // 2
    spread = {"enable_expert_parallel": True, "data_parallel_size": 2}
    found = tensors_on_a_rank("Qwen3-30B-A3B", tensor_parallel_size=2, **spread)
    assert found == halved + experts // 4
    found = tensors_on_a_rank("Qwen3-30B-A3B", **spread | {"data_parallel_size": 3})
    assert found == whole - experts + experts // 128 * 43


def test_that_shared_experts_stay_whole_where_sequences_are_split() -> None:
    # Kimi K2: 60 layers with a shared expert of 3 × 7,168 × 2,048, halved by TP 2 alone.
    shared = 60 * 3 * 7168 * 2048 * 2
    spread = {"tensor_parallel_size": 2, "enable_expert_parallel": True, "data_parallel_size": 2}
    older = tensors_on_a_rank("Kimi-K2", runtime_version="0.10.2", **spread)
    assert tensors_on_a_rank("Kimi-K2", runtime_version="0.11.0", **spread) == older + shared // 2


@pytest.mark.parametrize("name", ["google/gemma-4-E4B-it", "google/gemma-3-27b-it"])
def test_that_encoders_of_transformers_stay_whole(name: str) -> None:
    def encoders(tp: int) -> int:
        request = {"model": name, "gpu": "H100 80GB", "gpu_count": tp, "tensor_parallel_size": tp}
        both, text = (
            Desk(CancelToken()).plan(parse(request | {"language_model_only": left_out}))
            for left_out in (False, True)
        )
        found = (tensors_of(size(p.model, p.deployment, p.machine).budget) for p in (both, text))
        return next(found) - next(found)

    # Gemma 4 runs transformers' encoders, of which a rank holds all; Gemma 3's SigLIP is vLLM's.
    if name.startswith("google/gemma-4"):
        assert encoders(2) == encoders(1) > 0
    else:
        assert encoders(2) < 0.6 * encoders(1)


def layers_by_rank(name: str, stages: int, **settings: Any) -> list[str]:
    budget = plan(name, machine(H100, stages), pipeline_parallel_size=stages, **settings)
    notes = (rank.regions[Region.WEIGHTS].note for rank in budget.ranks)
    return [note.split(";")[0].removeprefix("Layers ") for note in notes]


def test_that_layers_are_dealt_out_to_stages_as_told() -> None:
    # Issue 34076: VLLM_PP_LAYER_PARTITION=16,32 on 48 layers.
    asked = {"pp_layer_partition": (16, 32)}
    assert layers_by_rank("Qwen3-30B-A3B", 2, **asked) == ["0 to 15", "16 to 47"]
    for sizes, said in (((16, 30), r"16 \+ 30 = 46"), ((48,), "48: pipeline_parallel_size 2")):
        with pytest.raises(DeploymentError, match=said) as caught:
            layers_by_rank("Qwen3-30B-A3B", 2, pp_layer_partition=sizes)
        assert caught.value.field == "pp_layer_partition"


def test_that_older_releases_give_the_last_stage_what_is_left_over() -> None:
    # Llama-3.1-70B, 80 layers in 3 stages: 26 each, and two more.
    older = layers_by_rank("Llama-3.1-70B", 3, runtime_version="0.7.3")
    assert older == ["0 to 25", "26 to 51", "52 to 79"]
    newer = layers_by_rank("Llama-3.1-70B", 3, runtime_version="0.8.0")
    assert newer == ["0 to 26", "27 to 53", "54 to 79"]


def test_that_experts_are_spread_only_where_there_are_some() -> None:
    # vLLM: "Number of experts in the model must be greater than 0 when expert parallelism is
    # enabled."
    with pytest.raises(DeploymentError, match="this model has no experts") as refused:
        plan("Llama-3.1-8B", machine(H100), enable_expert_parallel=True)
    assert refused.value.field == "enable_expert_parallel"
    assert plan(
        "Mixtral-8x7B", machine(H100, 2), tensor_parallel_size=2, enable_expert_parallel=True
    )


def slots_in(name: str, **settings: Any) -> int:
    where = machine(H100, settings.get("tensor_parallel_size", 1))
    parts = plan(name, where, **settings).ranks[0].regions[Region.WEIGHTS].estimate.parts
    return next(part.likely_bytes for part in parts if part.label == "LoRA slots")


def test_that_adapters_take_their_slots_beside_the_weights() -> None:
    # Llama-3.2-3B: rows and columns of q, k and v, o, gate and up, down; embedding and logits of
    # 128,256 words.
    linear = 28 * (6144 + 2 * 4096 + 6144 + 2 * 11_264 + 11_264)
    table = 128_256 + 3072
    ask = {"max_loras": 1, "max_lora_rank": 64}
    newest = (linear + 2 * table) * 64 * 2
    assert slots_in("Llama-3.2-3B", **ask) == newest
    assert slots_in("Llama-3.2-3B", **ask | {"max_loras": 4}) == 4 * newest
    # Logged with 0.8: 0.2317 GiB (248.8 MB), for the head tied to the embedding, too, and with
    # room for 256 more words in each.
    older = slots_in("Llama-3.2-3B", runtime_version="0.8.1", **ask)
    extra = 3 * 256 * (64 + 3072) + 256 * 3072
    assert older == (linear + 3 * table) * 64 * 2 + extra * 2
    assert older == pytest.approx(248.8e6, rel=0.011)


def test_that_fewer_slots_of_tied_tables_are_those_of_the_log() -> None:
    # Llama-3.2-1B in FP8 blocks with 0.11.2 takes 1.4721 GiB: 1,498,787,840 B of tensors, a
    # rotary table of 131,072 × 64 × 2 B, and what is left for adapters of rank 32.
    ask = {"max_loras": 1, "max_lora_rank": 32, "runtime_version": "0.11.2"}
    left = 1.4721 * 2**30 - 1_498_787_840 - 131_072 * 64 * 2
    assert slots_in("Llama-3.2-1B", **ask) == pytest.approx(left, rel=0.01)


def test_that_adapters_are_cut_on_the_side_their_layer_is_cut() -> None:
    # Qwen2.5-7B has no adapters of its tables. Half of the rows of q, k, v, gate and up; half
    # of the columns of o and down.
    halved = (1792 + 3584) + 2 * (256 + 3584) + 2 * (9472 + 3584) + (3584 + 1792) + (3584 + 9472)
    found = slots_in("Qwen2.5-7B", max_loras=1, max_lora_rank=8, tensor_parallel_size=2)
    assert found == halved * 28 * 8 * 2


def test_that_experts_take_adapters_since_0_11_2() -> None:
    # Qwen3-30B-A3B: 128 experts of 2,048 × 768 thrice in each of 48 layers.
    experts = 48 * 128 * 3 * (2048 + 768) * 8 * 2
    newer = slots_in("Qwen3-30B-A3B", max_loras=1, max_lora_rank=8, runtime_version="0.11.2")
    older = slots_in("Qwen3-30B-A3B", max_loras=1, max_lora_rank=8, runtime_version="0.11.0")
    assert newer - older == experts


@pytest.mark.parametrize(("version", "evened"), [("0.33.0", True), ("0.11.0", False)])
def test_that_no_rank_takes_more_blocks_than_the_poorest(version: str, evened: bool) -> None:
    where = catalogue.mixed(catalogue.named("RTX 4090 + RTX 3060 12GB"))
    sizes = {"tensor_parallel_size": 2, "concurrency": 1, "runtime_version": version}
    found = size(model("Qwen3-8B"), Deployment(max_model_len=4096, **sizes), where)
    rich, poor = found.budget.ranks
    held = [r.regions[Region.KV_CACHE].estimate.likely_bytes for r in (rich, poor)]
    block = found.budget.sequence_state.bytes_per_block
    assert block is not None
    assert (held[0] // block == held[1] // block) is evened
    # Twelve gibibytes more on the card, all of them the pool's where it takes them.
    left = (rich.slot.device.total_bytes - poor.slot.device.total_bytes) * 9 // 10
    assert rich.unmatched_bytes == pytest.approx(left, rel=0.1) if evened else held[0] > left
    assert rich.planned.likely_bytes == rich.slot.device.allocatable.likely_bytes
    assert found.verdict.binding_rank == 1
