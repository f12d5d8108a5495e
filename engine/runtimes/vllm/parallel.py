"""Which rank holds what: layers by pipeline stage, experts over the ranks of all replicas.

Source:
    vLLM 0.33 ``distributed/utils.py :: get_pp_indices``,
    ``model_executor/layers/fused_moe/config.py :: FusedMoEParallelConfig.make`` and
    ``config/parallel.py :: use_sequence_parallel_moe``; encoders by ``models/gemma3n_mm.py``,
    ``gemma4_mm.py`` and ``qwen2_audio.py``.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from engine.architecture.spec import Direction, Doubt, ModuleClass, Subject
from engine.budget.sequence_state import CACHED, layer_kinds
from engine.errors import DeploymentError
from engine.runtimes.vllm.rules import Since
from engine.words import tr

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.architecture.spec import ArchitectureSpec
    from engine.deployment.spec import Deployment
    from engine.runtimes.vllm.rules import Version

_SPLITS_SEQUENCES = Since[bool](((0,), False), ((0, 11), True))
"""Whether experts take a part of the sequences of each rank where TP, DP and EP meet."""

_WHOLE = (
    "deepseek", "kimi", "glm_moe_dsa", "glm4_moe_lite", "qwen3_next", "qwen3_5_moe", "llama4",
    "nemotron_h", "granitemoe",
)  # fmt: skip
"""How the types begin whose shared experts are not cut then (``is_sequence_parallel`` in their
modules)."""

_ENCODERS_WHOLE = ("gemma3n", "gemma4", "qwen2_audio")
"""Roots whose encoders are transformers' own classes, which TP does not cut."""

_LEFTOVER_LAST = Since[bool](((0,), True), ((0, 8), False))
"""Whether layers that do not divide by the stages all go to the last (``get_pp_indices``)."""


def layers_per_stage(
    spec: ArchitectureSpec, deployment: Deployment, version: Version
) -> tuple[int, ...] | None:
    """How many layers each stage holds where that is told, or not dealt out evenly.

    Raises:
        DeploymentError: naming ``pp_layer_partition`` where it does not come out.
    """
    asked, stages = deployment.pp_layer_partition, deployment.pipeline_parallel_size
    layers = len(spec.layers)
    if asked is None:
        base, rest = divmod(layers, stages)
        uneven = rest and _LEFTOVER_LAST.at(version)
        return (*[base] * (stages - 1), base + rest) if uneven else None
    message = ""
    if len(asked) != stages:
        stated = ", ".join(map(str, asked))
        message = tr(
            "pp_layer_partition {stated}: pipeline_parallel_size {stages} takes as many."
        ).format(stated=stated, stages=stages)
    elif sum(asked) != layers or min(asked) < 0:
        added = tr("{names} = {sum}").format(names=" + ".join(map(str, asked)), sum=sum(asked))
        message = tr(
            "pp_layer_partition {added} has to come to the model's {layers} layers."
        ).format(added=added, layers=layers)
    if message:
        raise DeploymentError(message, field="pp_layer_partition")
    return asked


@lru_cache(maxsize=CACHED)
def has_experts(spec: ArchitectureSpec) -> bool:
    """Whether some layer chooses among experts."""
    return any(layer.moe for layer, _ in layer_kinds(spec))


def kept_whole(
    spec: ArchitectureSpec, deployment: Deployment, version: Version
) -> frozenset[ModuleClass]:
    """Classes of tensors that every rank holds whole: shared experts, or encoders."""
    whole: set[ModuleClass] = set()
    if _splits_sequences(deployment) and _SPLITS_SEQUENCES.at(version):
        whole |= {ModuleClass.SHARED_EXPERTS} if spec.model_type.startswith(_WHOLE) else set()
    if spec.root_type in _ENCODERS_WHOLE:
        whole |= {ModuleClass.VISION, ModuleClass.AUDIO}
    return frozenset(whole)


def in_doubt(model: Model, deployment: Deployment) -> Model:
    """``model``, with its weights as a bound where it is not known how they are shared out."""
    if not _splits_sequences(deployment) or model.spec.model_type.startswith(_WHOLE):
        return model
    return _bounded(model) if _shares(model.spec) else model


def _splits_sequences(deployment: Deployment) -> bool:
    sizes = (deployment.tensor_parallel_size, deployment.data_parallel_size)
    return deployment.enable_expert_parallel and min(sizes) > 1


def _shares(spec: ArchitectureSpec) -> bool:
    layers = (layer for layer, _ in layer_kinds(spec))
    return any(t.module is ModuleClass.SHARED_EXPERTS for layer in layers for t in layer.tensors)


# The same model each time: what is worked out from it is cached by its identity.
@lru_cache(maxsize=CACHED)
def _bounded(model: Model) -> Model:
    reason = tr(
        "with tensor, data and expert parallelism together, vLLM may keep this model's shared "
    )
    reason += tr("experts whole on every rank: counted as cut")
    doubt = Doubt(Subject.WEIGHTS, reason, Direction.LOWER)
    return replace(model, spec=replace(model.spec, doubts=(*model.spec.doubts, doubt)))
