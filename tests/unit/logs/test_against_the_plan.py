"""Stated against predicted: by hand from the log and from the arithmetic of the model."""

from __future__ import annotations

import pytest

from engine.budget.model import Region
from engine.contract.run_plan import NoPlanError
from engine.errors import PlimsollError
from tests.helpers import logs
from tests.helpers.logs import GIB, MIB, explained

LLAMA_SERVER = """\
build: 6123 (79c1160b) with cc (Debian 12.2.0-14) 12.2.0 for x86_64-linux-gnu
llama_model_load_from_file_impl: using device CUDA0 (NVIDIA GeForce RTX 4090) - 23886 MiB free
llama_model_loader: loaded meta data with 29 key-value pairs and 292 tensors from \
/models/Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf (version GGUF V3 (latest))
print_info: file type   = Q4_K - Medium
load_tensors: offloaded 33/33 layers to GPU
load_tensors:   CPU_Mapped model buffer size =   281.81 MiB
load_tensors:        CUDA0 model buffer size =  4403.49 MiB
llama_context: n_seq_max     = 1
llama_context: n_ctx         = 8192
llama_context: n_batch       = 2048
llama_context: n_ubatch      = 512
llama_context: flash_attn    = enabled
llama_kv_cache:      CUDA0 KV buffer size =  1024.00 MiB
llama_context:      CUDA0 compute buffer size =   258.50 MiB
llama_context:  CUDA_Host compute buffer size =    24.01 MiB
main: server is listening on http://127.0.0.1:8080
"""


def test_that_the_plan_is_the_one_the_log_states() -> None:
    run = explained(logs.TAKEN)
    assert run.plan is not None
    plan = run.plan.deployment
    assert run.plan.model.id == "meta-llama/Llama-3.1-8B-Instruct"
    assert (plan.runtime, plan.runtime_version) == ("vllm", "0.33.0")
    assert (plan.max_model_len, plan.gpu_memory_utilization) == (8192, 0.92)
    assert run.plan.machine.slots[0].device.total_bytes == round(23.64 * GIB)


def test_that_weights_agree_to_the_last_digit_printed() -> None:
    (rows,) = explained(logs.TAKEN).rows
    weights = rows.row(Region.WEIGHTS)
    assert weights.stated is not None
    assert weights.predicted is not None
    # 8,030,261,248 parameters in BF16 and the table of positions: 16,094,076,928 bytes.
    assert weights.predicted.likely_bytes == 16_094_076_928
    assert weights.stated.size_bytes == round(14.9889 * GIB)
    assert weights.agrees
    assert weights.stated.lines == (4,)


def test_that_what_others_took_is_the_difference() -> None:
    (rows,) = explained(logs.TAKEN).rows
    others = rows.row(Region.FOREIGN)
    assert others.difference_bytes is not None
    assert abs(others.difference_bytes - round(2.0359 * GIB)) < MIB
    assert others.agrees is False


def test_that_llama_cpps_buffers_stand_beside_its_own() -> None:
    run = explained(LLAMA_SERVER)
    assert run.plan is not None
    assert run.plan.deployment.runtime_version == "b6123"
    assert run.plan.deployment.weight_format == "Q4_K_M"
    first = next(rows for rows in run.rows if rows.name == "CUDA0")
    cache = first.row(Region.KV_CACHE)
    # 32 layers × 8 heads × 128 × 2 × 2 bytes × 8,192 tokens.
    assert cache.predicted is not None
    assert cache.predicted.likely_bytes == 1024 * MIB
    assert cache.difference_bytes == 0
    weights = first.row(Region.WEIGHTS)
    assert weights.difference_bytes is not None
    assert abs(weights.difference_bytes) < MIB
    # A compute buffer is fitted, here as in the plan: it never passes for exact.
    work = first.row(Region.ACTIVATIONS).predicted
    assert work is not None
    assert work.low_bytes < work.likely_bytes < work.high_bytes


def test_that_what_lies_in_the_computers_memory_is_compared_with_that() -> None:
    run = explained(LLAMA_SERVER)
    assert run.sizing is not None
    device, host = run.sizing.budget.ranks
    rows = {each.name: each for each in run.rows}
    runtime = rows["CPU"].row(Region.RUNTIME).predicted
    assert runtime is not None
    assert runtime.likely_bytes == host.regions[Region.RUNTIME].estimate.likely_bytes
    # The pinned buffer holds a step's work and the output; libraries are counted beside it.
    assert rows["CUDA_Host"].row(Region.RUNTIME).predicted is None
    work = rows["CUDA_Host"].row(Region.ACTIVATIONS).predicted
    assert work is not None
    assert work.likely_bytes == host.regions[Region.ACTIVATIONS].estimate.likely_bytes
    own = rows["CUDA0"].row(Region.RUNTIME).predicted
    assert own is not None
    assert own.likely_bytes == device.regions[Region.RUNTIME].estimate.likely_bytes


