"""How the page and the terminal call runtimes and figures, and write them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.truth.scoring.scores import Missed

NAMES = {
    "vllm": "vLLM",
    "sglang": "SGLang",
    "llama.cpp": "llama.cpp",
    "ollama": "Ollama",
    "ik_llama.cpp": "ik_llama.cpp",
    "transformers": "Transformers",
    "mlx": "MLX",
    "devices": "Devices and processes",
}
"""Runtime -> its name, in the order of the page."""
_FIGURES = {
    "graphs": "CUDA graphs, captured",
    "graphs_estimated": "CUDA graphs, vLLM's estimate",
    "non_torch": "non-torch memory",
    "consumed": "weights and non-torch",
    "kv_pool": "pool from scratch",
    "states": "recurrent states from scratch",
    "card": "whole card",
    "end": "end of generation",
    "load": "after loading",
    "kv": "cache",
    "active": "held after short prompts",
    "kv_blocks from a known pool": "blocks from a known pool",
    "kv_tokens from a known pool": "tokens from a known pool",
    "max_concurrency from a known pool": "concurrency from a known pool",
    "longest": "longest request from a known pool",
    "need": "need of one request",
    "kv_tokens": "tokens",
    "kv_blocks": "blocks",
    "max_concurrency": "concurrency",
    "kv_keys": "keys of the cache",
    "state_conv": "recurrent states",
    "state_ssm": "recurrent states",
    "draft_weights": "weights of a draft",
    "free_before_load": "free memory",
    "free_after_load": "free memory",
    "free_after_pool": "free memory",
    "outside_allocator": "outside PyTorch's allocator",
    "process": "whole process",
}
"""Figure -> how it is called, where that is not its own name."""
GIB = 2**30
_SMALLEST_BYTES = 2**24
"""A figure above this is bytes, shown in GiB; below, a count."""


def runtime_name(runtime: str) -> str:
    """A runtime, as its makers write it."""
    return NAMES.get(runtime, runtime)


def figure_name(figure: str) -> str:
    """A figure, as a person calls it."""
    return _FIGURES.get(figure, figure)


def in_order(runtimes: Iterable[str]) -> list[str]:
    """Runtimes in the order of the page."""
    found = set(runtimes)
    return [name for name in NAMES if name in found] + sorted(found - NAMES.keys())


def shown(value: float, beside: float = 0.0) -> str:
    """Bytes in GiB, or a count; ``beside`` is of the same kind, and tells of a small one."""
    if max(abs(value), abs(beside)) > _SMALLEST_BYTES:
        return f"{value / GIB:,.2f}"
    return f"{value:,.2f}" if value != int(value) else f"{value:,.0f}"


def reasons(missed: Iterable[Missed]) -> list[tuple[str, str, str, int]]:
    """(runtime, reason, what is missing, records), in the order of the page."""
    figures: dict[tuple[str, str], set[str]] = {}
    records: dict[tuple[str, str], set[str]] = {}
    for one in missed:
        key = one.runtime, one.reason
        name = "all" if one.figure == "*" else figure_name(one.figure)
        figures.setdefault(key, set()).add(name)
        records.setdefault(key, set()).add(one.record)
    order = {name: number for number, name in enumerate(in_order(key[0] for key in figures))}
    return [
        (key[0], key[1], "; ".join(sorted(figures[key])), len(records[key]))
        for key in sorted(figures, key=lambda key: (order[key[0]], key[1]))
    ]
