"""Command lines that may be shown, and the runtime they give away."""

from __future__ import annotations

import pytest

from engine.telemetry import commands


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["vllm", "serve", "m", "--api-key", "abc"], "vllm serve m --api-key ***"),
        (["x", "--hf-token=hf_abcdefgh"], "x --hf-token=***"),
        (["x", "hf_AbCdEfGhIjKl"], "x ***"),
        (["env", "OPENAI_API_KEY=sk-123456789"], "env OPENAI_API_KEY=***"),
        (["x", "--header", "Authorization: Bearer abc.def"], "x --header Authorization:***"),
        (["curl", "http://user:secret@host/"], "curl http://***@host/"),
        (["x", "--password", "hunter2", "--port", "1"], "x --password *** --port 1"),
        (
            ["bash", "-c", "vllm serve m --api-key abc --port 80"],
            "bash -c vllm serve m --api-key *** --port 80",
        ),
        (["sh", "-c", "cd /x && HF_TOKEN=abc serve m"], "sh -c cd /x && HF_TOKEN=*** serve m"),
        (["x", "--max-tokens", "4096"], "x --max-tokens 4096"),
        (["x", "--max-num-batched-tokens=2048"], "x --max-num-batched-tokens=2048"),
        (["x", "--tokenizer", "org/name"], "x --tokenizer org/name"),
        (["x", "/home/someone/models/a.gguf"], "x ~/models/a.gguf"),
        (["x", "a\x1b[2Jb\u202ec"], "x a\\x1b[2Jb\\u202ec"),
    ],
)
def test_that_secrets_are_masked_and_settings_are_not(arguments: list[str], expected: str):
    assert commands.shown(arguments) == expected


def test_that_a_command_line_is_cut_to_a_bounded_length():
    assert len(commands.shown(["x" * 10**6] * 100)) <= commands.LONGEST_COMMAND


@pytest.mark.parametrize(
    ("name", "command", "runtime", "part", "model"),
    [
        ("vllm", "python3 vllm serve meta-llama/Llama-3.1-8B-Instruct", "vllm", "serve",
         "Llama-3.1-8B-Instruct"),
        ("VLLM::EngineCor", "VLLM::EngineCore", "vllm", "engine core", ""),
        ("VLLM::Worker_TP", "VLLM::Worker_TP0", "vllm", "worker", ""),
        ("python3", "python3 -m vllm.entrypoints.openai.api_server --model Qwen/Qwen3-8B", "vllm",
         "serve", "Qwen3-8B"),
        ("llama-server", "llama-server -m ~/models/gpt-oss-20b-mxfp4.gguf -c 8192", "llama.cpp", "",
         "gpt-oss-20b-mxfp4.gguf"),
        ("llama-server", "llama-server -hf ggml-org/gemma-3-4b-it-GGUF:Q4_K_M", "llama.cpp", "",
         "gemma-3-4b-it-GGUF"),
        ("ollama", "ollama serve", "ollama", "", ""),
        ("python", "python -m sglang.launch_server --model-path=org/m", "sglang", "", "m"),
        ("mlx_lm.server", "python -m mlx_lm.server --model mlx-community/x-4bit", "mlx", "",
         "x-4bit"),
        ("python3.11", "python3.11 ~/train.py --x", "", "", "train.py"),
        ("python", "python -m http.server", "", "", "http.server"),
        ("python", "python -c pass", "", "", ""),
        ("Xorg", "/usr/lib/xorg/Xorg :0", "", "", ""),
        ("firefox", "firefox --model x", "", "", ""),
    ],
)  # fmt: skip
def test_that_a_runtime_is_recognised_with_its_model(
    name: str, command: str, runtime: str, part: str, model: str
):
    found = commands.recognise(name, command)
    assert (found.runtime, found.part, found.model) == (runtime, part, model)
