"""How vLLM is started.

Source:
    ``vllm/engine/arg_utils.py`` of 0.6.6, 0.8.5, 0.10.0, 0.11.0, 0.14.0, 0.18.0, 0.22.0, 0.27.0
    and 0.33.0. A row that came between two of these is written from the later one on, so that no
    release is given a flag that it may not know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.launch import weights
from engine.launch.dialect import Dialect, Heard, Spoken, harmless, stated
from engine.launch.flags import (
    HUMAN,
    INTEGER,
    INTEGERS,
    LENGTH,
    NUMBER,
    OBJECT,
    TEXT,
    Flag,
    choice,
)
from engine.runtimes import foreign
from engine.runtimes.vllm import cache_rules, rules
from engine.words import tr

if TYPE_CHECKING:
    from engine.launch.dialect import Asked

_KV_CACHES = choice(
    {
        "bf16": "bfloat16",
        "fp16": "float16",
        **{
            name: name
            for name in (
                "fp8", "fp8_e4m3", "fp8_e5m2", "fp8_ds_mla", "fp8_per_token_head",
                "int8_per_token_head", "int4_per_token_head", "nvfp4", "nvfp4_4over6",
                "nvfp4_ds_mla",
            )
        },
    },
    {"auto": "auto"},
)  # fmt: skip
_KV_CACHES_SINCE = {
    "bf16": (0, 11), "fp16": (0, 18), "fp8_ds_mla": (0, 14), "fp8_per_token_head": (0, 22),
    "int8_per_token_head": (0, 22), "int4_per_token_head": (0, 27), "nvfp4": (0, 22),
    "nvfp4_4over6": (0, 33), "nvfp4_ds_mla": (0, 33),
}  # fmt: skip
_ONLINE = {
    "fp8": ((), ()),
    "fp8-block": ((0, 22), ()),
    "fp8-channel": ((0, 27), ()),
    "nf4": ((), (0, 28)),
}
"""Formats made while loading -> first release, and the first that is not known to do so."""
_QUANTISERS = choice(
    {
        "fp8": "fp8",
        "fp8-block": "fp8_per_block",
        "fp8-channel": "fp8_per_channel",
        "nf4": "bitsandbytes",
    },
    {
        "fp8_per_tensor": "fp8",
        **dict.fromkeys(
            ("awq", "awq_marlin", "auto_awq", "gptq", "gptq_marlin", "auto_gptq", "mxfp4",
             "compressed-tensors", "modelopt", "modelopt_fp4", "quark", "gguf", "moe_wna16"),
            None,
        ),
    },
)  # fmt: skip
"""What only names how the files are stored is read, and changes nothing."""
_OWN_BLOCKS = (0, 11)
"""The first release read whose ``--speculative-config`` takes the method ``mtp``."""

FLAGS = (
    Flag("max_model_len", ("--max-model-len",), LENGTH),
    Flag("tensor_parallel_size", ("--tensor-parallel-size", "-tp")),
    Flag("pipeline_parallel_size", ("--pipeline-parallel-size", "-pp")),
    Flag("data_parallel_size", ("--data-parallel-size", "-dp"), since=(0, 8, 5)),
    Flag(
        "enable_expert_parallel", ("--enable-expert-parallel", "-ep"), None,
        opposite=("--no-enable-expert-parallel",), since=(0, 8, 5),
    ),
    Flag(
        "decode_context_parallel_size", ("--decode-context-parallel-size", "-dcp"), since=(0, 11)
    ),
    Flag(
        "gpu_memory_utilization", ("--gpu-memory-utilization", "--device-memory-utilization"),
        NUMBER,
    ),
    Flag(
        "kv_cache_memory_bytes", ("--kv-cache-memory-bytes",), HUMAN,
        since=cache_rules.POOL_IN_BYTES,
    ),
    Flag("kv_cache_dtype", ("--kv-cache-dtype",), _KV_CACHES, first=_KV_CACHES_SINCE),
    Flag("max_num_seqs", ("--max-num-seqs",)),
    Flag("max_num_batched_tokens", ("--max-num-batched-tokens",), HUMAN),
    Flag("block_size", ("--block-size",)),
    Flag("num_gpu_blocks_override", ("--num-gpu-blocks-override",)),
    Flag("dtype", ("--dtype",), weights.DTYPES),
    Flag("quantization", ("--quantization", "-q"), _QUANTISERS),
    Flag("enforce_eager", ("--enforce-eager",), None, opposite=("--no-enforce-eager",)),
    Flag(
        "enable_prefix_caching", ("--enable-prefix-caching",), None,
        opposite=("--no-enable-prefix-caching",),
    ),
    Flag(
        "language_model_only", ("--language-model-only",), None,
        opposite=("--no-language-model-only",), since=rules.TEXT_ONLY,
    ),
    Flag("enable_lora", ("--enable-lora",), None, opposite=("--no-enable-lora",)),
    Flag("max_loras", ("--max-loras",)),
    Flag("max_lora_rank", ("--max-lora-rank",)),
    Flag("speculative_config", ("--speculative-config", "-sc"), OBJECT, since=_OWN_BLOCKS),
    Flag("speculative_model", ("--speculative-model", "--spec-model"), TEXT, until=(0, 8, 5)),
    Flag(
        "speculative_tokens", ("--num-speculative-tokens", "--spec-tokens"), INTEGER,
        until=(0, 8, 5),
    ),
    Flag("model", ("--model",), TEXT, until=(0,)),
)  # fmt: skip
ENVIRONMENT = (Flag("pp_layer_partition", ("VLLM_PP_LAYER_PARTITION",), INTEGERS),)
_HARMLESS = harmless(
    "--host --port --served-model-name --api-key --tokenizer --tokenizer-mode "
    "--tool-call-parser --reasoning-parser --chat-template --seed --download-dir "
    "--load-format --revision --tokenizer-revision --uvicorn-log-level --root-path "
    "--generation-config --distributed-executor-backend --hf-token --code-revision "
    "--max-log-len --allowed-origins --log-level --nnodes -n --node-rank -r --master-addr "
    "--master-port",
    "--trust-remote-code --enable-auto-tool-choice --disable-log-requests "
    "--disable-log-stats --enable-log-requests --no-enable-log-requests --enable-reasoning "
    "--headless",
)


def speak(asked: Asked) -> Spoken:
    """The plan in vLLM's settings."""
    plan = foreign.without(asked.plan, "vllm")
    spoken = Spoken(stated(plan), asked.name)
    spoken.drop("concurrency", "live_tokens", "draft_model")
    weights.say(asked, spoken, _ONLINE)
    if spoken.values.pop("kv_pool_bytes", None) is not None:
        spoken.remarks.append(
            tr("The plan’s KV pool is one that was measured; vLLM works its own out.")
        )
    if plan.max_loras:
        spoken.values["enable_lora"] = True
    else:
        spoken.drop("max_lora_rank")
    if plan.speculative_tokens:
        _speculate(asked, spoken)
    return spoken


