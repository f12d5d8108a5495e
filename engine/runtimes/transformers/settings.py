"""A deployment with Transformers' defaults filled in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.budget.weights import AS_STORED
from engine.errors import DeploymentError
from engine.formats.dtypes import canonical, element_bytes
from engine.formats.weights import FORMATS
from engine.runtimes import foreign
from engine.runtimes.checks import check_devices, check_numbers, check_positions, check_splits
from engine.runtimes.unpacking import Held, held

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.deployment.spec import Deployment
    from engine.devices.device import Machine

ATTENTIONS = ("sdpa", "eager", "flash_attention_2", "flash_attention_3", "flex_attention")
CACHES = ("dynamic", "static")
FORMATS_LOADED = tuple(n for n in FORMATS if not n.startswith("mlx") and n != "mxfp8")
_ASSUMED_CONTEXT = 4096


@dataclass(frozen=True, slots=True)
class Settings:
    """The deployment with every default in."""

    deployment: Deployment
    context: int
    """Tokens of a sequence when it ends: prompt and answer."""
    prompt: int
    batch: int
    attention: str
    static_cache: bool
    kv_dtype: str
    element_bytes: int
    held: Held
    """How the devices hold the weights."""
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]


def settle(model: Model, deployment: Deployment, machine: Machine) -> Settings:
    """Check the deployment and fill its gaps.

    Raises:
        DeploymentError: the deployment is impossible; names the field to correct.
    """
    check_numbers(deployment)
    check_devices(deployment, machine)
    check_splits(model.spec, deployment)
    check_positions(model.spec, deployment)
    _check_choices(model, deployment)
    assumed: list[str] = []
    warned = foreign.warnings(deployment, "transformers")
    found = held(model, deployment.weight_format, machine.slots[0].device)
    assumed += [found.assumption] if found.assumption else []
    warned += [found.warning] if found.warning else []
    batch = deployment.batch_size or deployment.concurrency
    if deployment.concurrency not in (1, batch):
        warned.append(f"batch_size {batch} counts, not concurrency {deployment.concurrency}.")
    context = deployment.max_model_len
    most = model.spec.max_position_embeddings
    if context is None:
        context = min(_ASSUMED_CONTEXT, most or _ASSUMED_CONTEXT)
        assumed.append(f"{context:,} tokens a sequence: Transformers has no context setting.")
    elif most and context > most:
        warned.append(f"The model's config ends at {most:,} tokens.")
    prompt = deployment.prompt_len
    if prompt is None:
        prompt = context
        assumed.append("The prompt may fill the whole context, and is read in one pass.")
    attention = deployment.attn_implementation
    if attention is None:
        attention = ATTENTIONS[0]
        assumed.append("attn_implementation sdpa, Transformers' default.")
    if deployment.cache_implementation is None:
        assumed.append("A dynamic cache, Transformers' default.")
    dtype = _dtype(model, deployment)
    filled = replace(
        deployment,
        max_model_len=context,
        prompt_len=prompt,
        attn_implementation=attention,
        batch_size=batch,
    )
    return Settings(
        deployment=filled,
        context=context,
        prompt=min(prompt, context),
        batch=batch,
        attention=attention,
        static_cache=deployment.cache_implementation == "static",
        kv_dtype=dtype,
        element_bytes=element_bytes(dtype),
        held=found,
        assumptions=tuple(assumed),
        warnings=tuple(warned),
    )


def _check_choices(model: Model, deployment: Deployment) -> None:
    name = deployment.weight_format
    if model.is_gguf and name == AS_STORED:
        message = "Transformers unpacks GGUF files to 32 bits; take llama.cpp, or another format."
        raise DeploymentError(message, field="runtime")
    _choice("weight_format", name, (AS_STORED, *FORMATS_LOADED))
    _choice("attn_implementation", deployment.attn_implementation, ATTENTIONS)
    _choice("cache_implementation", deployment.cache_implementation, CACHES)
    plain = (AS_STORED, "bf16", "bfloat16", "fp16", "float16", "fp32", "float32")
    _choice("kv_cache_dtype", deployment.kv_cache_dtype, plain)


def _choice(field: str, value: str | None, choices: tuple[str, ...]) -> None:
    if value is not None and value not in choices:
        # Transformers may well take it: it has offloaded and quantised caches, for example.
        message = (
            f"{field} {value} can't be planned for Transformers yet; {', '.join(choices)} can."
        )
        raise DeploymentError(message, field=field)


def _dtype(model: Model, deployment: Deployment) -> str:
    """Dtype of activations and cache: the dtype the weights are loaded in."""
    chosen = FORMATS.get(deployment.weight_format)
    return (chosen.dtype if chosen else None) or canonical(model.spec.dtype) or "bfloat16"
