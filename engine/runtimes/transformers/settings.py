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
from engine.runtimes.loading import stored_format
from engine.runtimes.transformers import kernels, logits, releases
from engine.runtimes.transformers.cache import Form
from engine.runtimes.transformers.caches import (
    CACHES,
    RENEWED,
    Cache,
    bits_of,
    check_quantised,
)
from engine.runtimes.transformers.placement import MAPS, NOT_SPREAD
from engine.runtimes.unpacking import Held, held
from engine.units import format_gib
from engine.words import grouped, tr

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.deployment.spec import Deployment
    from engine.devices.device import Machine
    from engine.runtimes.transformers.kernels import Unpacked
    from engine.runtimes.transformers.logits import Logits
    from engine.runtimes.transformers.releases import Version

ATTENTIONS = ("sdpa", "eager", "flash_attention_2", "flash_attention_3", "flex_attention")
FORMATS_LOADED = tuple(n for n in FORMATS if not n.startswith("mlx") and n != "mxfp8")
_PLAIN_CACHES = (AS_STORED, "bf16", "bfloat16", "fp16", "float16", "fp32", "float32")
_FP8_CACHES = ("fp8", "fp8_e4m3")
_ASSUMED_CONTEXT = 4096


@dataclass(frozen=True, slots=True)
class Settings:
    """The deployment with every default in."""

    deployment: Deployment
    version: Version
    context: int
    """Tokens of a sequence when it ends: prompt and answer."""
    prompt: int
    chunk: int
    """Tokens of the prompt that are read in one pass."""
    batch: int
    """Sequences at once: prompts times beams."""
    attention: str
    cache: Cache
    logits: Logits
    unpacked: Unpacked
    kv_dtype: str
    element_bytes: int
    held: Held
    """How the devices hold the weights."""
    device_map: str
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]


def settle(model: Model, deployment: Deployment, machine: Machine) -> Settings:
    """Check the deployment and fill its gaps.

    Raises:
        DeploymentError: the deployment is impossible; names the field to correct.
    """
    version = releases.parse(deployment.runtime_version)
    check_numbers(deployment)
    check_devices(deployment, machine)
    check_splits(model.spec, deployment)
    check_positions(model.spec, deployment)
    _check_choices(model, deployment)
    assumed: list[str] = []
    warned = foreign.warnings(deployment, "transformers")
    if version > releases.parse(None):
        warned.append(
            tr(
                "Transformers {runtime_version} is newer than {newest}, whose rules are used."
            ).format(runtime_version=deployment.runtime_version, newest=releases.NEWEST)
        )
    found = held(model, deployment.weight_format, machine.slots[0].device)
    assumed += [found.assumption] if found.assumption else []
    warned += [found.warning] if found.warning else []
    prompts = deployment.batch_size or deployment.concurrency
    if deployment.concurrency not in (1, prompts):
        warned.append(
            tr("batch_size {prompts} counts, not concurrency {concurrency}.").format(
                prompts=prompts, concurrency=deployment.concurrency
            )
        )
    context, prompt = _lengths(model, deployment, assumed, warned)
    attention = deployment.attn_implementation
    if attention is None:
        attention = ATTENTIONS[0]
        assumed.append(tr("attn_implementation sdpa, Transformers' default."))
    dtype = _dtype(model, deployment)
    if deployment.max_loras:
        assumed.append(
            tr(
                "Adapters of rank {max_lora_rank} on every linear layer but "
                "the head, kept in 32 bits, as PEFT does."
            ).format(max_lora_rank=deployment.max_lora_rank)
        )
    device_map = deployment.device_map or _default_map(deployment, machine, assumed)
    filled = replace(
        deployment,
        runtime_version=deployment.runtime_version or releases.NEWEST,
        max_model_len=context,
        prompt_len=prompt,
        attn_implementation=attention,
        batch_size=prompts,
        device_map=device_map,
    )
    batch = prompts * (deployment.num_beams or 1)
    chunk = min(deployment.prefill_chunk_size or prompt, prompt, context)
    prompt = min(prompt, context)
    width = element_bytes(dtype)
    cache = _cache(model, deployment, version, assumed, warned)
    made = logits.of_prompt(
        model.spec.model_type, version, batch * model.spec.vocab_size, width, chunk, prompt
    )
    warned += _wasteful(cache, made, chunk)
    return Settings(
        deployment=filled,
        version=version,
        context=context,
        prompt=prompt,
        chunk=chunk,
        batch=batch,
        attention=attention,
        cache=cache,
        logits=made,
        unpacked=kernels.unpacked(
            model.spec, _format_held(model, found), version, dtype, batch * chunk
        ),
        kv_dtype=dtype,
        element_bytes=width,
        held=found,
        device_map=device_map,
        assumptions=tuple(assumed),
        warnings=tuple(warned),
    )


def _wasteful(cache: Cache, made: Logits, chunk: int) -> list[str]:
    """What this release, or the model's own class, takes that newer ones don't."""
    found: list[str] = []
    if made.made_bytes:
        size = format_gib(made.made_bytes)
        found.append(
            tr("The logits of {chunk} tokens of the prompt are made at once: {size}.").format(
                chunk=grouped(chunk), size=size
            )
        )
    if cache.is_renewed:
        found.append(tr("Every step makes the whole cache anew, beside the old one."))
    return found


