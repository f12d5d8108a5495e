"""The request of the machine contract, as one table.

From this table come the checks of ``request.parse``, the options of the command line with
their help, and the published JSON Schema: they cannot disagree. A table and not a class of
a validation library, because ``plimsoll size`` as a whole has a third of a second, of which
such an import would take half.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

from engine.words import tr_later

if TYPE_CHECKING:
    from collections.abc import Iterable


class Kind(Enum):
    """What a value must be."""

    TEXT = auto()
    INTEGER = auto()
    NUMBER = auto()
    BOOLEAN = auto()
    SWITCH = auto()
    """``on``, ``off``, ``auto`` or a boolean."""
    NUMBERS = auto()
    """A list of numbers; on the command line separated by commas."""
    INTEGERS = auto()
    """The same of whole numbers."""
    OBJECT = auto()
    OBJECTS = auto()


class Group(Enum):
    """Heading under which a field appears in help."""

    MODEL = "model"
    PLAN = "plan"
    TRAFFIC = "traffic"
    DEVICE = "device"
    VLLM = "vLLM"
    SGLANG = "SGLang"
    LLAMA_CPP = "llama.cpp"
    OLLAMA = "Ollama"
    TRANSFORMERS = "Transformers"
    MLX = "MLX"


@dataclass(frozen=True, slots=True)
class Field:
    """One key of a request (underscores) and option of the command line (dashes)."""

    name: str
    kind: Kind
    group: Group
    help: str
    """In English, as the command line and the schema say it; the window says ``tr`` of it."""
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    """Shorter options of the command line."""
    inline: bool = False
    """Whether it can only be given in a batch line, not on the command line."""

    @property
    def option(self) -> str:
        """The option on the command line."""
        return "--" + self.name.replace("_", "-")


RUNTIMES = (
    "vllm", "sglang", "llama.cpp", "ollama", "transformers", "mlx", "lmstudio", "jan", "koboldcpp",
    "llamafile", "ik_llama.cpp", "tgi",
)  # fmt: skip

# Beyond these a plan is a slip of the keyboard, and lists of ranks would fill the memory.
_MOST_TOKENS = 2**31
_MOST_REQUESTS = 2**20
_MOST_DEVICES = 1024
_MOST_BYTES = 2**53


def _text(group: Group, name: str, text: str, *choices: str) -> Field:
    return Field(name, Kind.TEXT, group, text, choices=choices)


def _switch(group: Group, name: str, text: str) -> Field:
    return Field(name, Kind.BOOLEAN, group, text)


def _integer(
    group: Group, name: str, text: str, span: tuple[int, int], aliases: tuple[str, ...] = ()
) -> Field:
    return Field(name, Kind.INTEGER, group, text, *span, aliases=aliases)


def _model() -> Iterable[Field]:
    group = Group.MODEL
    yield _text(group, "model", "Hub id or address, config.json, folder, .gguf or catalogue name")
    text = "a start command such as 'vllm serve …'; its settings count where no other is given"
    yield _text(group, "from_command", text)
    yield Field("config", Kind.OBJECT, group, "a config.json, inline", inline=True)
    yield Field(
        "tensors",
        Kind.OBJECTS,
        group,
        "header tensors that go with config: objects with name, dtype, shape",
        inline=True,
    )


def _plan() -> Iterable[Field]:
    group = Group.PLAN
    tokens, requests, ranks = (1, _MOST_TOKENS), (1, _MOST_REQUESTS), (1, _MOST_DEVICES)
    text = "vllm, sglang, llama.cpp, ollama, transformers, mlx, lmstudio, jan …"
    yield Field("runtime", Kind.TEXT, group, text, choices=RUNTIMES)
    yield _text(group, "runtime_version", "its version, such as 0.24.0")
    yield _text(
        group,
        "weight_format",
        tr_later("auto (as stored), bf16, fp8, awq-int4, nf4 … or a GGUF mix, Q4_K_M"),
    )
    yield _text(
        group, "kv_cache_dtype", tr_later("auto, bf16, fp8 … of vLLM; f16, q8_0 … of llama.cpp")
    )
    text = "context of one request, in tokens; -1: the longest that vLLM finds room for"
    span = (-1, _MOST_TOKENS)
    yield _integer(group, "max_model_len", text, span, ("--context", "-c"))
    yield _integer(
        group, "concurrency", tr_later("requests at once, each of that context"), requests
    )
    yield _integer(group, "live_tokens", tr_later("tokens held by all requests together"), tokens)
    yield _integer(
        group, "tensor_parallel_size", tr_later("devices that share a layer"), ranks, ("--tp",)
    )
    yield _integer(group, "pipeline_parallel_size", tr_later("groups of layers"), ranks, ("--pp",))
    text = tr_later("layers of each group, such as 16,32 (VLLM_PP_LAYER_PARTITION)")
    yield Field("pp_layer_partition", Kind.INTEGERS, group, text, 0, 2**20)
    yield _integer(group, "data_parallel_size", tr_later("copies of the model"), ranks)
    yield _switch(
        group, "enable_expert_parallel", tr_later("spread whole experts over the devices")
    )
    yield _integer(
        group, "decode_context_parallel_size", tr_later("devices that share a context"), ranks
    )
    yield _switch(
        group, "inverse", "also the most it can do, the least it takes, and what binds each"
    )


def _traffic() -> Iterable[Field]:
    group, tokens = Group.TRAFFIC, "in tokens, such as 500,2000,8000"
    yield Field("prompt_lengths", Kind.INTEGERS, group, f"samples of prompts, {tokens}", 0, 2**31)
    yield Field(
        "output_lengths",
        Kind.INTEGERS,
        group,
        "samples of answers: one for each prompt, or any number of independent ones",
        0,
        2**31,
    )
    yield Field("arrival_rate", Kind.NUMBER, group, "requests that come in a second")
    yield Field("tokens_per_second", Kind.NUMBER, group, "speed of one request while it runs")


def _device() -> Iterable[Field]:
    group = Group.DEVICE
    yield _text(group, "gpu", "'RTX 4090', or 'RTX 4090 + 2 x RTX 3060' (default: this machine)")
    yield _integer(group, "gpu_total_bytes", "memory the driver reports", (1, _MOST_BYTES))
    yield _integer(group, "gpu_count", "devices of this kind; 0 plans on the CPU", (0, 1024))
    text = "RAM of another machine (default: not stated, assumed from its devices)"
    yield _integer(group, "host_total_bytes", text, (1, _MOST_BYTES), ("--ram",))
    yield Field(
        "devices", Kind.INTEGERS, group, "which of the machine's devices to take, such as 0,2", 0
    )
    yield _text(
        group, "baseline", "this machine as it is now, or with nothing else on it", "now", "empty"
    )
    text = "process ids whose memory counts as free, since the plan takes their place"
    yield Field("instead_of", Kind.INTEGERS, group, text, 1)
    yield Field(
        "with",
        Kind.OBJECTS,
        group,
        "further models on the same machine: objects with model and plan, in order of start",
        inline=True,
    )
    text = "system the runtime runs on (default: this machine's, else by the device)"
    yield _text(group, "platform", text, "linux", "windows", "wsl", "macos")


def _pool() -> Iterable[Field]:
    group = Group.VLLM
    count = (1, _MOST_REQUESTS)
    yield _integer(group, "max_num_seqs", tr_later("most requests in one step"), count)
    yield _integer(
        group, "max_num_batched_tokens", tr_later("most tokens in one step"), (1, _MOST_TOKENS)
    )
    yield Field(
        "gpu_memory_utilization", Kind.NUMBER, group, tr_later("share of the device"), 0.01, 1.0
    )
    yield _switch(group, "enforce_eager", tr_later("no CUDA graphs"))
    yield _switch(
        group, "language_model_only", tr_later("no images, videos or sounds: encoders stay out")
    )
    yield _switch(group, "enable_prefix_caching", tr_later("keep the caches of finished requests"))
    yield _integer(group, "speculative_tokens", tr_later("draft tokens a step"), (0, 1024))
    yield _text(group, "draft_model", "model that drafts them, named like model")
    yield _integer(group, "max_loras", tr_later("adapters loaded at once"), (0, 4096))
    yield _integer(group, "max_lora_rank", tr_later("largest rank among them"), (1, 4096))
    yield _integer(
        group, "kv_pool_bytes", tr_later("size of the KV pool, when known"), (1, _MOST_BYTES)
    )
    text = tr_later(
        "size of the KV pool that each GPU is told to take; the share then decides nothing"
    )
    yield _integer(group, "kv_cache_memory_bytes", text, (1, _MOST_BYTES))
    text = tr_later("blocks of the KV pool, whatever memory there is")
    yield _integer(group, "num_gpu_blocks_override", text, (1, _MOST_TOKENS))
    yield _integer(group, "block_size", tr_later("tokens of a KV block"), (1, 2**20))


def _sglang() -> Iterable[Field]:
    group = Group.SGLANG
    count, tokens = (1, _MOST_REQUESTS), (1, _MOST_TOKENS)
    text = tr_later("share of the free memory that weights and pool take")
    yield Field("mem_fraction_static", Kind.NUMBER, group, text, 0.01, 1.0)
    text = tr_later("tokens of a prefill step; -1 reads a whole prompt at once")
    yield _integer(group, "chunked_prefill_size", text, (-1, _MOST_TOKENS))
    yield _integer(group, "max_running_requests", tr_later("most requests at once"), count)
    yield _integer(
        group, "max_total_tokens", tr_later("most tokens that the pool is to hold"), tokens
    )
    text = tr_later("largest batch with a CUDA graph of its own")
    yield _integer(group, "cuda_graph_max_bs", text, count)
    yield _integer(group, "page_size", tr_later("tokens of a page of the pool"), (1, 2**20))
    yield _switch(
        group, "enable_dp_attention", tr_later("data-parallel ranks share the same devices")
    )
    text = tr_later("tokens of the sliding layers' pool for one of the others' pool")
    yield Field("swa_full_tokens_ratio", Kind.NUMBER, group, text, 0.001, 1.0)
    text = tr_later("recurrent states that there is room for")
    yield _integer(group, "max_mamba_cache_size", text, count)
    text = tr_later("memory of recurrent states for one part of KV cache")
    yield Field("mamba_full_memory_ratio", Kind.NUMBER, group, text, 0.001, 1000.0)


def _llama_cpp() -> Iterable[Field]:
    group = Group.LLAMA_CPP
    tokens = (0, _MOST_TOKENS)
    yield _integer(
        group, "n_ctx", tr_later("context of all slots together; 0 = the model's"), tokens
    )
    yield _integer(group, "n_parallel", tr_later("slots"), (1, 4096))
    yield _switch(group, "kv_unified", tr_later("one cache shared by all slots"))
    yield _integer(group, "n_batch", tr_later("logical batch, in tokens"), (1, _MOST_TOKENS))
    yield _integer(group, "n_ubatch", tr_later("physical batch, in tokens"), (1, _MOST_TOKENS))
    backends = ("cuda", "rocm", "vulkan", "metal", "sycl", "cpu")
    yield _text(
        group, "backend", tr_later("build that runs (default: the device's own)"), *backends
    )
    yield _text(group, "cache_type_k", "f16, q8_0, q4_0 …")
    yield _text(group, "cache_type_v", "f16, q8_0, q4_0 …")
    yield Field("flash_attn", Kind.SWITCH, group, tr_later("on, off or auto"))
    yield _switch(group, "swa_full", tr_later("full cache for sliding-window layers"))
    yield _integer(
        group, "n_gpu_layers", tr_later("layers on the GPU; -1 = auto, -2 = all"), (-2, 100_000)
    )
    yield _integer(group, "n_cpu_moe", tr_later("layers whose experts stay in RAM"), (0, 100_000))
    yield _text(
        group, "split_mode", tr_later("how several GPUs share"), "layer", "row", "none", "tensor"
    )
    yield Field("tensor_split", Kind.NUMBERS, group, tr_later("share of each GPU, such as 3,1"), 0)
    yield _switch(group, "mmap", tr_later("map the file"))
    yield _switch(group, "repack", tr_later("rearranged weights for the CPU"))
    yield _switch(group, "offload_kqv", tr_later("the cache lies on the GPU"))
    yield _switch(group, "op_offload", tr_later("large host operations run on the GPU"))
    yield _integer(group, "n_outputs_max", tr_later("rows of logits reserved; 0 = n_batch"), tokens)
    text = tr_later(
        "most that llama-server keeps of earlier prompts in RAM (--cache-ram); 0: nothing"
    )
    yield _integer(group, "cache_ram_bytes", text, (0, _MOST_BYTES))


def _ollama() -> Iterable[Field]:
    group = Group.OLLAMA
    text = tr_later("OLLAMA_GPU_OVERHEAD: memory that Ollama leaves alone on each GPU")
    yield _integer(group, "gpu_overhead_bytes", text, (0, _MOST_BYTES))
    yield _switch(
        group, "sched_spread", tr_later("OLLAMA_SCHED_SPREAD: all GPUs, even where one would do")
    )


def _transformers() -> Iterable[Field]:
    group = Group.TRANSFORMERS
    yield _integer(group, "batch_size", tr_later("prompts at once"), (1, _MOST_REQUESTS))
    yield _integer(group, "prompt_len", tr_later("tokens of the prompt"), (1, _MOST_TOKENS))
    yield _text(group, "attn_implementation", "sdpa, eager, flash_attention_2 …")
    yield _text(group, "cache_implementation", "dynamic or static")
    text = tr_later(
        "bits of a quantised cache: 4 or 2, also 8, 3 or 1 with HQQ; 8, 4 or 2 with MLX"
    )
    yield Field("kv_bits", Kind.NUMBER, group, text, 1, 16)
    yield _integer(
        group, "num_beams", tr_later("beams of a search, each with its own cache"), (1, 4096)
    )
    text = tr_later("tokens of the prompt read in one pass; default: all of them")
    yield _integer(group, "prefill_chunk_size", text, (1, _MOST_TOKENS))
    text = tr_later(
        "auto, balanced, balanced_low_0, sequential, or none: the model on the first GPU"
    )
    yield _text(group, "device_map", text)


def _mlx() -> Iterable[Field]:
    group = Group.MLX
    tokens = (1, _MOST_TOKENS)
    yield _integer(
        group, "prefill_step_size", tr_later("tokens of the prompt read in one pass"), tokens
    )
    yield _integer(
        group,
        "kv_group_size",
        tr_later("elements a scale of a quantised cache: 32 to 128"),
        (1, 4096),
    )
    text = tr_later("token from which on the cache is quantised to kv_bits")
    yield _integer(group, "quantized_kv_start", text, (0, _MOST_TOKENS))
    yield _integer(group, "max_kv_size", tr_later("tokens that a rotating cache keeps"), tokens)


FIELDS: tuple[Field, ...] = (
    *_model(),
    *_plan(),
    *_traffic(),
    *_device(),
    *_pool(),
    *_sglang(),
    *_llama_cpp(),
    *_ollama(),
    *_transformers(),
    *_mlx(),
)
BY_NAME = {field.name: field for field in FIELDS}
ABOUT_THE_TRAFFIC = ("prompt_lengths", "output_lengths", "arrival_rate", "tokens_per_second")
ABOUT_THE_ANSWER = frozenset({"inverse"})
ABOUT_THE_MODEL = frozenset({"model", "from_command", "config", "tensors", "draft_model"})
ABOUT_THE_DEVICE = frozenset(
    {
        "gpu", "gpu_total_bytes", "gpu_count", "host_total_bytes", "devices", "baseline",
        "instead_of", "with",
    }
)  # fmt: skip
