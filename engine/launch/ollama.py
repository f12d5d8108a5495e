"""How Ollama is told of a plan: a Modelfile, and variables of its server's environment.

Source:
    Ollama ``docs/modelfile.mdx`` and ``envconfig/config.go``. What Ollama has no word for reaches
    llama-server, which it starts, by llama-server's own variables.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from engine.launch import llama_cpp
from engine.launch.dialect import Dialect, Heard, Spoken, stated
from engine.launch.flags import INTEGER, MEBIBYTES, TEXT, Flag, choice
from engine.runtimes import foreign
from engine.runtimes.checks import RELEASE
from engine.runtimes.loading import loaded
from engine.words import tr

if TYPE_CHECKING:
    from engine.launch.dialect import Asked
    from engine.launch.flags import Version

_NEWEST = (0, 33)
_SWITCH = choice({"on": "1", "off": "0", True: "1", False: "0"}, {"true": "on", "false": "off"})
_YES = choice({True: "1", False: "0"}, {"true": True, "false": False})

PARAMETERS = (
    Flag("num_ctx", ("num_ctx",)),
    Flag("n_batch", ("num_batch",)),
    Flag("n_gpu_layers", ("num_gpu",)),
)
"""Lines of a Modelfile: ``PARAMETER num_ctx 8192``."""
OF_THE_ANSWER = frozenset({
    "temperature", "top_p", "top_k", "min_p", "seed", "stop", "num_predict", "repeat_penalty",
    "repeat_last_n", "presence_penalty", "frequency_penalty", "num_thread",
})  # fmt: skip
"""Parameters that change no memory."""
ENVIRONMENT = (
    Flag("num_ctx", ("OLLAMA_CONTEXT_LENGTH",)),
    Flag("n_parallel", ("OLLAMA_NUM_PARALLEL",)),
    Flag("kv_cache_dtype", ("OLLAMA_KV_CACHE_TYPE",), TEXT),
    Flag("flash_attn", ("OLLAMA_FLASH_ATTENTION",), _SWITCH),
    Flag("gpu_overhead_bytes", ("OLLAMA_GPU_OVERHEAD",), INTEGER),
    Flag("sched_spread", ("OLLAMA_SCHED_SPREAD",), _YES),
    Flag("n_ubatch", ("LLAMA_ARG_UBATCH",)),
    Flag("n_cpu_moe", ("LLAMA_ARG_N_CPU_MOE",)),
    Flag("cache_ram_bytes", ("LLAMA_ARG_CACHE_RAM",), MEBIBYTES),
)
_AUTO = -1


def version(text: str | None) -> Version:
    """The release; the newest known where none is stated."""
    found = RELEASE.fullmatch(text or "")
    return tuple(int(part) for part in found.groups() if part) if found else _NEWEST


def speak(asked: Asked) -> Spoken:
    """The plan in Ollama's settings."""
    plan = foreign.without(asked.plan, "ollama")
    spoken = Spoken(stated(plan))
    spoken.model = _source(asked, spoken)
    slots = plan.n_parallel or (plan.concurrency if plan.concurrency > 1 else None)
    spoken.drop("concurrency", "max_model_len", "n_ctx", "backend")
    if slots is not None:
        spoken.values["n_parallel"] = slots
    length = plan.max_model_len
    if length is None and plan.n_ctx:
        length = plan.n_ctx // (slots or 1)
    if length is not None:
        spoken.values["num_ctx"] = length
    if plan.cache_type_k:
        spoken.values["kv_cache_dtype"] = plan.cache_type_k
        spoken.drop("cache_type_k", "cache_type_v")
    if plan.flash_attn == "auto":
        spoken.drop("flash_attn")
    if plan.n_gpu_layers is not None and plan.n_gpu_layers < 0:
        spoken.drop("n_gpu_layers")
    return spoken


def _source(asked: Asked, spoken: Spoken) -> str:
    model, name = asked.model, spoken.values.pop("weight_format", "auto")
    if name == "auto" and asked.path and model.is_gguf:
        # A relative path without a dot would be the name of a model.
        return asked.path if PurePath(asked.path).is_absolute() else f"./{asked.path}"
    if name == "auto" and ":" in model.id:
        return model.id
    if name == "auto" and model.is_gguf and model.stored is not None and model.revision:
        return f"hf.co/{model.id}:{model.stored.format_label}"
    if name == "auto" and model.is_gguf:
        return f"./{model.id}"
    mix = loaded(model, "ollama").name if name == "auto" else name
    file = llama_cpp.named(model.id, mix)
    spoken.remarks.append(
        tr(
            "{file} stands for your {mix} file of {model}: name it, or a model of Ollama’s library."
        ).format(file=file, mix=mix, model=model.id)
    )
    return f"./{file}"


def hear(values: dict[str, Any], positionals: tuple[str, ...]) -> Heard:
    """A command's settings as a plan."""
    length = values.pop("num_ctx", None)
    if length is not None:
        values["max_model_len"] = length
    slots = values.get("n_parallel")
    if slots:
        values["concurrency"] = slots
    if values.get("n_gpu_layers") == _AUTO:
        values.pop("n_gpu_layers")
    return Heard(values, positionals[0] if positionals else "")


DIALECT = Dialect(
    runtime="ollama",
    program=("ollama", "serve"),
    flags=(),
    environment=ENVIRONMENT,
    version=version,
    speak=speak,
    hear=hear,
    harmless={"--verbose": 0, "--keepalive": 1, "--format": 1, "--nowordwrap": 0},
)
