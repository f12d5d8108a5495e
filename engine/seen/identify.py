"""Which runtime answers at an address, told by the shape of what it says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from engine.seen import openai
from engine.seen.model import Reach, RuntimeSeen
from engine.seen.readers import (
    llama_cpp,
    lm_studio,
    ollama,
    plain,
    sglang,
    tensorrt_llm,
    tgi,
    vllm,
)
from engine.telemetry.snapshot import Missing
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.seen.asker import Asker


class Kind(NamedTuple):
    """A runtime that can be asked."""

    runtime: str
    label: str
    ports: tuple[int, ...]
    """Where it listens unless told otherwise."""
    is_here: Callable[[Asker], bool]
    read: Callable[[Asker], tuple[RuntimeSeen, ...]]


def _has_metrics(prefixes: tuple[str, ...]) -> Callable[[Asker], bool]:
    def is_here(asker: Asker) -> bool:
        page = asker.metrics()
        return not isinstance(page, Missing) and any(
            sample.name.startswith(prefixes) for sample in page.samples
        )

    return is_here


def _is_ollama(asker: Asker) -> bool:
    return isinstance(asker.fields("/api/version").get("version"), str)


def _is_llama_cpp(asker: Asker) -> bool:
    return asker.is_loading() or "default_generation_settings" in asker.fields("/props")


def _is_sglang(asker: Asker) -> bool:
    if _has_metrics(sglang.PREFIXES)(asker):
        return True
    info = asker.fields("/server_info") or asker.fields("/get_server_info")
    return "internal_states" in info or "mem_fraction_static" in info


def _is_vllm(asker: Asker) -> bool:
    if _has_metrics(vllm.PREFIXES)(asker):
        return True
    return any(entry.get("owned_by") == "vllm" for entry in openai.models(asker))


def _is_tgi(asker: Asker) -> bool:
    info = asker.fields("/info")
    return "model_id" in info and "max_total_tokens" in info


def _is_lm_studio(asker: Asker) -> bool:
    if isinstance(asker.fields("/api/v1/models").get("models"), list):
        return True
    listed = asker.fields("/api/v0/models").get("data")
    return isinstance(listed, list)


def _is_tensorrt_llm(asker: Asker) -> bool:
    said = asker.json("/metrics")
    if isinstance(said, list):
        return True
    page = asker.metrics("/prometheus/metrics")
    return not isinstance(page, Missing) and any(
        s.name.startswith(tensorrt_llm.PREFIXES) for s in page.samples
    )


def _is_open_ai(asker: Asker) -> bool:
    return bool(openai.models(asker))


KINDS: Final = (
    Kind("ollama", "Ollama", (11434,), _is_ollama, ollama.read),
    Kind("llama.cpp", "llama.cpp", (8080, 8081), _is_llama_cpp, llama_cpp.read),
    Kind("vllm", "vLLM", (8000,), _is_vllm, vllm.read),
    Kind("sglang", "SGLang", (30000,), _is_sglang, sglang.read),
    Kind("tgi", "TGI", (3000,), _is_tgi, tgi.read),
    Kind("lmstudio", "LM Studio", (1234,), _is_lm_studio, lm_studio.read),
    Kind("tensorrt-llm", "TensorRT-LLM", (8002, 9000), _is_tensorrt_llm, tensorrt_llm.read),
    Kind("mlx", "MLX", (), _is_open_ai, plain.read_mlx),
)
"""In the order in which an unknown address is tried; MLX's answer has no shape of its own."""
PORTS: Final = frozenset(port for kind in KINDS for port in kind.ports)


def read(asker: Asker, expected: str = "") -> tuple[RuntimeSeen, ...]:
    """What answers at an address says; nothing where it is no runtime.

    Args:
        asker: asks there.
        expected: the runtime whose process listens there; empty where that is not known.

    Raises:
        KeyWantedError: it wants a key before it says anything.
        JobCancelledError: the token was cancelled.
    """
    for kind in sorted(KINDS, key=lambda kind: kind.runtime != expected):
        if kind.runtime == "mlx" and expected != "mlx":
            continue
        if kind.is_here(asker):
            return kind.read(asker)
        if asker.trouble():
            return _silent(asker, expected)
    return plain.read_other(asker) if _is_open_ai(asker) else ()


def _silent(asker: Asker, expected: str) -> tuple[RuntimeSeen, ...]:
    label = next((kind.label for kind in KINDS if kind.runtime == expected), "")
    seen = RuntimeSeen(expected, label or tr("Unknown"), Reach.SILENT, asker.trouble())
    return (seen,) if expected else ()
