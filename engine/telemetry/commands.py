"""Command lines made fit to show and keep: secrets masked, control characters escaped, cut."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING

from engine import redaction
from engine.text import printable
from engine.words import tr_later

if TYPE_CHECKING:
    from collections.abc import Sequence

LONGEST_COMMAND = 400


def shown(arguments: Sequence[str]) -> str:
    """The command line as text that may be shown, recorded and shared."""
    words: list[str] = []
    for word in redaction.command(argument[:LONGEST_COMMAND] for argument in arguments):
        words.append(word)
        if sum(map(len, words)) > LONGEST_COMMAND:
            break
    return printable(" ".join(words), LONGEST_COMMAND)


@dataclass(frozen=True, slots=True)
class Recognised:
    """The inference runtime behind a process; empty texts where it is not recognised."""

    runtime: str
    """Key as in the machine contract (``vllm``), or empty."""
    label: str
    """As its makers write it, or empty."""
    part: str
    """Which of its processes this is: ``engine core``, ``worker``; or empty."""
    model: str
    """Last part of the model's name or path, of a plain Python its script; or empty."""


NOTHING = Recognised("", "", "", "")

# Pattern on "name command", runtime, label, part. First match wins, so parts stand before wholes.
# vLLM and SGLang set process titles; names checked against engines' sources and logs of 2025-26.
_SIGNATURES = tuple(
    (re.compile(pattern, re.IGNORECASE), runtime, label, part)
    for pattern, runtime, label, part in (
        (r"VLLM::Engine_?Core", "vllm", "vLLM", tr_later("engine core")),
        (r"VLLM::Worker", "vllm", "vLLM", tr_later("worker")),
        (r"VLLM::", "vllm", "vLLM", ""),
        (r"\bvllm serve\b|vllm\.entrypoints|\bvllm\b(?=.* --?model)", "vllm", "vLLM", "serve"),
        (r"sglang::scheduler", "sglang", "SGLang", tr_later("scheduler")),
        (r"sglang::|sglang[. ](?:launch_server|serve)", "sglang", "SGLang", ""),
        (r"\bollama(?:\.exe)? runner\b", "ollama", "Ollama", tr_later("runner")),
        (r"\bollama(?:\.exe)?\b.*\bserve\b|^ollama\b", "ollama", "Ollama", ""),
        (r"\bllama-(?:server|cli|bench|run|mtmd-cli|perplexity)\b", "llama.cpp", "llama.cpp", ""),
        (r"llama_cpp[./]server|\bxllamacpp\b|\bllamafile\b", "llama.cpp", "llama.cpp", ""),
        (r"\bmlx_(?:lm|vlm)\b", "mlx", "MLX", ""),
        (r"text-generation-(?:server|launcher)", "tgi", "TGI", ""),
        (r"\btrtllm-serve\b|\btritonserver\b", "tensorrt-llm", "TensorRT-LLM", ""),
        (r"lm[- ]?studio|\bllmster\b", "lmstudio", "LM Studio", ""),
        (r"\btransformers[ -](?:serve|chat)\b", "transformers", "Transformers", ""),
        (r"^python[\d.]*\b", "", "Python", ""),
    )
)
_MODEL_OPTIONS = ("--model-path", "--model", "-m", "-hf", "--hf-repo", "--model-id", "-hfr")


@lru_cache(maxsize=4096)
def recognise(name: str, command: str) -> Recognised:
    """The runtime and model that ``name`` and ``command`` give away."""
    text = f"{name} {command}"
    for pattern, runtime, label, part in _SIGNATURES:
        if pattern.search(text):
            return Recognised(
                runtime, label, part, _model(command) if runtime else _script(command)
            )
    return NOTHING


def _model(command: str) -> str:
    words = command.split()
    for at, word in enumerate(words):
        option, _, value = word.partition("=")
        is_module = option == "-m" and at > 0 and "python" in words[at - 1]
        if option in _MODEL_OPTIONS and not is_module:
            if not value and at + 1 < len(words):
                value = words[at + 1]
            if value and not value.startswith("-"):
                return _last_part(value)
    if "serve" in words:
        after = words[words.index("serve") + 1 :]
        if after and not after[0].startswith("-"):
            return _last_part(after[0])
    return ""


def _script(command: str) -> str:
    words = command.split()[1:]
    if words[:1] == ["-m"]:
        return "".join(words[1:2])
    return _last_part(words[0]) if words and not words[0].startswith("-") else ""


def _last_part(reference: str) -> str:
    path = PureWindowsPath(reference) if "\\" in reference else PurePosixPath(reference)
    return path.name.split(":")[0]
