"""How SGLang is started.

Source:
    ``sglang/srt/server_args.py`` and ``arg_groups`` of 0.4.2, 0.4.6, 0.4.10, 0.5.3, 0.5.6, 0.5.9,
    0.5.12, 0.5.15, 0.5.18, 0.5.21 and 0.5.23; between two of them a new row is written from the
    later one on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.launch import weights
from engine.launch.dialect import Dialect, Heard, Spoken, harmless, stated
from engine.launch.flags import HUMAN, NUMBER, TEXT, Flag, choice
from engine.runtimes import foreign
from engine.runtimes.sglang import rules
from engine.runtimes.sglang.parallel import parallel
from engine.words import tr

if TYPE_CHECKING:
    from engine.launch.dialect import Asked

_KV_CACHES = choice(
    {name: name for name in ("fp8_e4m3", "fp8_e5m2", "bf16", "mxfp8", "nvfp4", "fp4_mx_block16")},
    {"auto": "auto", "bfloat16": "bf16"},
)
_KV_CACHES_SINCE = {
    "bf16": (0, 5, 6), "mxfp8": (0, 5, 18), "nvfp4": (0, 5, 18), "fp4_mx_block16": (0, 5, 18),
}  # fmt: skip
_ONLINE = {"fp8": ((), ()), "mxfp8": ((0, 5, 23), ())}
_QUANTISERS = choice(
    {"fp8": "fp8", "mxfp8": "mxfp8"},
    dict.fromkeys(
        ("awq", "awq_marlin", "gptq", "gptq_marlin", "modelopt", "modelopt_fp4", "modelopt_fp8",
         "w8a8_int8", "w8a8_fp8", "moe_wna16", "compressed-tensors", "mxfp4", "quark"),
        None,
    ),
)  # fmt: skip
_SPREADS_BY_SIZE = (0, 5, 6)
"""The first release read in which ``--ep-size`` alone spreads the experts."""
_ADAPTERS_BY_SWITCH = (0, 4, 10)
"""The first release read with ``--enable-lora``; before, ``--lora-paths`` alone loads adapters."""
_SHARES_BY_SIZE = (0, 5, 23)
"""The release whose ``--attn-dp-size`` takes the place of ``--enable-dp-attention``."""

FLAGS = (
    Flag("model", ("--model-path", "--model"), TEXT),
    Flag("max_model_len", ("--context-length",), HUMAN),
    Flag("tensor_parallel_size", ("--tp-size", "--tensor-parallel-size", "--tp")),
    Flag(
        "pipeline_parallel_size", ("--pp-size", "--pipeline-parallel-size", "--pp"),
        since=(0, 4, 10),
    ),
    Flag("attn_dp_size", ("--attn-dp-size", "--attention-data-parallel-size")),
    Flag("data_parallel_size", ("--dp-size", "--data-parallel-size", "--dp")),
    Flag("enable_dp_attention", ("--enable-dp-attention",), None),
    Flag("ep_size", ("--ep-size", "--expert-parallel-size", "--ep")),
    Flag("enable_ep_moe", ("--enable-ep-moe",), None),
    Flag("mem_fraction_static", ("--mem-fraction-static",), NUMBER),
    Flag("kv_cache_dtype", ("--kv-cache-dtype",), _KV_CACHES, first=_KV_CACHES_SINCE),
    Flag("max_running_requests", ("--max-running-requests",)),
    Flag("max_total_tokens", ("--max-total-tokens",), HUMAN),
    Flag("chunked_prefill_size", ("--chunked-prefill-size",)),
    Flag("page_size", ("--page-size",), since=(0, 4, 6)),
    Flag("cuda_graph_max_bs", ("--cuda-graph-max-bs",), until=(0, 5, 15)),
    Flag("cuda_graph_max_bs", ("--cuda-graph-max-bs-decode",), since=(0, 5, 15)),
    Flag("enforce_eager", ("--disable-cuda-graph",), None),
    Flag("enable_prefix_caching", ("--disable-radix-cache",), None, means=False),
    Flag("swa_full_tokens_ratio", ("--swa-full-tokens-ratio",), NUMBER, since=(0, 4, 10)),
    Flag("max_mamba_cache_size", ("--max-mamba-cache-size",), since=(0, 5, 3)),
    Flag("mamba_full_memory_ratio", ("--mamba-full-memory-ratio",), NUMBER, since=(0, 5, 6)),
    Flag("dtype", ("--dtype",), weights.DTYPES),
    Flag("quantization", ("--quantization",), _QUANTISERS),
    Flag("enable_lora", ("--enable-lora",), None, since=_ADAPTERS_BY_SWITCH),
    Flag("max_loras", ("--max-loras-per-batch",), since=_ADAPTERS_BY_SWITCH),
    Flag("max_lora_rank", ("--max-lora-rank",), since=_ADAPTERS_BY_SWITCH),
    Flag("algorithm", ("--speculative-algorithm",), TEXT),
    Flag("steps", ("--speculative-num-steps",)),
    Flag("choices", ("--speculative-eagle-topk",)),
    Flag("drafts", ("--speculative-num-draft-tokens",)),
    Flag("draft", ("--speculative-draft-model-path", "--speculative-draft-model"), TEXT),
)  # fmt: skip
_HARMLESS = harmless(
    "--host --port --served-model-name --api-key --tokenizer-path --log-level "
    "--tool-call-parser --reasoning-parser --chat-template --random-seed --download-dir "
    "--load-format --revision --attention-backend --schedule-policy",
    "--trust-remote-code --enable-metrics --log-requests",
)


def speak(asked: Asked) -> Spoken:
    """The plan in SGLang's settings."""
    plan = foreign.without(asked.plan, "sglang")
    values = stated(plan)
    spoken = Spoken({"model": asked.name, **values}, asked.name)
    spoken.drop("concurrency", "live_tokens", "draft_model")
    if spoken.values.pop("kv_pool_bytes", None) is not None:
        spoken.remarks.append(
            tr("The plan’s KV pool is one that was measured; SGLang works its own out.")
        )
    weights.say(asked, spoken, _ONLINE)
    _say_parallel(asked, plan, spoken)
    if plan.enable_prefix_caching:
        spoken.drop("enable_prefix_caching")
    if plan.max_loras:
        if asked.version >= _ADAPTERS_BY_SWITCH:
            spoken.values["enable_lora"] = True
        spoken.values["max_lora_rank"] = plan.max_lora_rank
    else:
        spoken.drop("max_lora_rank")
    if plan.speculative_tokens:
        _speculate(plan, spoken)
    return spoken


