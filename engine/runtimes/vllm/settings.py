"""A deployment with vLLM's defaults filled in, and what was assumed on the way."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from engine.architecture.spec import AttentionKind, Direction, Subject
from engine.budget.sequence_state import attention_kinds, layer_kinds, resolve_kv_dtype
from engine.budget.weights import AS_STORED
from engine.devices.device import DeviceKind, Vendor
from engine.errors import DeploymentError
from engine.formats.dtypes import canonical, element_bytes
from engine.formats.kv import KV_DTYPES, PACKED_LATENTS
from engine.formats.weights import FORMATS
from engine.runtimes import foreign
from engine.runtimes.checks import (
    check_devices,
    check_numbers,
    check_positions,
    check_splits,
    working_sizes,
)
from engine.runtimes.vllm import cache_rules, rules
from engine.runtimes.vllm.drafting import check_draft
from engine.runtimes.vllm.hardware import check_format
from engine.runtimes.vllm.speculation import without_blocks
from engine.words import figures, grouped, tr

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.architecture.spec import ArchitectureSpec
    from engine.deployment.spec import Deployment
    from engine.devices.device import Device, Machine
    from engine.runtimes.vllm.rules import Version

_SPELLINGS = ("bfloat16", "float16")
_USUAL_LORA_RANK = 16
_LORA_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
_NO_CONTEXT_STATED = 2048
"""What vLLM takes when no length key is in the config (``_get_and_verify_max_len``)."""
_FITTING = -1
"""The ``max_model_len`` that asks for the longest that fits."""


class Settings(NamedTuple):
    """The deployment with every default in, and what the arithmetic needs of it."""

    deployment: Deployment
    version: Version
    context: int
    tokens: int
    """``max_num_batched_tokens``."""
    rows: int
    """``max_num_seqs``."""
    utilisation: float
    kv_dtype: str
    dtype: str
    """Of activations."""
    element_bytes: int
    capability: float
    """CUDA compute capability of the devices; 0 where there is none."""
    vendor: Vendor
    """Of the devices."""
    block_tokens: int
    """Tokens of a block where the model's attention asks for no other."""
    fits_length: bool
    """Whether the length is still to be found by what fits (``max_model_len`` -1)."""
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]

    def with_length(self, tokens: int) -> Settings:
        """The same once vLLM has found that ``tokens`` fit."""
        found = tr(
            "max_model_len {tokens}: the longest request that vLLM finds room for (-1)."
        ).format(tokens=grouped(tokens))
        return self._replace(
            deployment=self.deployment.with_(max_model_len=tokens),
            context=tokens,
            assumptions=(*self.assumptions, found),
        )


