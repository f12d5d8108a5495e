"""Settings that a runtime does not have: told, and left out, so that none is swallowed silently."""

from __future__ import annotations

from dataclasses import fields
from operator import attrgetter
from typing import TYPE_CHECKING

from engine.deployment.spec import Deployment
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Mapping

_VLLM = (
    "live_tokens", "data_parallel_size", "enable_expert_parallel", "decode_context_parallel_size",
    "max_num_seqs", "max_num_batched_tokens", "gpu_memory_utilization", "enforce_eager",
    "language_model_only",
    "enable_prefix_caching", "speculative_tokens", "max_loras", "max_lora_rank", "kv_pool_bytes",
    "kv_cache_memory_bytes", "num_gpu_blocks_override", "block_size", "pp_layer_partition",
    "draft_model",
)  # fmt: skip
_SGLANG = (
    "live_tokens", "data_parallel_size", "enable_expert_parallel", "enforce_eager",
    "enable_prefix_caching", "speculative_tokens", "max_loras", "max_lora_rank", "kv_pool_bytes",
    "mem_fraction_static", "chunked_prefill_size", "max_running_requests", "max_total_tokens",
    "cuda_graph_max_bs", "page_size", "enable_dp_attention", "swa_full_tokens_ratio",
    "max_mamba_cache_size", "mamba_full_memory_ratio", "draft_model",
)  # fmt: skip
_LLAMA_CPP = (
    "n_ctx", "n_parallel", "kv_unified", "n_batch", "n_ubatch", "cache_type_k", "cache_type_v",
    "flash_attn", "swa_full", "n_gpu_layers", "n_cpu_moe", "split_mode", "tensor_split", "mmap",
    "repack", "offload_kqv", "op_offload", "n_outputs_max", "backend",
    "cache_ram_bytes", "language_model_only",
)  # fmt: skip
_OLLAMA = ("gpu_overhead_bytes", "sched_spread")
_TRANSFORMERS = (
    "batch_size", "prompt_len", "attn_implementation", "cache_implementation", "kv_bits",
    "num_beams", "prefill_chunk_size", "device_map", "max_loras", "max_lora_rank",
)  # fmt: skip
_MLX = (
    "prompt_len", "prefill_step_size", "kv_bits", "kv_group_size", "quantized_kv_start",
    "max_kv_size",
)  # fmt: skip
# A setting may belong to several runtimes.
_OWNERS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "vllm": ("vLLM", _VLLM),
    "sglang": ("SGLang", _SGLANG),
    "llama.cpp": ("llama.cpp", _LLAMA_CPP),
    "transformers": ("Transformers", _TRANSFORMERS),
    "mlx": ("MLX", _MLX),
}
_BORROWERS: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "ollama": ("Ollama", "llama.cpp", _OLLAMA),
    "lmstudio": ("LM Studio", "llama.cpp", ()),
    "jan": ("Jan", "llama.cpp", ()),
    "koboldcpp": ("KoboldCpp", "llama.cpp", ()),
    "llamafile": ("llamafile", "llama.cpp", ()),
    "ik_llama.cpp": ("ik_llama.cpp", "llama.cpp", ()),
    "tgi": ("TGI", "vllm", ()),
}
"""Runtimes that start another one: label, whose settings they have, and their own beside them.

llama-server also reads what Ollama has no word for, from ``LLAMA_ARG_…`` in its environment.
"""
_DEFAULTS = {field.name: field.default for field in fields(Deployment)}


class _Foreign:
    """The settings of all other runtimes, read in one go: this runs in every budget."""

    def __init__(self, runtime: str) -> None:
        self.label, own = _own(runtime)
        self.owners: dict[str, str] = {}
        further = ((label, names) for label, _, names in _BORROWERS.values())
        for label, names in (*_OWNERS.values(), *further):
            for name in names:
                if name not in own:
                    known = self.owners.get(name)
                    self.owners[name] = (
                        tr("{known} and {label}").format(known=known, label=label)
                        if known
                        else label
                    )
        self.read = attrgetter(*self.owners)
        self.defaults = tuple(_DEFAULTS[name] for name in self.owners)

    def stated(self, deployment: Deployment) -> tuple[str, ...]:
        values = self.read(deployment)
        if values == self.defaults:
            return ()
        found = zip(self.owners, values, self.defaults, strict=True)
        return tuple(name for name, value, default in found if value != default)


def _own(runtime: str) -> tuple[str, tuple[str, ...]]:
    """Label and settings of ``runtime``."""
    if runtime in _OWNERS:
        return _OWNERS[runtime]
    label, lender, further = _BORROWERS[runtime]
    return label, (*_OWNERS[lender][1], *further)


_FOREIGN = {runtime: _Foreign(runtime) for runtime in (*_OWNERS, *_BORROWERS)}


def has(runtime: str, setting: str) -> bool:
    """Whether ``runtime`` knows ``setting``, of its own or of the one it starts."""
    return setting in _own(runtime)[1]


def settings_of(runtime: str) -> frozenset[str]:
    """Names of the settings that ``runtime`` has of its own, those it borrows among them."""
    return frozenset(_own(runtime)[1])


def warnings(deployment: Deployment, runtime: str) -> list[str]:
    """One sentence for each setting of another runtime that ``deployment`` states."""
    foreign = _FOREIGN[runtime]
    return [
        tr("{name} is a setting of {owners}; {label} ignores it.").format(
            name=name, owners=foreign.owners[name], label=foreign.label
        )
        for name in foreign.stated(deployment)
    ]


def without(deployment: Deployment, runtime: str) -> Deployment:
    """``deployment`` with only those settings that ``runtime`` has."""
    stated = _FOREIGN[runtime].stated(deployment)
    return deployment.with_(**{name: _DEFAULTS[name] for name in stated})
