"""The deployment: what the user chose. ``None`` means the runtime's own default.

Field names are the runtimes' own flags and the keys of the machine contract (design, section 4).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Self

    from engine.architecture.model import Model


@dataclass(frozen=True, slots=True)
class Deployment:
    """One plan. Immutable: an edit makes a new one with ``with_``."""

    runtime: str = "vllm"
    runtime_version: str | None = None
    weight_format: str = "auto"
    kv_cache_dtype: str = "auto"
    max_model_len: int | None = None
    """Context per request, in tokens (prompt and answer)."""
    concurrency: int = 1
    """Requests at once, each at ``max_model_len``."""
    live_tokens: int | None = None
    """Tokens held by all requests at once, where that is known to be less."""
    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    data_parallel_size: int = 1
    pp_layer_partition: tuple[int, ...] | None = None
    """Layers of each pipeline stage; None for the runtime's own split."""
    enable_expert_parallel: bool = False
    decode_context_parallel_size: int = 1
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    gpu_memory_utilization: float | None = None
    mem_fraction_static: float | None = None
    chunked_prefill_size: int | None = None
    """Tokens of a prefill step of SGLang; -1 reads a whole prompt at once."""
    max_running_requests: int | None = None
    max_total_tokens: int | None = None
    """Most tokens that SGLang's pool is to hold, however much room there is."""
    cuda_graph_max_bs: int | None = None
    page_size: int | None = None
    enable_dp_attention: bool | None = None
    """Whether SGLang's data-parallel ranks share the devices and split attention only."""
    swa_full_tokens_ratio: float | None = None
    max_mamba_cache_size: int | None = None
    """States of sequences that SGLang keeps room for."""
    mamba_full_memory_ratio: float | None = None
    enforce_eager: bool = False
    language_model_only: bool = False
    """Whether vLLM leaves the encoders of images, videos and sounds out."""
    enable_prefix_caching: bool | None = None
    speculative_tokens: int = 0
    draft_model: Model | None = None
    """The model that drafts tokens, where it is one of its own."""
    max_loras: int = 0
    max_lora_rank: int = 16
    kv_pool_bytes: int | None = None
    """Size of the KV pool per rank where it is known (from a log)."""
    kv_cache_memory_bytes: int | None = None
    """Size of the KV pool per rank as vLLM is told to make it, whatever share it may use."""
    num_gpu_blocks_override: int | None = None
    """Blocks of the KV pool as vLLM is told to make it, whatever memory there is."""
    block_size: int | None = None
    """Tokens of a KV block; None for the runtime's own."""
    platform: str | None = None
    """``linux``, ``windows``, ``wsl`` or ``macos``; None: as the machine says, else by device."""
    backend: str | None = None
    """Of llama.cpp: cuda, rocm, vulkan, metal, sycl or cpu; None: by device."""
    n_ctx: int | None = None
    n_parallel: int | None = None
    kv_unified: bool | None = None
    n_batch: int | None = None
    n_ubatch: int | None = None
    cache_type_k: str | None = None
    cache_type_v: str | None = None
    flash_attn: str | bool | None = None
    swa_full: bool = False
    n_gpu_layers: int | None = None
    n_cpu_moe: int = 0
    split_mode: str | None = None
    tensor_split: tuple[float, ...] | None = None
    mmap: bool = True
    repack: bool = True
    offload_kqv: bool = True
    op_offload: bool = True
    n_outputs_max: int | None = None
    cache_ram_bytes: int | None = None
    """Most that llama-server keeps of earlier prompts (``--cache-ram``); None: 8 GiB."""
    gpu_overhead_bytes: int | None = None
    """``OLLAMA_GPU_OVERHEAD``: memory that Ollama leaves alone on each GPU."""
    sched_spread: bool = False
    """``OLLAMA_SCHED_SPREAD``: all GPUs, even where one would do."""
    batch_size: int | None = None
    prompt_len: int | None = None
    attn_implementation: str | None = None
    cache_implementation: str | None = None
    kv_bits: float | None = None
    """Bits of a quantised cache (Transformers, MLX)."""
    num_beams: int | None = None
    prefill_chunk_size: int | None = None
    """Tokens of the prompt that Transformers reads in one pass; None: all of them."""
    device_map: str | None = None
    """Of Transformers: auto, balanced, sequential, balanced_low_0 or none; None: by devices."""
    prefill_step_size: int | None = None
    """Tokens of the prompt that MLX reads in one pass."""
    kv_group_size: int | None = None
    quantized_kv_start: int | None = None
    """Tokens from which on MLX quantises its cache."""
    max_kv_size: int | None = None
    """Rows of MLX's rotating cache."""

    def with_(self, **changes: Any) -> Self:
        """A copy with ``changes``."""
        # Not dataclasses.replace: this runs in every budget, and there are many fields.
        stated = dict(zip(_NAMES, _VALUES(self), strict=True))
        return type(self)(**(stated | changes))

    @property
    def ranks(self) -> int:
        """Devices that one replica takes."""
        return self.tensor_parallel_size * self.pipeline_parallel_size


_NAMES = tuple(field.name for field in fields(Deployment))
_VALUES = attrgetter(*_NAMES)