def settle(model: Model, deployment: Deployment, machine: Machine) -> Settings:
    """Check the deployment and fill its gaps as vLLM would.

    Raises:
        DeploymentError: the deployment is impossible; names the field to correct.
    """
    spec = model.spec
    version = rules.parse_version(deployment.runtime_version)
    fits_length = deployment.max_model_len == _FITTING
    if fits_length:
        _check_since("max_model_len -1", "max_model_len", cache_rules.AUTO_LENGTH, version)
        deployment = deployment.with_(max_model_len=None)
    _check(model, deployment, machine)
    if deployment.kv_cache_memory_bytes is not None:
        name = "kv_cache_memory_bytes"
        _check_since(name, name, cache_rules.POOL_IN_BYTES, version)
    if deployment.language_model_only:
        name = "language_model_only"
        _check_since(name, name, rules.TEXT_ONLY, version)
    assumed: list[str] = []
    warned = foreign.warnings(deployment, "vllm") + _unused_devices(spec, deployment, machine)
    warned += without_blocks(model, deployment)
    if deployment.max_lora_rank != _USUAL_LORA_RANK and not deployment.max_loras:
        warned.append(tr("max_lora_rank counts for adapters alone: give max_loras too."))
    if deployment.runtime_version is None:
        assumed.append(
            tr("vLLM {newest}, the newest version whose rules are known.").format(
                newest=rules.NEWEST
            )
        )
    elif version > rules.parse_version(rules.NEWEST):
        warned.append(
            tr("vLLM {runtime_version} is newer than {newest}, whose rules are used.").format(
                runtime_version=deployment.runtime_version, newest=rules.NEWEST
            )
        )
    context = _context(spec, deployment, [] if fits_length else assumed)
    tokens, rows = _step(deployment, machine.slots[0].device, version, context, assumed)
    share = deployment.gpu_memory_utilization
    if share is None:
        share = rules.UTILISATION.at(version)
        if deployment.kv_pool_bytes is None and deployment.kv_cache_memory_bytes is None:
            assumed.append(
                tr("gpu_memory_utilization {share}, vLLM's default.").format(
                    share=figures(format(share, "g"))
                )
            )
    dtype = _activation_dtype(spec, deployment)
    capability = machine.slots[0].device.compute_capability
    kv_dtype = _kv_dtype(spec, deployment, dtype, version, capability, assumed)
    if deployment.concurrency > rows * deployment.data_parallel_size:
        warned.append(
            tr("max_num_seqs is {rows}: of the {concurrency} requests the rest waits.").format(
                rows=rows, concurrency=deployment.concurrency
            )
        )
    filled = _filled(
        deployment,
        runtime_version=deployment.runtime_version or rules.NEWEST,
        max_model_len=context,
        max_num_batched_tokens=tokens,
        max_num_seqs=rows,
        gpu_memory_utilization=share,
        enable_prefix_caching=_prefix_caching(spec, deployment, version, assumed),
    )
    return Settings(
        deployment=filled,
        version=version,
        context=context,
        tokens=tokens,
        rows=rows,
        utilisation=share,
        kv_dtype=kv_dtype,
        dtype=dtype,
        element_bytes=element_bytes(dtype),
        capability=capability,
        vendor=machine.slots[0].device.vendor,
        block_tokens=_block_tokens(machine.slots[0].device),
        fits_length=fits_length,
        assumptions=tuple(assumed),
        warnings=tuple(warned),
    )


# A list of models is gone through with one plan, which most of them fill alike.
@lru_cache(maxsize=64)
def _filled(deployment: Deployment, **defaults: object) -> Deployment:
    return deployment.with_(**defaults)


def _check_since(what: str, field: str, since: Version, version: Version) -> None:
    if version < since:
        first = ".".join(str(part) for part in since)
        raise DeploymentError(
            tr("vLLM takes {what} from {first} on.").format(what=what, first=first), field=field
        )


def _unused_devices(spec: ArchitectureSpec, deployment: Deployment, machine: Machine) -> list[str]:
    """One device is the default, however many there are: what is idle, and how to use it."""
    there = len(machine.slots)
    if there < 2 or deployment.ranks * deployment.data_parallel_size > 1:
        return []
    most = max((n for n in working_sizes(spec, there)), default=1)
    stages = min(there, len(spec.layers))
    way = f"--tp {most}" if most > 1 else f"--pp {stages}"
    spread = tr("; {way} spreads the model").format(way=way) if max(most, stages) > 1 else ""
    return [tr("1 of {there} devices is used{spread}.").format(there=there, spread=spread)]


def _check(model: Model, deployment: Deployment, machine: Machine) -> None:
    check_numbers(deployment)
    check_devices(deployment, machine)
    check_splits(model.spec, deployment)
    check_positions(model.spec, deployment)
    name = deployment.weight_format
    if model.is_gguf and name == AS_STORED:
        message = (
            "vLLM doesn't load GGUF files since 0.33; take llama.cpp, or another weight format."
        )
        raise DeploymentError(message, field="runtime")
    if name != AS_STORED and (name not in FORMATS or name.startswith("mlx")):
        choices = ", ".join(n for n in FORMATS if not n.startswith("mlx"))
        message = tr("vLLM doesn't load weights as {name}; it loads {choices}.").format(
            name=name, choices=choices
        )
        raise DeploymentError(message, field="weight_format")
    check_format(model, deployment, machine.slots[0].device)
    _check_context_parallel(model.spec, deployment)
    _check_expert_parallel(model.spec, deployment)
    check_draft(deployment)
    _check_adapters(deployment)