def test_that_a_plan_that_takes_no_host_memory_predicts_none_of_a_hosts_buffer() -> None:
    text = logs.VLLM_HEAD + "load_tensors:   CPU_Mapped model buffer size =   281.81 MiB\n"
    (rows,) = explained(text, gpu="RTX 4090").rows
    assert rows.name == "CPU"
    assert rows.row(Region.WEIGHTS).predicted is None


def test_that_a_pool_is_not_predicted_for_a_card_that_nobody_names() -> None:
    (rows,) = explained(logs.VLLM_HEAD + logs.VLLM_LOADED + logs.VLLM_POOL).rows
    assert rows.row(Region.KV_CACHE).predicted is None
    assert rows.row(Region.HEADROOM).predicted is None
    assert rows.row(Region.WEIGHTS).predicted is not None


def test_that_a_pool_in_tokens_is_compared_at_the_plans_bytes_a_token() -> None:
    page = (
        'vllm:cache_config_info{block_size="16",gpu_memory_utilization="0.9",'
        'kv_cache_size_tokens="40000",num_gpu_blocks="2500"} 1.0\n'
        'vllm:num_requests_running{model_name="meta-llama/Llama-3.1-8B-Instruct"} 1.0\n'
    )
    (rows,) = explained(page, gpu="RTX 4090").rows
    pool = rows.row(Region.KV_CACHE)
    assert pool.stated is not None
    # 131,072 bytes a token.
    assert pool.stated.size_bytes == 40_000 * 131_072
    assert pool.stated.lines == (1,)
    assert pool.predicted is not None
    assert explained(page).rows[0].row(Region.KV_CACHE).predicted is None
    assert explained(page.replace("meta-llama/Llama-3.1-8B-Instruct", "x")).rows == ()


def test_that_a_card_can_be_named_beside_the_log() -> None:
    text = logs.VLLM_HEAD + logs.VLLM_LOADED + logs.VLLM_POOL
    (rows,) = explained(text, gpu="RTX 4090").rows
    pool = rows.row(Region.KV_CACHE)
    # Predicted from the card, not read off the log that it is compared with.
    assert pool.predicted is not None
    assert pool.stated is not None
    assert pool.predicted.likely_bytes != pool.stated.size_bytes
    assert pool.agrees


def test_that_a_log_without_a_model_says_what_is_missing() -> None:
    run = explained(logs.RANK)
    assert run.plan is None
    assert run.unplanned == "The log names no model: name it to predict the regions."
    assert [rows.name for rows in run.rows] == ["TP0", "TP1"]


def test_that_a_model_can_be_named_beside_the_log() -> None:
    run = explained(logs.RANK, model="Qwen/Qwen3-8B", tensor_parallel_size=2)
    assert run.plan is not None
    assert run.plan.model.id == "Qwen/Qwen3-8B"


def test_that_a_wrong_key_beside_the_log_is_an_error() -> None:
    with pytest.raises(PlimsollError, match="Did you mean"):
        explained(logs.TAKEN, max_model_length=5)


def test_that_a_setting_that_cannot_be_is_left_out_and_named() -> None:
    text = logs.TAKEN.replace("'max_model_len': 8192", "'max_model_len': 8192, 'max_num_seqs': 0")
    run = explained(text)
    assert run.plan is not None
    assert any("max_num_seqs of the log was left out" in note for note in run.notes)


def test_that_a_runtime_without_rules_is_named() -> None:
    text = "[TensorRT-LLM][INFO] Number of blocks in KV cache primary pool: 631\n"
    assert explained(text).unplanned == "No plan is made for tensorrt-llm."
    assert NoPlanError.code == "no_plan"


def test_that_a_log_that_cannot_be_predicted_is_explained_whatever_is_given() -> None:
    run = explained(logs.RANK, gpu="RTX 4090")
    assert run.unplanned == "The log names no model: name it to predict the regions."
    assert run.cause is not None
    other = explained(
        "[TensorRT-LLM][INFO] Number of blocks in KV cache primary pool: 6\n", gpu="H100"
    )
    assert other.unplanned == "No plan is made for tensorrt-llm."


@pytest.mark.parametrize(
    "given",
    [
        {"gpu": "no such card", "model": "Qwen/Qwen3-8B"},
        {"model": "/no/such/model.gguf"},
        {"max_model_len": 0},
        {"max_model_length": 5},
    ],
)
def test_that_what_is_given_and_wrong_is_an_error_though_the_log_lacks_a_model(given) -> None:
    with pytest.raises(PlimsollError):
        explained(logs.RANK, **given)