def _speculate(asked: Asked, spoken: Spoken) -> None:
    tokens, draft = asked.plan.speculative_tokens, asked.plan.draft_model
    if asked.version < _OWN_BLOCKS:
        if draft is not None:
            spoken.values["speculative_model"] = draft.id
        return
    spoken.drop("speculative_tokens")
    how = {"method": "mtp"} if draft is None else {"model": draft.id}
    spoken.values["speculative_config"] = {**how, "num_speculative_tokens": tokens}


def hear(values: dict[str, Any], positionals: tuple[str, ...]) -> Heard:
    """A command's settings as a plan."""
    lost: list[str] = []
    model = values.pop("model", "") or (positionals[0] if positionals else "")
    config: dict[str, Any] = values.pop("speculative_config", None) or {}
    tokens = config.get("num_speculative_tokens")
    if isinstance(tokens, int):
        values["speculative_tokens"] = tokens
    draft = values.pop("speculative_model", None) or config.get("model") or ""
    has_adapters = values.pop("enable_lora", False)
    if has_adapters:
        values.setdefault("max_loras", 1)
    elif values.keys() & {"max_loras", "max_lora_rank"}:
        lost.append(tr("--max-loras and --max-lora-rank count with --enable-lora alone."))
        values.pop("max_loras", None)
        values.pop("max_lora_rank", None)
    found = weights.heard(values)
    if found:
        values["weight_format"] = found
    return Heard(values, str(model), str(draft), tuple(lost))


DIALECT = Dialect(
    runtime="vllm",
    program=("vllm", "serve"),
    flags=FLAGS,
    environment=ENVIRONMENT,
    version=rules.parse_version,
    speak=speak,
    hear=hear,
    harmless=_HARMLESS,
    dashes=True,
)