def _check_adapters(deployment: Deployment) -> None:
    """Source: vLLM ``config/lora.py :: MaxLoRARanks``."""
    if deployment.max_loras and deployment.max_lora_rank not in _LORA_RANKS:
        choices = ", ".join(map(str, _LORA_RANKS))
        message = tr("max_lora_rank is one of {choices} in vLLM, not {max_lora_rank}.").format(
            choices=choices, max_lora_rank=deployment.max_lora_rank
        )
        raise DeploymentError(message, field="max_lora_rank")


def _check_expert_parallel(spec: ArchitectureSpec, deployment: Deployment) -> None:
    """A model without experts has nothing to spread, and vLLM does not start.

    Source:
        vLLM ``config/model.py :: _verify_with_expert_parallelism``.
    """
    if not deployment.enable_expert_parallel:
        return
    # What is not counted, or counted by another type's rule, may be experts.
    in_doubt = spec.direction(Subject.WEIGHTS) in (Direction.LOWER, Direction.EITHER)
    has_experts = any(layer.moe is not None for layer, _ in layer_kinds(spec))
    if not (has_experts or in_doubt):
        message = tr(
            "enable_expert_parallel takes a mixture of experts; this model has no experts."
        )
        raise DeploymentError(message, field="enable_expert_parallel")


def _check_context_parallel(spec: ArchitectureSpec, deployment: Deployment) -> None:
    """A context is shared out only among ranks that would else hold copies of a KV head.

    Source:
        vLLM ``config/model.py :: verify_with_parallel_config`` and ``config/parallel.py``.
    """
    dcp, tp = deployment.decode_context_parallel_size, deployment.tensor_parallel_size
    kinds = [a for a in attention_kinds(spec) if a.kind is not AttentionKind.LATENT]
    message = ""
    if tp % dcp:
        message = tr(
            "decode_context_parallel_size {dcp} has to divide tensor_parallel_size {tp}."
        ).format(dcp=dcp, tp=tp)
    elif dcp > 1 and kinds:
        heads = max(a.num_key_value_heads for a in kinds)
        queries = max(a.num_attention_heads for a in kinds) // heads
        if tp <= heads or dcp > tp // heads:
            message = tr(
                "decode_context_parallel_size {dcp} takes "
                "tensor_parallel_size {heads} or more with this model's "
                "{heads_2} KV heads: vLLM refuses {tp}."
            ).format(dcp=dcp, heads=heads * dcp, heads_2=heads, tp=tp)
        elif queries % dcp:
            message = tr(
                "decode_context_parallel_size {dcp} has to divide the "
                "{queries} attention heads that share each KV head of this "
                "model."
            ).format(dcp=dcp, queries=queries)
    if message:
        raise DeploymentError(message, field="decode_context_parallel_size")


def _context(spec: ArchitectureSpec, deployment: Deployment, assumed: list[str]) -> int:
    most = spec.max_position_embeddings
    if deployment.max_model_len is None:
        context = most or _NO_CONTEXT_STATED
        origin = tr("the length in the model's config") if most else tr("the config states none")
        assumed.append(
            tr("max_model_len {context}, vLLM's default: {origin}.").format(
                context=grouped(context), origin=origin
            )
        )
        return context
    return deployment.max_model_len


def _step(
    deployment: Deployment, device: Device, version: Version, context: int, assumed: list[str]
) -> tuple[int, int]:
    default = rules.default_step(device, version)
    rows = deployment.max_num_seqs
    where = (
        tr("on the CPU")
        if device.kind is DeviceKind.HOST
        else tr("on {name}").format(name=device.name)
    )
    if rows is None:
        rows = min(default.max_num_seqs, deployment.max_num_batched_tokens or default.max_num_seqs)
        assumed.append(
            tr("max_num_seqs {rows}, vLLM's default for a server {where}.").format(
                rows=grouped(rows), where=where
            )
        )
    tokens = deployment.max_num_batched_tokens
    if tokens is None:
        tokens = default.max_num_batched_tokens
        if version < (0, 8) and context <= 32768:
            tokens = max(tokens, context)
        tokens = max(min(tokens, rows * context), 1)
        assumed.append(
            tr("max_num_batched_tokens {tokens}, vLLM's default for a server {where}.").format(
                tokens=grouped(tokens), where=where
            )
        )
    return tokens, rows


