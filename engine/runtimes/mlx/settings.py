"""A deployment with mlx-lm's defaults filled in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.architecture.spec import AttentionKind
from engine.budget.weights import AS_STORED
from engine.errors import DeploymentError
from engine.formats.weights import FORMATS
from engine.runtimes import foreign
from engine.runtimes.checks import check_devices, check_numbers, check_positions, check_splits
from engine.runtimes.loading import stored_format
from engine.runtimes.mlx import rules
from engine.runtimes.mlx.cache import Packing
from engine.runtimes.mlx.models import makes_own_caches, window_of
from engine.words import grouped, tr

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.architecture.spec import ArchitectureSpec
    from engine.deployment.spec import Deployment
    from engine.devices.device import Machine
    from engine.runtimes.mlx.rules import Rules

OFFERED = (
    "bf16", "fp16", "mlx-8bit", "mlx-6bit", "mlx-5bit", "mlx-4bit", "mlx-3bit", "mlx-mxfp4",
    "mlx-nvfp4", "mlx-mxfp8",
)  # fmt: skip
_READ_AS_STORED = ("bf16", "fp16", "fp32", "mlx-", "mxfp4", "mxfp8", "nvfp4")
_REPACKED = ("awq-", "gptq-", "w4a16")
_UNPACKED = ("fp8",)
_ASSUMED_CONTEXT = 4096


@dataclass(frozen=True, slots=True)
class Settings:
    """The deployment with every default in."""

    deployment: Deployment
    rules: Rules
    context: int
    """Tokens of a sequence when it ends: prompt and answer."""
    prompt: int
    step: int
    """Tokens of a prompt that are read at once."""
    requests: int
    weight_format: str
    """A key of ``FORMATS``: what the matrices count as on the tape."""
    loads: str
    """The format whose bytes count; ``auto`` = as the files hold it."""
    is_read: bool
    """Whether mlx-lm is known to read this format."""
    packing: Packing
    max_kv_size: int
    """Window of every layer, where the class leaves that to the caller; 0 = none."""
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]
    refusals: tuple[str, ...]


def settle(model: Model, deployment: Deployment, machine: Machine) -> Settings:
    """Check the deployment and fill its gaps.

    Raises:
        DeploymentError: the deployment is impossible; names the field to correct.
    """
    check_numbers(deployment)
    check_devices(deployment, machine)
    check_splits(model.spec, deployment)
    check_positions(model.spec, deployment)
    found = rules.rules(rules.parse_version(deployment.runtime_version))
    assumed: list[str] = []
    warned = foreign.warnings(deployment, "mlx")
    name, loads, is_read = _format(model, deployment, assumed, warned)
    context, prompt = _lengths(model, deployment, assumed, warned)
    step = deployment.prefill_step_size
    if step is None:
        step = found.prefill_step_size
        assumed.append(
            tr("prefill_step_size {step}, as in this release of mlx-lm.").format(step=grouped(step))
        )
    packing, refused = _packing(model.spec, deployment, assumed)
    kept = _max_kv_size(model.spec, deployment, warned)
    if kept and packing.bits is not None:
        refused.append(tr("mlx-lm can't quantise the rotating cache that max_kv_size makes."))
    filled = replace(deployment, max_model_len=context, prompt_len=prompt, prefill_step_size=step)
    return Settings(
        deployment=filled,
        rules=found,
        context=context,
        prompt=prompt,
        step=step,
        requests=deployment.concurrency,
        weight_format=name,
        loads=loads,
        is_read=is_read,
        packing=packing,
        max_kv_size=kept,
        assumptions=tuple(assumed),
        warnings=tuple(warned),
        refusals=tuple(refused),
    )


def _format(
    model: Model, deployment: Deployment, assumed: list[str], warned: list[str]
) -> tuple[str, str, bool]:
    """The format of the matrices, the one whose bytes count, and whether it is known to load."""
    asked = deployment.weight_format
    if asked != AS_STORED:
        if asked not in FORMATS or not asked.startswith(("bf16", "fp16", "fp32", "mlx-")):
            message = tr("MLX doesn't take weight_format {asked}; it takes {names}.").format(
                asked=asked, names=", ".join(OFFERED)
            )
            raise DeploymentError(message, field="weight_format")
        if asked != stored_format(model):
            assumed.append(
                tr("Counted as what mlx_lm.convert writes in {label}.").format(
                    label=FORMATS[asked].label
                )
            )
        return asked, asked, True
    if model.is_gguf:
        message = "MLX doesn't load GGUF files; take llama.cpp, or another weight_format."
        raise DeploymentError(message, field="runtime")
    name = stored_format(model)
    if name.startswith(_UNPACKED):
        assumed.append(tr("FP8 weights are unpacked to BF16 on loading."))
        return "bf16", "bf16", True
    if name.startswith(_REPACKED):
        warned.append(tr("mlx-lm repacks these weights into its own groups: counted as stored."))
        return name if name in FORMATS else "mlx-4bit", AS_STORED, True
    known = name in FORMATS
    is_read = known and name.startswith(_READ_AS_STORED)
    return name if known else "bf16", AS_STORED, is_read


def _lengths(
    model: Model, deployment: Deployment, assumed: list[str], warned: list[str]
) -> tuple[int, int]:
    context, most = deployment.max_model_len, model.spec.max_position_embeddings
    if context is None:
        context = min(_ASSUMED_CONTEXT, most or _ASSUMED_CONTEXT)
        assumed.append(
            tr("{context} tokens a sequence: mlx-lm has no context setting.").format(
                context=grouped(context)
            )
        )
    elif most and context > most:
        warned.append(tr("The model's config ends at {most} tokens.").format(most=grouped(most)))
    prompt = deployment.prompt_len
    if prompt is None:
        prompt = context
        assumed.append(tr("The prompt may fill the whole context."))
    return context, min(prompt, context)


def _packing(
    spec: ArchitectureSpec, deployment: Deployment, assumed: list[str]
) -> tuple[Packing, list[str]]:
    bits = deployment.kv_bits
    plain = (AS_STORED, "bf16", "bfloat16", "fp16", "float16")
    if deployment.kv_cache_dtype not in plain:
        message = tr(
            "MLX doesn't take kv_cache_dtype {kv_cache_dtype}: kv_bits {names} quantise its cache."
        ).format(kv_cache_dtype=deployment.kv_cache_dtype, names=", ".join(map(str, rules.KV_BITS)))
        raise DeploymentError(message, field="kv_cache_dtype")
    if bits is None:
        return Packing(), []
    if bits not in rules.KV_BITS:
        message = tr("kv_bits is {bits}; mlx-lm's cache takes {names}.").format(
            bits=bits, names=", ".join(map(str, rules.KV_BITS))
        )
        raise DeploymentError(message, field="kv_bits")
    group = deployment.kv_group_size or rules.KV_GROUP_SIZE
    if group not in rules.KV_GROUPS:
        groups = ", ".join(map(str, rules.KV_GROUPS))
        message = tr("kv_group_size is {group}; MLX takes {groups}.").format(
            group=group, groups=groups
        )
        raise DeploymentError(message, field="kv_group_size")
    start = deployment.quantized_kv_start
    if start is None:
        start = rules.QUANTIZED_KV_START
        assumed.append(
            tr("The cache is quantised from token {start} on, mlx-lm's default.").format(
                start=grouped(start)
            )
        )
    return Packing(int(bits), group, start), _unpackable(spec, group)


def _unpackable(spec: ArchitectureSpec, group: int) -> list[str]:
    """Why mlx-lm stops where this model's cache is to be quantised."""
    kinds = spec.attentions
    if any(window_of(spec, a, 0) for a in kinds):
        return [tr("mlx-lm can't quantise the rotating caches of this model's windows.")]
    if any(a.kind is AttentionKind.LATENT for a in kinds):
        return [tr("mlx-lm has no attention over quantised latent vectors.")]
    if any("sinks" in t.name for layer in spec.layers[:1] for t in layer.tensors):
        return [tr("mlx-lm has no attention with sinks over a quantised cache.")]
    odd = {w for a in kinds for w in (a.head_dim, a.v_head_dim) if w % group}
    if odd:
        width = min(odd)
        return [
            tr("Heads of {width} elements are no whole number of groups of {group}.").format(
                width=width, group=group
            )
        ]
    return []


def _max_kv_size(spec: ArchitectureSpec, deployment: Deployment, warned: list[str]) -> int:
    asked = deployment.max_kv_size
    if asked is None:
        return 0
    if makes_own_caches(spec):
        warned.append(tr("max_kv_size changes nothing: this model's class makes its own caches."))
        return 0
    return max(asked, rules.KEPT_AT_START + 1)