def _say_parallel(asked: Asked, plan: Any, spoken: Spoken) -> None:
    values, ranks = spoken.values, plan.data_parallel_size
    shared = ranks > 1 and parallel(plan, asked.machine).attention_dp > 1
    spoken.drop("enable_dp_attention")
    if shared and asked.version >= _SHARES_BY_SIZE:
        spoken.drop("data_parallel_size")
        values["attn_dp_size"] = ranks
    elif shared:
        values["enable_dp_attention"] = True
    if values.pop("enable_expert_parallel", False):
        by_size = asked.version >= _SPREADS_BY_SIZE
        values["ep_size" if by_size else "enable_ep_moe"] = (
            plan.tensor_parallel_size if by_size else True
        )


def _speculate(plan: Any, spoken: Spoken) -> None:
    tokens = spoken.values.pop("speculative_tokens")
    if plan.draft_model is not None:
        spoken.remarks.append(
            tr(
                "{model} drafts {count} tokens a step: give --speculative-algorithm for its kind, "
                "--speculative-draft-model-path, --speculative-num-steps {count} and "
                "--speculative-num-draft-tokens {more}."
            ).format(model=plan.draft_model.id, count=tokens, more=tokens + 1)
        )
        return
    spoken.values |= {"algorithm": "EAGLE", "steps": tokens, "choices": 1, "drafts": tokens + 1}


def hear(values: dict[str, Any], _positionals: tuple[str, ...]) -> Heard:
    """A command's settings as a plan."""
    model, draft = values.pop("model", ""), values.pop("draft", "")
    shared = values.pop("attn_dp_size", 1)
    if shared > 1:
        values |= {"data_parallel_size": shared, "enable_dp_attention": True}
    experts = values.pop("ep_size", 1)
    if values.pop("enable_ep_moe", False) or experts > 1:
        values["enable_expert_parallel"] = True
    drafts, steps = values.pop("drafts", None), values.pop("steps", None)
    if values.pop("algorithm", None) and (steps or drafts):
        values["speculative_tokens"] = steps or drafts - 1
    lost: list[str] = []
    if values.pop("choices", 1) > 1:
        lost.append(tr("--speculative-eagle-topk above 1: counted as a chain of drafts."))
    has_adapters = values.pop("enable_lora", False)
    if not has_adapters:
        values.pop("max_loras", None)
        values.pop("max_lora_rank", None)
    else:
        values.setdefault("max_loras", 8)
    found = weights.heard(values)
    if found:
        values["weight_format"] = found
    return Heard(values, str(model), str(draft), tuple(lost))


DIALECT = Dialect(
    runtime="sglang",
    program=("python3", "-m", "sglang.launch_server"),
    flags=FLAGS,
    version=rules.parse_version,
    speak=speak,
    hear=hear,
    harmless=_HARMLESS,
)