def _block_tokens(device: Device) -> int:
    """As the kernels of a platform take them: 64 on Intel's cards in a log of Gemma 4."""
    return 64 if device.vendor is Vendor.INTEL else 16


def _prefix_caching(
    spec: ArchitectureSpec, deployment: Deployment, version: Version, assumed: list[str]
) -> bool | None:
    """Whether prefixes are cached, which costs memory where layers keep states."""
    asked = deployment.enable_prefix_caching
    has_states = any(layer.state is not None for layer, _ in layer_kinds(spec))
    if asked is not None or not has_states or not attention_kinds(spec):
        return asked
    on = cache_rules.STATES_CACHED.at(version)
    if on:
        assumed.append(tr("enable_prefix_caching, vLLM's default: more states a request."))
    return on


def _activation_dtype(spec: ArchitectureSpec, deployment: Deployment) -> str:
    name = deployment.weight_format
    chosen = FORMATS.get(name) if name != AS_STORED else None
    if chosen is not None and chosen.dtype:
        return chosen.dtype
    stated = canonical(spec.dtype) or "bfloat16"
    return "bfloat16" if element_bytes(stated) != 2 else stated


def _kv_dtype(
    spec: ArchitectureSpec,
    deployment: Deployment,
    dtype: str,
    version: Version,
    capability: float,
    assumed: list[str],
) -> str:
    asked = deployment.kv_cache_dtype
    if asked not in KV_DTYPES and asked not in _SPELLINGS:
        message = tr("{asked!r} is no KV cache dtype of vLLM; it takes {names}.").format(
            asked=asked, names=", ".join(KV_DTYPES)
        )
        raise DeploymentError(message, field="kv_cache_dtype")
    if asked.startswith("nvfp4") and any(
        a.keeps_values and a.head_dim != a.v_head_dim and a.kind is not AttentionKind.LATENT
        for a in attention_kinds(spec)
    ):
        message = tr(
            "vLLM keeps {asked} only where keys are as wide as values; this model's are not."
        ).format(asked=asked)
        raise DeploymentError(message, field="kv_cache_dtype")
    found = _packed(spec, resolve_kv_dtype(spec, asked, dtype), asked, version, capability)
    if asked == AS_STORED and attention_kinds(spec):
        why = (
            tr("as the checkpoint asks")
            if found == spec.kv_cache_dtype
            else tr("the model's own dtype")
        )
        if found in PACKED_LATENTS:
            why = tr("the layout of vLLM's kernels for this model")
        assumed.append(tr("KV cache in {found}: {why}.").format(found=found, why=why))
    return found


def _packed(
    spec: ArchitectureSpec, found: str, asked: str, version: Version, capability: float
) -> str:
    """FP8 as vLLM's kernels for a model lay it out on a card; some of them have nothing else."""
    kinds = attention_kinds(spec)
    plain = found.startswith("fp8") and not found.endswith("head") and found not in PACKED_LATENTS
    by_default = asked == AS_STORED and not plain
    if any(a.compression for a in kinds):
        return "fp8_ds_mla" if plain or by_default else found
    if not any(a.kind is AttentionKind.LATENT and a.index_head_dim for a in kinds):
        return found
    generation = int(capability)
    if plain:
        keeps = generation == _BLACKWELL and cache_rules.PLAIN_ON_BLACKWELL.at(version)
        return found if keeps else "fp8_ds_mla"
    if by_default and (cache_rules.PACKED_BY_DEFAULT.at(version) or generation == _WORKSTATION):
        return "fp8_ds_mla"
    return found


_BLACKWELL, _WORKSTATION = 10, 12
"""Compute capabilities whose kernels for sparse latents differ (``platforms/cuda.py``): the
second's have the packed layout only."""
