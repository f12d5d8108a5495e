"""Programs that run another runtime: their own defaults, by their own sources."""

from __future__ import annotations

from typing import Any

import pytest

from engine.architecture.spec import Direction
from engine.budget.model import Budget, Region
from engine.deployment.spec import Deployment
from engine.errors import DeploymentError
from engine.evidence import Basis
from engine.fit.changes import changes
from engine.fit.judge import judge
from engine.fit.solve import limits
from engine.fit.verdict import Fit
from engine.runtimes import registry
from engine.runtimes.loading import loaded
from tests.helpers.published import GIB, RTX_4090, machine, model

HERE = machine(RTX_4090)
TWO = machine(RTX_4090, count=2)
FRONT_ENDS = ("lmstudio", "jan", "koboldcpp", "llamafile", "ik_llama.cpp", "tgi")


def _plan(runtime: str, name: str = "Llama-3.1-8B", **settings: Any) -> Budget:
    deployment = Deployment(runtime=runtime, **settings)
    return registry.get(runtime).plan(model(name), deployment, HERE)


def _kv(budget: Budget) -> int:
    return budget.ranks[0].regions[Region.KV_CACHE].estimate.likely_bytes


@pytest.mark.parametrize(
    ("runtime", "settled"),
    [
        # LM Studio: 4,096 tokens, four predictions at once that share them, batch 512.
        (
            "lmstudio",
            {"max_model_len": 4096, "n_ctx": 4096, "n_parallel": 4, "kv_unified": True,
             "n_batch": 512, "n_ubatch": 512, "mmap": True, "swa_full": False},
        ),
        # Jan: two slots in the background, one cache for all; the context is llama.cpp's to fit.
        (
            "jan",
            {"n_parallel": 3, "kv_unified": True, "n_batch": 2048, "n_ubatch": 512},
        ),
        # KoboldCpp: 8,192 tokens and 128 more, rounded up to 256; windows kept in full.
        (
            "koboldcpp",
            {"max_model_len": 8192, "n_ctx": 8448, "n_parallel": 1, "n_batch": 512,
             "n_ubatch": 512, "mmap": False, "swa_full": True, "n_outputs_max": 512},
        ),
        ("llamafile", {"n_parallel": 4, "kv_unified": True, "n_batch": 2048, "n_ubatch": 512}),
        ("ik_llama.cpp", {"n_ctx": 131072, "n_parallel": 1, "swa_full": True}),
        ("tgi", {"gpu_memory_utilization": 0.9, "max_num_batched_tokens": 4096}),
    ],
)  # fmt: skip
def test_that_a_program_has_its_own_defaults(runtime: str, settled: dict[str, object]) -> None:
    found = _plan(runtime).deployment
    assert {name: getattr(found, name) for name in settled} == settled
    assert found.runtime == runtime


def test_that_what_is_stated_goes_before_a_default() -> None:
    found = _plan("lmstudio", max_model_len=16384, n_batch=1024, n_parallel=1).deployment
    assert (found.n_ctx, found.n_batch, found.n_ubatch, found.n_parallel) == (16384, 1024, 1024, 1)
    assert _plan("lmstudio", n_ctx=8192).deployment.n_ctx == 8192
    assert _plan("ik_llama.cpp", max_model_len=4096).deployment.n_ctx == 4096
    assert _plan("koboldcpp", n_ctx=4096).deployment.n_ctx == 4096


def test_that_slots_grow_with_the_requests_where_the_program_adds_them() -> None:
    assert _plan("lmstudio", max_model_len=2048, concurrency=6).deployment.n_parallel == 6
    assert _plan("jan", max_model_len=2048, concurrency=6).deployment.n_parallel == 8
    assert _kv(_plan("jan", max_model_len=2048, concurrency=6)) == 6 * 2048 * 131072


def test_that_koboldcpp_serves_one_request_after_the_other() -> None:
    budget = _plan("koboldcpp", max_model_len=8192, concurrency=4)
    assert budget.deployment.n_parallel == 1
    assert "One request runs at a time (1 slot): the other 3 wait." in budget.warnings
    plan = Deployment(runtime="koboldcpp", max_model_len=8192)
    assert limits(model("Llama-3.1-8B"), plan, HERE).max_concurrency == 1


def test_that_a_window_is_kept_in_full_where_the_program_does() -> None:
    # Gemma 3 4B: 34 layers of 4 KV heads, 256 wide; 8,448 cells in each.
    budget = _plan("koboldcpp", "gemma-3-4b", max_model_len=8192)
    assert _kv(budget) == 34 * 8448 * 4 * 256 * 2 * 2
    # llama.cpp keeps five layers of 34 so, and of the others four windows and a micro-batch.
    cells = 5 * 8192 + 29 * (4 * 1024 + 512)
    assert _kv(_plan("llamafile", "gemma-3-4b", max_model_len=8192)) == cells * 4 * 256 * 2 * 2


@pytest.mark.parametrize("runtime", FRONT_ENDS)
def test_that_the_defaults_are_listed_with_their_source(runtime: str) -> None:
    budget = _plan(runtime)
    label = registry.get(runtime).label
    told = [line for line in budget.assumptions if line.startswith(f"{label}'s defaults: ")]
    assert len(told) == (0 if runtime == "llamafile" else 1)
    assert judge(budget).detail


@pytest.mark.parametrize("runtime", FRONT_ENDS)
def test_that_a_setting_of_another_runtime_is_told(runtime: str) -> None:
    budget = _plan(runtime, batch_size=2)
    label = registry.get(runtime).label
    assert f"batch_size is a setting of Transformers; {label} ignores it." in budget.warnings


