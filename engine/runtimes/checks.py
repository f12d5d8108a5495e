"""Deployments that no runtime can start, told in one sentence with the values that work."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from engine.architecture.spec import AttentionKind, ModuleClass
from engine.budget.sequence_state import layer_kinds
from engine.errors import DeploymentError
from engine.words import figures, grouped, tr

if TYPE_CHECKING:
    from engine.architecture.spec import ArchitectureSpec
    from engine.deployment.spec import Deployment
    from engine.devices.device import Machine

RELEASE = re.compile(
    r"v?([0-9]{1,6})\.([0-9]{1,6})(?:\.([0-9]{1,6}))?(?:[.\-+a-z][\w.\-+]*)?",
    re.ASCII | re.IGNORECASE,
)
"""A release as a wheel or an image states it: ``0.8.5.post1``, ``v0.10.2rc1``, ``0.11.0+cu128``."""

_POSITIVE = (
    "max_model_len",
    "concurrency",
    "live_tokens",
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "data_parallel_size",
    "decode_context_parallel_size",
    "max_num_seqs",
    "max_num_batched_tokens",
    "kv_pool_bytes",
    "kv_cache_memory_bytes",
    "num_gpu_blocks_override",
    "block_size",
    "batch_size",
    "prompt_len",
    "num_beams",
    "prefill_chunk_size",
    "prefill_step_size",
    "max_kv_size",
    "max_running_requests",
    "max_total_tokens",
    "cuda_graph_max_bs",
    "page_size",
    "max_mamba_cache_size",
)
_NOT_NEGATIVE = ("speculative_tokens", "max_loras", "max_lora_rank", "quantized_kv_start")
_MOST_TOKENS = 2**40
_SHARES = {
    "gpu_memory_utilization": 1,
    "mem_fraction_static": 1,
    "swa_full_tokens_ratio": 1,
    "mamba_full_memory_ratio": 1000,
}
"""Shares and ratios, and the most they may be."""


@lru_cache(maxsize=64)
def check_numbers(deployment: Deployment) -> None:
    """Refuse counts that are zero, negative or absurd.

    Raises:
        DeploymentError: naming the field.
    """
    for names, least in ((_POSITIVE, 1), (_NOT_NEGATIVE, 0)):
        for name in names:
            value = getattr(deployment, name)
            if value is not None and not least <= value <= _MOST_TOKENS:
                _refuse_number(name, value, least)
    for name, most in _SHARES.items():
        share = getattr(deployment, name)
        if share is not None and not 0 < share <= most:
            message = tr("{name} is {share}; it has to lie above 0 and at most at {most}.").format(
                name=name, share=figures(format(share, "g")), most=most
            )
            raise DeploymentError(message, field=name)


def _refuse_number(name: str, value: int, least: int) -> None:
    message = tr("{name} is {value}; it has to be {least} or more.").format(
        name=name, value=grouped(value), least=least
    )
    if value > _MOST_TOKENS:
        message = tr("{name} is {value}, more than any machine holds.").format(
            name=name, value=grouped(value)
        )
    raise DeploymentError(message, field=name)


def check_devices(deployment: Deployment, machine: Machine) -> None:
    """Refuse a plan for more devices than there are.

    Raises:
        DeploymentError: naming the parallel size to lower.
    """
    wanted, there = deployment.ranks * deployment.data_parallel_size, len(machine.slots)
    if wanted <= there:
        return
    sizes = {
        "tensor_parallel_size": deployment.tensor_parallel_size,
        "pipeline_parallel_size": deployment.pipeline_parallel_size,
        "data_parallel_size": deployment.data_parallel_size,
    }
    field = max(sizes, key=sizes.__getitem__)
    factors = [str(n) for n in sizes.values() if n > 1]
    product = f"{' × '.join(factors)} = " if len(factors) > 1 else ""
    devices = tr("1 device") if there == 1 else tr("{there} devices").format(there=there)
    message = tr("The plan takes {product}{wanted} devices; {name} has {devices}.").format(
        product=product, wanted=wanted, name=machine.name, devices=devices
    )
    raise DeploymentError(message, field=field)


def check_splits(spec: ArchitectureSpec, deployment: Deployment) -> None:
    """Refuse parallel sizes that don't divide the model.

    Raises:
        DeploymentError: naming the field and the sizes that work.
    """
    tp, pp = deployment.tensor_parallel_size, deployment.pipeline_parallel_size
    spread = deployment.enable_expert_parallel
    if tp > 1 and not splits_evenly(spec, tp, expert_parallel=spread):
        counts = {k.attention.num_attention_heads for k, _ in layer_kinds(spec) if k.attention}
        heads = ", ".join(str(n) for n in sorted(counts))
        parts = (
            tr("the {heads} attention heads and the layer widths").format(heads=heads)
            if heads
            else tr("the layer widths")
        )
        works = ", ".join(str(n) for n in working_sizes(spec))
        message = tr(
            "tensor_parallel_size {tp} doesn't divide {parts} of this model; {works} do."
        ).format(tp=tp, parts=parts, works=works)
        raise DeploymentError(message, field="tensor_parallel_size")
    if spec.layers and pp > len(spec.layers):
        message = tr(
            "pipeline_parallel_size {pp} is more than the model's {layers} "
            "layers; 1 to {layers} work."
        ).format(pp=pp, layers=len(spec.layers))
        raise DeploymentError(message, field="pipeline_parallel_size")


def check_positions(spec: ArchitectureSpec, deployment: Deployment) -> None:
    """Refuse more tokens than a model has learned positions: there is no further row to read.

    Raises:
        DeploymentError: naming ``max_model_len``.
    """
    asked, most = deployment.max_model_len, spec.max_position_embeddings
    if asked is None or most is None or asked <= most or not _learns_positions(spec):
        return
    message = tr(
        "max_model_len {asked} is more than the {most} positions this "
        "model has learned; they can't be stretched."
    ).format(asked=grouped(asked), most=grouped(most))
    raise DeploymentError(message, field="max_model_len")


def too_long(spec: ArchitectureSpec, deployment: Deployment, label: str, switch: str) -> str:
    """Why ``label`` does not start with a context beyond the config's; empty where it does.

    Args:
        spec: the model.
        deployment: the plan.
        label: the runtime's name.
        switch: the variable of its environment that allows it.
    """
    asked, most = deployment.max_model_len, spec.max_position_embeddings
    if asked is None or most is None or asked <= most:
        return ""
    return tr(
        "max_model_len {asked} is more than the {most} tokens at which "
        "the model's config ends: {label} refuses that unless {switch} is "
        "set or the rotary scaling is changed."
    ).format(asked=grouped(asked), most=grouped(most), label=label, switch=switch)


def _learns_positions(spec: ArchitectureSpec) -> bool:
    tables = (t.name for t in spec.outer if t.module is ModuleClass.EMBEDDING)
    return any("position" in name or ".wpe." in name for name in tables)


def splits_evenly(spec: ArchitectureSpec, tp: int, *, expert_parallel: bool = False) -> bool:
    """Whether heads, KV heads and layer widths divide by ``tp``.

    KV heads may be replicated in place of divided; whole experts are spread, not divided, under
    expert parallelism.
    """
    for layer, _ in layer_kinds(spec):
        attention = layer.attention
        if attention is not None:
            kv = attention.num_key_value_heads
            replicable = attention.kind is AttentionKind.LATENT or kv % tp == 0 or tp % kv == 0
            if attention.num_attention_heads % tp or not replicable:
                return False
        if layer.intermediate_size % tp:
            return False
        if layer.state is not None and 0 < layer.state.conv_dim < tp:
            return False
        experts = None if expert_parallel else layer.moe
        if experts is not None and experts.moe_intermediate_size % tp:
            return False
    return True


def working_sizes(spec: ArchitectureSpec, most: int = 64) -> list[int]:
    """Tensor-parallel sizes that divide the model, up to ``most``."""
    return [n for n in range(1, most + 1) if splits_evenly(spec, n)]