def _lengths(
    model: Model, deployment: Deployment, assumed: list[str], warned: list[str]
) -> tuple[int, int]:
    """Tokens of a sequence at its end, and of its prompt."""
    context, most = deployment.max_model_len, model.spec.max_position_embeddings
    if context is None:
        context = min(_ASSUMED_CONTEXT, most or _ASSUMED_CONTEXT)
        assumed.append(
            tr("{context} tokens a sequence: Transformers has no context setting.").format(
                context=grouped(context)
            )
        )
    elif most and context > most:
        warned.append(tr("The model's config ends at {most} tokens.").format(most=grouped(most)))
    prompt = deployment.prompt_len
    if prompt is not None and prompt > context:
        warned.append(
            tr("prompt_len {prompt} is cut to the {context} tokens of a sequence.").format(
                prompt=grouped(prompt), context=grouped(context)
            )
        )
    if prompt is None:
        prompt = context
        passes = (
            tr("in one pass") if deployment.prefill_chunk_size is None else tr("chunk by chunk")
        )
        assumed.append(
            tr("The prompt may fill the whole context, and is read {passes}.").format(passes=passes)
        )
    return context, prompt


def _cache(
    model: Model,
    deployment: Deployment,
    version: Version,
    assumed: list[str],
    warned: list[str],
) -> Cache:
    """The cache as chosen.

    Raises:
        DeploymentError: Transformers has no such cache for this model, or in this release.
    """
    name = deployment.cache_implementation
    if name is None:
        assumed.append(tr("A dynamic cache, Transformers' default."))
    form = Form(
        static="static" in (name or ""),
        packs_latents=version >= releases.LATENT_CACHE,
        cuts_windows=version >= releases.CUT_WINDOWS,
    )
    if name != "quantized":
        if deployment.kv_cache_dtype in _FP8_CACHES:
            message = tr("Transformers keeps FP8 keys and values in a quantized cache only.")
            raise DeploymentError(message, field="kv_cache_dtype")
        if deployment.kv_bits is not None:
            warned.append(tr("kv_bits counts for a quantized cache only."))
        offloaded = "offloaded" in (name or "")
        in_tuples = version < releases.CACHE_OBJECTS or model.spec.model_type in RENEWED
        renewed = in_tuples and not form.static and not offloaded
        return Cache(form, is_offloaded=offloaded, is_renewed=renewed)
    check_quantised(model.spec)
    if deployment.kv_cache_dtype in _FP8_CACHES:
        if version < releases.FP8_CACHE:
            message = tr("Transformers quantises the cache to FP8 from 5.21 on.")
            raise DeploymentError(message, field="kv_cache_dtype")
        return Cache(form, 8, is_fp8=True)
    bits, library = bits_of(deployment.kv_bits)
    assumed.append(
        tr("The cache is packed to {bits} bits by {library}, 64 values to a scale.").format(
            bits=bits, library=library
        )
    )
    return Cache(form, bits)


def _default_map(deployment: Deployment, machine: Machine, assumed: list[str]) -> str:
    """One GPU takes the whole model; over several the layers are dealt out."""
    if deployment.ranks == 1 and len(machine.slots) == 1:
        assumed.append(
            tr(
                "The whole model on {name}; device_map auto would leave in RAM what doesn't fit."
            ).format(name=machine.slots[0].device.name)
        )
        return NOT_SPREAD
    if deployment.tensor_parallel_size == 1:
        assumed.append(tr("device_map auto deals the layers over the devices."))
    return MAPS[0]


def _check_choices(model: Model, deployment: Deployment) -> None:
    name = deployment.weight_format
    if model.is_gguf and name == AS_STORED:
        message = tr(
            "Transformers unpacks GGUF files to 32 bits; take llama.cpp, or another format."
        )
        raise DeploymentError(message, field="runtime")
    _choice("weight_format", name, (AS_STORED, *FORMATS_LOADED))
    _choice("attn_implementation", deployment.attn_implementation, ATTENTIONS)
    _choice("cache_implementation", deployment.cache_implementation, CACHES)
    _choice("kv_cache_dtype", deployment.kv_cache_dtype, (*_PLAIN_CACHES, *_FP8_CACHES))
    _choice("device_map", deployment.device_map, MAPS)
    # modeling_utils.py: "`tp_plan` and `device_map` are mutually exclusive".
    if deployment.tensor_parallel_size > 1 and deployment.device_map not in (None, NOT_SPREAD):
        message = tr(
            "device_map and tensor_parallel_size both share the model out; "
            "Transformers takes one: leave out device_map."
        )
        raise DeploymentError(message, field="device_map")


def _choice(field: str, value: str | None, choices: tuple[str, ...]) -> None:
    if value is not None and value not in choices:
        # Transformers may well take it: it has flash_attention_4, for example.
        message = tr(
            "{field} {value!r:.40} can't be planned for Transformers yet; {names} can."
        ).format(field=field, value=value, names=", ".join(choices))
        raise DeploymentError(message, field=field)


def _format_held(model: Model, found: Held) -> str:
    name = found.weight_format
    return stored_format(model) if name == AS_STORED else name


def _dtype(model: Model, deployment: Deployment) -> str:
    """Dtype of activations and cache: the dtype the weights are loaded in."""
    chosen = FORMATS.get(deployment.weight_format)
    return (chosen.dtype if chosen else None) or canonical(model.spec.dtype) or "bfloat16"
