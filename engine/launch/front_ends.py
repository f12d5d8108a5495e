"""Programs that no command starts: what to set in them, as a list."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from engine.launch import llama_cpp, vllm
from engine.launch.dialect import Asked
from engine.runtimes import registry
from engine.units import format_bytes
from engine.words import grouped, tr, tr_later

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.deployment.spec import Deployment
    from engine.devices.device import Machine
    from engine.launch.dialect import Dialect
    from engine.runtimes.beneath import Starter

_WORDS = {
    "cells": tr_later("Context, all slots together"),
    "n_parallel": tr_later("Requests at once"),
    "kv_unified": tr_later("One cache for all slots"),
    "n_gpu_layers": tr_later("Layers on the GPU"),
    "n_cpu_moe": tr_later("Layers whose experts stay in RAM"),
    "cache_type_k": tr_later("Type of keys in the cache"),
    "cache_type_v": tr_later("Type of values in the cache"),
    "flash_attn": tr_later("Flash attention"),
    "n_batch": tr_later("Batch, logical"),
    "n_ubatch": tr_later("Batch, physical"),
    "mmap": tr_later("Map the file into memory"),
    "cache_ram_bytes": tr_later("RAM for earlier prompts"),
    "model": tr_later("Model"),
    "max_model_len": tr_later("Context of a request"),
    "gpu_memory_utilization": tr_later("Share of the GPU"),
    "max_num_batched_tokens": tr_later("Tokens of a prefill step"),
    "tensor_parallel_size": tr_later("GPUs that share a layer"),
    "split_mode": tr_later("How several GPUs share"),
    "tensor_split": tr_later("Share of each GPU"),
    "offload_kqv": tr_later("Cache on the GPU"),
}


def settings(
    model: Model, plan: Deployment, machine: Machine, path: str
) -> tuple[str, list[tuple[str, str]]]:
    """The model as the program finds it, and names and values to set, the model's among them.

    Args:
        model: the model.
        plan: the plan for a program that starts another runtime.
        machine: where it runs.
        path: where the model lies; empty for one of the Hub.

    Raises:
        DeploymentError: the runtime beneath would refuse the plan.
    """
    starter = cast("Starter", registry.get(plan.runtime))
    found = starter.beneath(model, plan, machine)
    dialect = _beneath(plan.runtime)
    release = dialect.version(found.deployment.runtime_version)
    spoken = dialect.speak(Asked(model, found.deployment, found.machine, release, path))
    values = {"model": spoken.model} | spoken.values
    known = {name: _shown(name, value) for name, value in values.items() if name in _WORDS}
    return known["model"], [(_word(name), value) for name, value in known.items()]


def _shown(name: str, value: object) -> str:
    if isinstance(value, bool):
        return tr("on") if value else tr("off")
    if isinstance(value, int):
        return format_bytes(value) if name.endswith("_bytes") else grouped(value)
    return str(value)


def _beneath(runtime: str) -> Dialect:
    return llama_cpp.DIALECT if registry.family(runtime) == "llama.cpp" else vllm.DIALECT


def _word(setting: str) -> str:
    return tr(_WORDS[setting])
