"""A running process as a plan: from its command line, its variables and its endpoint."""

from __future__ import annotations

import pytest

from engine.errors import UsageError
from engine.seen.matched import matched, of_processes
from engine.seen.model import NOT_STATED, ModelSeen, RuntimeSeen


def plan(seen: RuntimeSeen, command: str = "", **environment: str):
    commands = [(1, tuple(command.split()))]
    return matched(
        seen, commands, lambda _pid, names: {n: v for n, v in environment.items() if n in names}
    )


def runtime(name: str, model=NOT_STATED, version=NOT_STATED, **settings) -> RuntimeSeen:
    return RuntimeSeen(name, name, model=model, version=version, settings=settings)


def test_that_vllms_command_and_endpoint_make_one_plan():
    seen = runtime("vllm", ModelSeen("served-name", 40960), "0.32.0", max_model_len=40960,
                   gpu_memory_utilization=0.92, kv_cache_dtype="auto")  # fmt: skip
    found = plan(seen, "python3 /usr/local/bin/vllm serve Qwen/Qwen3-8B -tp 2 "
                       "--kv-cache-dtype fp8 --served-model-name served-name")  # fmt: skip
    assert (found.runtime, found.model) == ("vllm", "Qwen/Qwen3-8B")
    deployment = found.deployment
    assert (deployment.tensor_parallel_size, deployment.max_model_len) == (2, 40960)
    assert deployment.gpu_memory_utilization == 0.92
    assert deployment.runtime_version == "0.32.0"
    assert deployment.kv_cache_dtype.startswith("fp8")  # as started; the endpoint said auto


def test_that_what_was_stated_at_the_start_is_kept_but_for_the_context():
    seen = runtime("vllm", ModelSeen("m"), max_model_len=8192, gpu_memory_utilization=0.92)
    found = plan(seen, "vllm serve m --max-model-len 16k --gpu-memory-utilization 0.5")
    assert found.deployment.gpu_memory_utilization == 0.5
    assert found.deployment.max_model_len == 8192


def test_that_ollamas_context_is_what_it_chose_and_its_variables_count():
    seen = runtime("ollama", ModelSeen("qwen3:8b", 32768), "0.32.1", max_model_len=32768)
    found = plan(
        seen, "/usr/local/bin/ollama serve",
        OLLAMA_NUM_PARALLEL="2", OLLAMA_KV_CACHE_TYPE="q8_0", HF_TOKEN="hf_secretsecret",
    )  # fmt: skip
    assert found.model == "qwen3:8b"
    deployment = found.deployment
    assert (deployment.max_model_len, deployment.n_parallel) == (32768, 2)
    assert deployment.kv_cache_dtype == "q8_0"
    assert "secret" not in repr(found)


def test_that_llama_servers_slots_stay_what_the_command_says():
    seen = runtime("llama.cpp", ModelSeen("x", 4096, 2), "b11549", max_model_len=4096)
    found = plan(seen, "llama-server -m /models/x.gguf -c 8192 -np 2 --cache-type-k q8_0")
    deployment = found.deployment
    assert (deployment.max_model_len, deployment.n_parallel) == (4096, 2)
    assert (deployment.runtime_version, deployment.cache_type_k) == ("b11549", "q8_0")
    assert found.model == "/models/x.gguf"
    shared = plan(seen, "llama-server -m x.gguf -c 9000 -np 2 --kv-unified").deployment
    assert (shared.n_ctx, shared.max_model_len) == (9000, None)


def test_that_an_endpoint_alone_is_enough(tmp_path):
    file = tmp_path / "x.gguf"
    file.write_bytes(b"GGUF")
    seen = runtime("llama.cpp", ModelSeen("x", 2048, file=str(file)), max_model_len=2048)
    found = plan(seen)
    assert (found.model, found.deployment.max_model_len) == (str(file), 2048)
    elsewhere = runtime("llama.cpp", ModelSeen("x", file="/not/here.gguf"))
    assert plan(elsewhere).model == "x"


def test_that_a_command_of_another_runtime_is_not_this_ones():
    seen = runtime("ollama", ModelSeen("qwen3:8b"))
    found = plan(seen, "llama-server -m /b/sha256-aa -c 4096")
    assert (found.runtime, found.deployment.max_model_len) == ("ollama", None)


def test_that_a_release_that_is_none_is_left_out():
    assert plan(runtime("vllm", ModelSeen("m"), "main")).deployment.runtime_version is None


def test_that_a_runtime_without_rules_is_one_sentence():
    with pytest.raises(UsageError, match="can’t be planned"):
        plan(runtime("tensorrt-llm", ModelSeen("m")))
    with pytest.raises(UsageError, match="names its model"):
        plan(runtime("vllm"))


def test_that_a_process_that_is_gone_leaves_what_the_endpoint_said():
    seen = RuntimeSeen("vllm", "vLLM", pids=(2**22 + 1,), model=ModelSeen("m"))
    assert of_processes(seen).model == "m"