@pytest.mark.parametrize("runtime", ["lmstudio", "jan", "koboldcpp", "llamafile"])
def test_that_these_are_as_sure_as_llama_cpp(runtime: str) -> None:
    budget = _plan(runtime, max_model_len=8192)
    assert budget.doubts == ()
    assert judge(budget).fit is Fit.FITS


def test_that_a_fork_has_a_rule_where_its_logs_tell_one() -> None:
    # 512 tokens: 4 B x 512 x (128,256 + 2 x 4,096); on the host a mask of 8,192 cells in f32,
    # a hidden state, 12 B of indices for each token, and one slot's row of logits.
    fork = _plan("ik_llama.cpp", max_model_len=8192)
    work = [rank.regions[Region.ACTIVATIONS].estimate for rank in fork.ranks]
    assert work[0].likely_bytes == 4 * 512 * (128_256 + 2 * 4096)
    assert work[0].basis is Basis.FITTED
    assert fork.llama_cpp is not None
    pinned = 4 * 512 * (8192 + 4096 + 3)
    assert fork.llama_cpp.compute_buffers["CUDA_Host"] == pinned
    assert work[1].likely_bytes == pinned + fork.llama_cpp.output_buffer
    assert _kv(fork) == GIB
    assert fork.doubts == ()
    assert judge(fork).fit is Fit.FITS


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("Llama-3.1-8B", {"gpu_count": 2}),
        ("Llama-3.1-8B", {"n_gpu_layers": 20}),
        ("Llama-3.1-8B", {"n_ctx": 16384, "flash_attn": "off"}),
    ],
)
def test_that_a_fork_is_a_bound_where_no_log_tells(name: str, settings: dict[str, Any]) -> None:
    machine = TWO if settings.pop("gpu_count", 1) == 2 else HERE
    asked: dict[str, Any] = {"n_ctx": 4096} | settings
    plan = Deployment(runtime="ik_llama.cpp", **asked)
    fork = registry.get("ik_llama.cpp").plan(model(name), plan, machine)
    assert fork.direction(Region.ACTIVATIONS) is Direction.EITHER
    assert fork.direction(Region.KV_CACHE) is None
    assert judge(fork).fit is Fit.UNKNOWN


def test_that_a_server_with_rules_of_its_own_is_a_bound() -> None:
    served = _plan("tgi", max_model_len=8192)
    assert served.direction(Region.KV_CACHE) is Direction.EITHER
    assert served.ranks[0].regions[Region.KV_CACHE].estimate.basis is Basis.BOUND
    assert served.ranks[0].needed.basis is Basis.BOUND
    assert judge(served).fit is Fit.UNKNOWN


def test_that_what_is_certainly_too_much_does_not_fit_a_bound_either() -> None:
    assert judge(_plan("tgi", "Llama-3.1-70B")).fit is Fit.DOES_NOT_FIT
    assert judge(_plan("ik_llama.cpp", "Llama-3.1-70B")).fit is Fit.DOES_NOT_FIT


def test_that_layers_can_be_left_on_the_host() -> None:
    plan = Deployment(runtime="lmstudio", max_model_len=8192)
    found = changes(model("Llama-3.1-70B"), plan, HERE)
    assert any("on the GPU" in change.label for change in found)
    assert {change.deployment.runtime for change in found} == {"lmstudio"}


def test_that_only_programs_with_a_library_have_a_small_format_by_default() -> None:
    names = {runtime: loaded(model("Llama-3.1-8B"), runtime).name for runtime in FRONT_ENDS}
    assert names == {
        "lmstudio": "Q4_K_M", "jan": "BF16", "koboldcpp": "BF16", "llamafile": "BF16",
        "ik_llama.cpp": "BF16", "tgi": "bf16",
    }  # fmt: skip


def test_that_the_runtime_beneath_refuses_with_the_setting() -> None:
    with pytest.raises(DeploymentError) as refused:
        _plan("lmstudio", cache_type_k="fp8")
    assert refused.value.field == "cache_type_k"
    with pytest.raises(DeploymentError) as refused:
        _plan("tgi", tensor_parallel_size=3)
    assert refused.value.field == "tensor_parallel_size"


def test_that_a_runtime_without_one_beneath_is_its_own_family() -> None:
    assert registry.family("llama.cpp") == "llama.cpp"
    assert registry.family("nobody") == "nobody"
    assert {registry.family(name) for name in FRONT_ENDS} == {"llama.cpp", "vllm"}


@pytest.mark.parametrize("runtime", FRONT_ENDS)
def test_that_another_release_is_told_from_the_one_whose_defaults_are_known(runtime: str) -> None:
    known = registry.get(runtime).versions[0]
    for same in (None, known, f"v{known}.1"):
        assert not any(
            "may have others" in told for told in _plan(runtime, runtime_version=same).warnings
        )
    assert any(
        f"{known}; 99.1 may" in told for told in _plan(runtime, runtime_version="99.1").warnings
    )
    with pytest.raises(DeploymentError, match="'q' is not a version of") as caught:
        _plan(runtime, runtime_version="q")
    assert caught.value.field == "runtime_version"


@pytest.mark.parametrize("runtime", ["vllm", "sglang", "ollama"])
@pytest.mark.parametrize("version", ["0.33.0; rm", "٠.٣٣.٠", "0." + "9" * 40])
def test_that_a_release_is_read_whole(runtime: str, version: str) -> None:
    with pytest.raises(DeploymentError) as caught:
        _plan(runtime, runtime_version=version)
    assert caught.value.field == "runtime_version"
