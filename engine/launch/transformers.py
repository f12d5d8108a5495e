"""How a plan for Transformers is written: a few lines of Python.

Source:
    transformers 5.24.0 ``modeling_utils.py :: from_pretrained`` and ``generation/
    configuration_utils.py``; ``torch_dtype`` is called ``dtype`` since 4.56.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from engine.launch import weights
from engine.launch.dialect import Dialect, Heard, Spoken, stated
from engine.launch.flags import INTEGER, TEXT, Flag
from engine.runtimes import foreign
from engine.runtimes.transformers import releases
from engine.runtimes.transformers.placement import NOT_SPREAD
from engine.words import tr

if TYPE_CHECKING:
    from engine.launch.dialect import Asked
    from engine.launch.flags import Version

_NAMED_DTYPE = (4, 56)
_AS_STORED = (5,)
"""The first release that loads a checkpoint in its own dtype by itself; before, in 32 bits."""
_CONFIGS = {
    "nf4": ("load_in_4bit=True", 'bnb_4bit_quant_type="nf4"', "bnb_4bit_use_double_quant=True"),
    "nf4-plain": ("load_in_4bit=True", 'bnb_4bit_quant_type="nf4"'),
    "int8": ("load_in_8bit=True",),
}

LOADING = (
    Flag("dtype", ("dtype",), weights.DTYPES, since=_NAMED_DTYPE),
    Flag("dtype", ("torch_dtype",), weights.DTYPES, until=_NAMED_DTYPE),
    Flag("device_map", ("device_map",), TEXT),
    Flag("tp_plan", ("tp_plan",), TEXT),
    Flag("attn_implementation", ("attn_implementation",), TEXT),
)
"""Arguments of ``from_pretrained``."""
GENERATING = (
    Flag("max_model_len", ("max_length",), INTEGER),
    Flag("num_beams", ("num_beams",), INTEGER),
    Flag("cache_implementation", ("cache_implementation",), TEXT),
    Flag("prefill_chunk_size", ("prefill_chunk_size",), INTEGER),
)
"""Arguments of ``generate``."""
ON_ONE_GPU = "cuda"


def speak(asked: Asked) -> Spoken:
    """The plan in the words of ``from_pretrained`` and ``generate``."""
    plan = foreign.without(asked.plan, "transformers")
    spoken = Spoken(stated(plan), asked.name)
    values = spoken.values
    name = plan.weight_format
    if name in _CONFIGS:
        values["quantization_config"] = _CONFIGS[values.pop("weight_format")]
    else:
        weights.say(asked, spoken, {})
    spoken.drop("batch_size", "concurrency", "prompt_len", "kv_bits", "kv_cache_dtype")
    spoken.drop("tensor_parallel_size", "max_loras", "max_lora_rank")
    if plan.device_map == NOT_SPREAD or (plan.device_map is None and len(asked.machine.slots) == 1):
        values["device_map"] = ON_ONE_GPU
    elif plan.device_map is None and plan.tensor_parallel_size == 1:
        values["device_map"] = "auto"
    if plan.tensor_parallel_size > 1:
        values["tp_plan"] = "auto"
        values.pop("device_map", None)
        spoken.remarks.append(
            tr("Start it with torchrun --nproc-per-node {count}.").format(
                count=plan.tensor_parallel_size
            )
        )
    if plan.cache_implementation == "quantized" and plan.kv_bits:
        values["cache_config"] = {"nbits": int(plan.kv_bits), **_backend(plan.kv_bits)}
    values["prompts"] = plan.batch_size or plan.concurrency
    if plan.weight_format == "auto" and asked.version < _AS_STORED:
        values["dtype"] = "auto"
    if plan.max_loras:
        spoken.remarks.append(tr("Adapters are put on the model with PEFT."))
    return spoken


def _backend(bits: float) -> dict[str, str]:
    return {"backend": "quanto" if bits in (2, 4) else "hqq"}


def snippet(spoken: Spoken, version: Version) -> tuple[str, tuple[str, ...]]:
    """The lines of Python, and the settings that they leave out."""
    load, rest = _arguments(LOADING, spoken.values, version)
    config = rest.pop("quantization_config", ())
    load += ["quantization_config=config"] if config else []
    make, rest = _arguments(GENERATING, rest, version)
    cache = rest.pop("cache_config", None)
    make += [f"cache_config={json.dumps(cache)}"] if cache else []
    count = rest.pop("prompts", 1)
    several = f" * {count}" if count > 1 else ""
    lines = (
        "from transformers import AutoModelForCausalLM, AutoTokenizer"
        + (", BitsAndBytesConfig" if config else ""),
        "",
        f"name = {_quoted(spoken.model)}",
        'tokenizer = AutoTokenizer.from_pretrained(name, padding_side="left")',
        *(_call("config = BitsAndBytesConfig", config) if config else ()),
        *_call("model = AutoModelForCausalLM.from_pretrained", ("name", *load)),
        f'prompts = ["Put your prompt here"]{several}',
        'inputs = tokenizer(prompts, return_tensors="pt", padding=True).to(model.device)',
        *_call("answers = model.generate", ("**inputs", *make)),
        "print(tokenizer.batch_decode(answers, skip_special_tokens=True))",
    )
    return "\n".join(lines), tuple(rest)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _arguments(
    flags: tuple[Flag, ...], values: dict[str, Any], version: Version
) -> tuple[list[str], dict[str, Any]]:
    """Arguments of one call, and the settings that are none of it."""
    made: list[str] = []
    rest = dict(values)
    for flag in flags:
        if flag.setting not in rest or not flag.is_of(version, rest[flag.setting]):
            continue
        word = flag.codec.write(rest.pop(flag.setting)) if flag.codec else None
        if word is not None:
            made.append(f"{flag.names[0]}={word if flag.codec is INTEGER else _quoted(word)}")
    return made, rest


def _call(start: str, arguments: tuple[str, ...]) -> list[str]:
    return [f"{start}(", *(f"    {argument}," for argument in arguments), ")"]


def hear(values: dict[str, Any], _positionals: tuple[str, ...]) -> Heard:
    """Nothing: Transformers is started by no command."""
    return Heard(values)


DIALECT = Dialect(
    runtime="transformers",
    program=("python3",),
    flags=(*LOADING, *GENERATING),
    version=releases.parse,
    speak=speak,
    hear=hear,
)
