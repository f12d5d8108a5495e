"""Which processes belong together."""

from __future__ import annotations

import pytest

from engine.seen.groups import Process, grouped


def process(pid: int, parent: int, command: str, name: str = "") -> Process:
    words = tuple(command.split())
    return Process(pid, parent, name or (words[0].rpartition("/")[2] if words else ""), words)


def found(*processes: Process) -> list[tuple[str, tuple[int, ...]]]:
    return [(group.runtime, group.pids) for group in grouped(processes)]


def test_that_vllm_has_its_engine_workers_and_nameless_helpers():
    processes = (
        process(1, 0, "/sbin/init"),
        process(90, 1, "bash"),
        process(100, 90, "python3 /usr/bin/vllm serve meta-llama/Llama-3.1-8B --port 8000"),
        process(101, 100, "VLLM::EngineCore", "VLLM::EngineCor"),
        process(102, 101, "VLLM::Worker_TP0"),
        process(103, 101, "VLLM::Worker_TP1"),
        process(104, 100, "python3 -c from multiprocessing.resource_tracker import main"),
        process(200, 90, "firefox"),
    )
    assert found(*processes) == [("vllm", (100, 101, 102, 103, 104))]
    assert grouped(processes)[0].model == "Llama-3.1-8B"


def test_that_ollamas_llama_server_is_ollamas():
    processes = (
        process(10, 1, "/usr/local/bin/ollama serve"),
        process(11, 10, "/usr/lib/ollama/llama-server --model /b/sha256-aa --port 41000"),
        process(12, 10, "/usr/lib/ollama/llama-server --model /b/sha256-bb --port 41001"),
    )
    assert found(*processes) == [("ollama", (10, 11, 12))]
    assert grouped(processes)[0].model == ""  # two, so none of them


def test_that_the_older_runner_is_ollamas_too():
    assert found(
        process(10, 1, "/usr/bin/ollama serve"),
        process(11, 10, "/usr/bin/ollama runner --model /b/sha256-aa --port 41000"),
    ) == [("ollama", (10, 11))]


def test_that_two_servers_of_one_starter_stay_two():
    assert found(
        process(10, 1, "llama-swap --config x.yaml"),
        process(11, 10, "llama-server -m a.gguf --port 1"),
        process(12, 10, "llama-server -m b.gguf --port 2"),
    ) == [("llama.cpp", (11,)), ("llama.cpp", (12,))]


@pytest.mark.parametrize(
    ("command", "runtime"),
    [
        ("python -m sglang.launch_server --model-path m --tp 2", "sglang"),
        ("sglang::scheduler_TP0", "sglang"),
        ("text-generation-launcher --model-id m", "tgi"),
        ("/opt/LM-Studio/lm-studio --no-sandbox", "lmstudio"),
        ("/home/u/.lmstudio/llmster/llmster", "lmstudio"),
        ("python3 -m mlx_lm.server --model m", "mlx"),
        ("python3 /usr/local/bin/trtllm-serve m", "tensorrt-llm"),
        ("tritonserver --model-repository=/m", "tensorrt-llm"),
        ("C:\\Users\\u\\ollama.exe serve", "ollama"),
    ],
)
def test_that_each_runtime_is_known_by_its_command(command, runtime):
    assert found(process(5, 1, command)) == [(runtime, (5,))]


@pytest.mark.parametrize(
    "command",
    [
        "tail -f /var/log/llama-server.log", "vim vllm serve.md", "journalctl -u ollama -f",
        "docker run vllm/vllm-openai vllm serve m", "sudo vllm serve m", "grep -r llama-server .",
        "bash -c vllm serve m", "/usr/bin/python3 train.py",
    ],
)  # fmt: skip
def test_that_what_only_names_a_runtime_is_none(command):
    assert found(process(5, 1, command)) == []


def test_that_a_program_started_by_a_shell_is_the_head():
    assert found(process(5, 1, "bash -c vllm serve m"), process(6, 5, "/usr/bin/vllm serve m")) == [
        ("vllm", (6,))
    ]


def test_that_workers_whose_parent_has_died_are_a_group_of_their_own():
    assert found(process(5, 1, "VLLM::EngineCore"), process(6, 5, "VLLM::Worker_TP0")) == [
        ("vllm", (5, 6))
    ]


def test_that_a_circle_of_parents_ends():
    assert found(
        process(5, 6, "llama-server -m a"), process(6, 5, "sh"), process(7, 7, "ollama serve")
    )
