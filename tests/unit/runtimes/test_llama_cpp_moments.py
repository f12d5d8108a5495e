"""What comes beside llama.cpp's buffers: pools of a GPU, kept prompts, encoders in a file apart."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from engine.architecture.read import read
from engine.budget.model import Region
from engine.deployment.spec import Deployment
from engine.devices import catalogue
from engine.fit.judge import judge
from engine.fit.verdict import Fit
from engine.runtimes.llama_cpp import LlamaCpp
from engine.runtimes.registry import get
from engine.source.raw import RawModel
from engine.units import GIB, MIB
from tests.helpers.published import model

if TYPE_CHECKING:
    from engine.budget.model import Budget
    from engine.evidence import Estimate

STRIX = catalogue.machine(catalogue.find("Strix Halo 128 GB"))
RTX_4090 = catalogue.machine(catalogue.find("RTX 4090"))
QWEN_35_27B: dict[str, object] = {
    "model_type": "qwen3_5",
    "architectures": ["Qwen3_5ForConditionalGeneration"],
    "tie_word_embeddings": False,
    "text_config": {
        "model_type": "qwen3_5_text", "vocab_size": 248320, "hidden_size": 5120,
        "intermediate_size": 17408, "num_hidden_layers": 64, "num_attention_heads": 24,
        "num_key_value_heads": 4, "head_dim": 256, "linear_num_key_heads": 16,
        "linear_num_value_heads": 48, "linear_key_head_dim": 128, "linear_value_head_dim": 128,
        "linear_conv_kernel_dim": 4, "full_attention_interval": 4,
        "max_position_embeddings": 262144, "dtype": "bfloat16", "tie_word_embeddings": False,
        "attn_output_gate": True,
    },
    "vision_config": {
        "model_type": "qwen3_5", "depth": 27, "hidden_size": 1152, "intermediate_size": 4304,
        "num_heads": 16, "patch_size": 16, "temporal_patch_size": 2, "spatial_merge_size": 2,
        "num_position_embeddings": 2304, "out_hidden_size": 5120, "in_channels": 3,
        "deepstack_visual_indexes": [],
    },
}  # fmt: skip


def _plan(name: str, build: str | None = None, **settings: Any) -> Budget:
    machine = settings.pop("machine", RTX_4090)
    chosen: dict[str, Any] = {"weight_format": "Q4_K_M", "max_model_len": 8192} | settings
    deployment = Deployment(runtime="llama.cpp", runtime_version=build, **chosen)
    found = read(RawModel(name, "test", config=QWEN_35_27B)) if name == "27B" else model(name)
    return LlamaCpp().plan(found, deployment, machine)


def _coming(budget: Budget, label: str, rank: int = 0) -> Estimate | None:
    found = budget.ranks[rank].moments.sustained
    return next((e for e in found if e.label == label), None)


# While a prompt is read on a Strix Halo (b5863), in MiB beyond the same without one.
@pytest.mark.parametrize(("name", "mib"), [("Llama-3.1-8B", 226), ("Llama-3.1-70B", 690)])
def test_that_a_prompt_unpacks_matrices_where_no_kernel_multiplies_them(
    name: str, mib: int
) -> None:
    settings: dict[str, Any] = {
        "machine": STRIX,
        "n_ctx": 512,
        "n_parallel": 1,
        "max_model_len": None,
    }
    older = _coming(_plan(name, "b5863", **settings), "unpacked matrices of a prompt")
    assert older is not None
    assert older.low_bytes <= mib * MIB <= older.high_bytes
    assert older.likely_bytes == pytest.approx(mib * MIB, rel=0.08)
    # Since December 2025 few types are; Vulkan and CUDA unpack none.
    newer = _coming(_plan(name, None, **settings), "unpacked matrices of a prompt")
    assert newer is not None
    assert newer.low_bytes == 0
    vulkan = _plan(name, "b5863", backend="vulkan", **settings)
    assert _coming(vulkan, "unpacked matrices of a prompt") is None
    cuda = _plan(name, "b5863", n_ctx=512, n_parallel=1, max_model_len=None)
    assert _coming(cuda, "unpacked matrices of a prompt") is None


def test_that_copies_of_a_packed_cache_came_from_the_pool_until_june_2026() -> None:
    # One layer of 8,192 cells, K and V of 8 heads of 128 in f16: 32 MiB.
    label = "f16 copies of a layer's cache"
    copies = _coming(_plan("Llama-3.1-8B", "b9294", kv_cache_dtype="q8_0"), label)
    assert copies is not None
    assert copies.likely_bytes == 8192 * 2 * 8 * 128 * 2
    assert _coming(_plan("Llama-3.1-8B", "b9294"), label) is None
    assert _coming(_plan("Llama-3.1-8B", None, kv_cache_dtype="q8_0"), label) is None


def test_that_earlier_prompts_are_kept_in_ram_up_to_a_limit() -> None:
    label = "earlier prompts kept in RAM"
    kept = _coming(_plan("Llama-3.1-8B", concurrency=2), label, rank=1)
    assert kept is not None
    assert kept.likely_bytes == 2 * 8192 * 131_072
    assert kept.high_bytes == 8 * GIB
    limited = _coming(_plan("Llama-3.1-8B", cache_ram_bytes=GIB // 2), label, rank=1)
    assert limited is not None
    assert limited.likely_bytes == limited.high_bytes == GIB // 2
    assert _coming(_plan("Llama-3.1-8B", cache_ram_bytes=0), label, rank=1) is None
    assert _coming(_plan("Llama-3.1-8B", "b6700"), label, rank=1) is None


def test_that_only_a_server_of_llama_cpp_keeps_them() -> None:
    for runtime, keeps in (
        ("jan", True),
        ("ollama", True),
        ("lmstudio", False),
        ("koboldcpp", False),
    ):
        plan = Deployment(runtime=runtime, weight_format="Q4_K_M", max_model_len=8192)
        budget = get(runtime).plan(model("Llama-3.1-8B"), plan, RTX_4090)
        assert (_coming(budget, "earlier prompts kept in RAM", rank=1) is not None) is keeps


def test_that_too_little_ram_for_them_makes_a_plan_tight() -> None:
    host = RTX_4090.host
    size = 8 * GIB
    line = replace(host.device.allocatable, low_bytes=size, likely_bytes=size, high_bytes=size)
    small = replace(
        RTX_4090,
        host=replace(host, device=replace(host.device, total_bytes=size, allocatable=line)),
    )
    assert judge(_plan("Llama-3.1-8B", machine=small)).fit is Fit.TIGHT
    assert judge(_plan("Llama-3.1-8B", machine=small, cache_ram_bytes=0)).fit is Fit.FITS


def test_that_a_snapshot_is_as_large_as_was_printed() -> None:
    # Issue 21692: "size = 149.626 MiB" of a hybrid; 8,192 tokens of context take three.
    taken = _coming(_plan("27B"), "context checkpoints in RAM", rank=1)
    assert taken is not None
    assert taken.likely_bytes / 3 / MIB == pytest.approx(149.626, abs=0.002)
    assert taken.high_bytes / 32 / MIB == pytest.approx(149.626, abs=0.002)
    older = _coming(_plan("27B", "b7500"), "context checkpoints in RAM", rank=1)
    assert older is not None
    assert older.high_bytes == taken.high_bytes // 4
    assert _coming(_plan("Llama-3.1-8B"), "context checkpoints in RAM", rank=1) is None


def test_that_a_read_file_passes_through_staging_buffers() -> None:
    (staging,) = _plan("Llama-3.1-8B", mmap=False).ranks[1].moments.load
    assert staging.low_bytes == 4 * MIB
    # The largest tensor otherwise: 128,256 x 4,096 in Q6_K is more than 4 x 64 MiB.
    assert staging.high_bytes == 128_256 * 4096 * 210 // 256
    assert _plan("Llama-3.1-8B").ranks[1].moments.load == ()


def test_that_encoders_are_counted_as_they_were_printed() -> None:
    # Qwen3.6-27B, the same tower, in BF16: "model size: 887.99 MiB", "CUDA0 compute buffer size
    # = 248.10 MiB" at 1,472 x 1,472; together "worst-case memory usage of mmproj is 1136.09 MiB".
    budget = _plan("27B")
    weights = budget.ranks[0].regions[Region.WEIGHTS].estimate
    (encoders,) = (part for part in weights.parts if part.label == "encoders (mmproj)")
    assert encoders.high_bytes / MIB == pytest.approx(887.99, abs=0.006)
    work = budget.ranks[0].regions[Region.ACTIVATIONS].estimate
    (pictures,) = (part for part in work.parts if part.label == "encoders' compute buffer")
    assert pictures.likely_bytes / MIB == pytest.approx(248.10, abs=0.006)
    # Without flash attention 92^4 scores of 16 heads: 4,657.81 MiB were asked for.
    plain = _plan("27B", flash_attn="off").ranks[0].regions[Region.ACTIVATIONS].estimate
    (pictures,) = (part for part in plain.parts if part.label == "encoders' compute buffer")
    assert pictures.likely_bytes / MIB == pytest.approx(4657.81, rel=0.01)
    assert _coming(budget, "work on larger pictures") is not None


def test_that_encoders_can_be_left_out() -> None:
    budget = _plan("27B", language_model_only=True)
    assert all(
        part.label != "encoders (mmproj)"
        for part in budget.ranks[0].regions[Region.WEIGHTS].estimate.parts
    )
    assert not any("mmproj" in said for said in budget.assumptions)
    kobold = Deployment(runtime="koboldcpp", weight_format="Q4_K_M", max_model_len=8192)
    found = read(RawModel("27B", "test", config=QWEN_35_27B))
    told = get("koboldcpp").plan(found, kobold, RTX_4090)
    assert any("no encoders" in said for said in told.assumptions)


def test_that_fit_leaves_room_for_encoders() -> None:
    # The context that is chosen is smaller by what encoders take: 64 KiB a token.
    short = catalogue.machine(catalogue.custom(20 * GIB, ""))
    settings: dict[str, Any] = {"machine": short, "max_model_len": None}
    alone = _plan("27B", language_model_only=True, **settings).deployment.n_ctx
    beside = _plan("27B", **settings).deployment.n_ctx
    assert alone is not None
    assert beside is not None
    assert beside < alone
