"""llama.cpp as a ``Runtime``: what llama-server allocates for a model on a machine."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from engine.budget.model import Budget, LlamaCppBuffers, SequenceState
from engine.devices.device import DeviceKind, Vendor
from engine.errors import DeploymentError
from engine.evidence import Basis
from engine.formats.kv import LLAMA_CPP_KV_DTYPES
from engine.formats.mixes import FOR_FEW_BITS, MIXES
from engine.runtimes import foreign
from engine.runtimes.llama_cpp import from_gguf, from_spec
from engine.runtimes.llama_cpp import plan as plans
from engine.runtimes.llama_cpp.builds import build_of, note
from engine.runtimes.llama_cpp.placement import HOST
from engine.runtimes.llama_cpp.plan import Plan, gpu_slots, plan
from engine.runtimes.llama_cpp.regions import Ranks
from engine.runtimes.llama_cpp.transients import DEFAULT_CACHE_RAM_BYTES
from engine.runtimes.loading import conversion, loaded
from engine.runtimes.taught import taught
from engine.units import format_bytes, format_gib
from engine.words import grouped, tr

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.budget.model import RankBudget
    from engine.deployment.spec import Deployment
    from engine.devices.device import Machine, Slot
    from engine.runtimes.llama_cpp.settings import Settings
    from engine.runtimes.llama_cpp.shape import Shape

_SAME = {"bf16": "BF16", "fp16": "F16", "fp32": "F32", "mxfp4": "MXFP4_MOE"}
"""Weight formats that a GGUF file can hold as they are."""
_AUTO_LAYERS = -1
_DEVICE_NAMES = {
    Vendor.NVIDIA: "CUDA",
    Vendor.AMD: "ROCm",
    Vendor.INTEL: "Vulkan",
    Vendor.APPLE: "MTL",
}


class LlamaCpp:
    """llama.cpp's server, by the rules of builds b11434 to b11549."""

    name = "llama.cpp"
    label = "llama.cpp"
    versions: tuple[str, ...] = ("b11549", "b11434")
    kv_cache_dtypes: tuple[str, ...] = ("auto", *LLAMA_CPP_KV_DTYPES)

    def weight_formats(self, model: Model) -> tuple[str, ...]:
        """``auto``, and every mix that the model can be made into."""
        has_experts = any(layer.moe for layer in model.spec.layers)
        left_out = FOR_FEW_BITS if has_experts else {*FOR_FEW_BITS, "MXFP4_MOE"}
        return ("auto", *(m for m in MIXES if m not in left_out))

    @taught
    def plan(self, model: Model, deployment: Deployment, machine: Machine) -> Budget:
        """The budget of every GPU and of the host.

        Raises:
            DeploymentError: llama.cpp would refuse; names the setting.
            ConfigError: a GGUF file's metadata cannot be a model's.
        """
        if deployment.n_gpu_layers == _AUTO_LAYERS:
            deployment = deployment.with_(n_gpu_layers=None)
        mix = _mix(model, deployment.weight_format)
        shape = _shape(model, mix)
        if not build_of(deployment.runtime_version).absorbs_latent:
            shape = shape.whole_heads
        if not shape.blocks or not shape.weights.tensors:
            raise DeploymentError(
                f"{model.id} has no layers that llama.cpp could load.", field="runtime"
            )
        planned = plan(shape, deployment, machine, model.spec)
        slots = gpu_slots(machine, deployment)
        ranks = _ranks(shape, planned, machine, slots, _cache_ram(deployment))
        return Budget(
            model=model,
            deployment=_filled(deployment, planned, self.versions[0]),
            machine=machine,
            ranks=ranks,
            sequence_state=_sequence_state(shape, planned, ranks, slots),
            assumptions=_assumptions(model, shape, planned, deployment, machine),
            warnings=_warnings(shape, planned, deployment),
            doubts=shape.doubts,
            llama_cpp=_buffers(planned, slots),
        )


def placements(model: Model, deployment: Deployment, machine: Machine) -> tuple[Deployment, ...]:
    """Plans with less on the GPUs that llama.cpp would try by itself, the gentlest first.

    Raises:
        DeploymentError: llama.cpp would refuse the plan whatever its placement.
    """
    shape = shape_of(model, deployment.weight_format)
    return plans.placements(shape, deployment, machine, model.spec)


def file_bytes(model: Model, weight_format: str) -> int:
    """Bytes of all tensors in the GGUF file, as it is or as its converter would write it.

    Raises:
        DeploymentError: no GGUF file can hold ``weight_format``.
    """
    return shape_of(model, weight_format).weights.size_bytes


def shape_of(model: Model, weight_format: str) -> Shape:
    """The model as llama.cpp sees it, in the file as it is or as its converter would write it.

    Raises:
        DeploymentError: no GGUF file can hold ``weight_format``.
    """
    return _shape(model, _mix(model, weight_format))


def _mix(model: Model, weight_format: str) -> str:
    """The mix to plan for; empty = the tensors of the GGUF file as they are."""
    if weight_format == "auto":
        return "" if model.is_gguf else loaded(model, "llama.cpp").name
    mix = _SAME.get(weight_format, weight_format.upper())
    if model.is_gguf and model.stored is not None and mix == model.stored.format_label:
        return ""
    if mix not in MIXES:
        raise DeploymentError(
            tr("llama.cpp loads GGUF files such as Q4_K_M or Q8_0, not {name!r:.40}.").format(
                name=weight_format
            ),
            field="weight_format",
        )
    return mix


@lru_cache(maxsize=8192)
def _shape(model: Model, mix: str) -> Shape:
    return from_gguf.shape_of(model, mix) if model.is_gguf else from_spec.shape_of(model, mix)


def _ranks(
    shape: Shape, planned: Plan, machine: Machine, slots: tuple[Slot, ...], cache_ram: int
) -> tuple[RankBudget, ...]:
    ranks = Ranks(shape, planned, shape.doubts, cache_ram)
    if not slots:
        return (ranks.host(0, machine.host, beside_gpu=False),)
    if slots[0].device.kind is DeviceKind.UNIFIED and len(slots) == 1:
        return (ranks.shared(0, slots[0], machine.host.device.total_bytes),)
    gpus = [ranks.gpu(i, slot) for i, slot in enumerate(slots)]
    return (*gpus, ranks.host(len(gpus), machine.host, beside_gpu=True))


def _cache_ram(deployment: Deployment) -> int:
    asked = deployment.cache_ram_bytes
    return DEFAULT_CACHE_RAM_BYTES if asked is None else asked


def _buffers(planned: Plan, slots: tuple[Slot, ...]) -> LlamaCppBuffers:
    stem = _DEVICE_NAMES.get(slots[0].device.vendor, "GPU") if slots else ""
    names = {HOST: "CPU"} | {i: f"{stem}{i}" for i in range(len(slots))}

    def named(held: dict[int, int], host: str = "CPU") -> dict[str, int]:
        shown = names | {HOST: host}
        return {shown[d]: size for d, size in sorted(held.items()) if size}

    return LlamaCppBuffers(
        model_buffers=named(planned.model),
        kv_buffers=named(planned.kv),
        rs_buffers=named(planned.state),
        compute_buffers=named(planned.compute, f"{stem}_Host" if slots else "CPU"),
        output_buffer=planned.output,
    )


def _filled(deployment: Deployment, planned: Plan, version: str) -> Deployment:
    settings = planned.settings
    return deployment.with_(
        runtime_version=deployment.runtime_version or version,
        max_model_len=settings.context,
        n_ctx=settings.n_ctx,
        n_parallel=settings.slots,
        kv_unified=settings.is_unified,
        n_batch=settings.n_batch,
        n_ubatch=settings.tokens,
        cache_type_k=settings.type_k.lower(),
        cache_type_v=settings.type_v.lower(),
        flash_attn=settings.flash,
        n_outputs_max=settings.outputs,
        cache_ram_bytes=_cache_ram(deployment),
    )


def _sequence_state(
    shape: Shape, planned: Plan, budgets: tuple[RankBudget, ...], slots: tuple[Slot, ...]
) -> SequenceState:
    settings = planned.settings
    ranks = Ranks(shape, planned, ())
    everywhere = (HOST, *range(planned.placement.devices))
    fullest = max(budgets, key=lambda rank: rank.needed.likely_bytes)
    devices = everywhere if len(budgets) == 1 else (fullest.rank,)
    if len(budgets) > 1 and fullest.rank == len(slots):
        devices = (HOST,)
    states = sum(planned.state.values()) // settings.slots
    return SequenceState(
        architecture_bytes_per_sequence=ranks.least_kv_bytes(everywhere, 1) + states,
        reserved_bytes_per_sequence=fullest.needed.likely_bytes // settings.at_once,
        bytes_per_token=ranks.growth_bytes(devices),
        pool_bytes=sum(planned.kv[device] for device in devices),
        pool_tokens=settings.n_ctx,
        max_concurrency=min(settings.n_ctx / settings.context, float(settings.slots)),
        formula=ranks.kv_formula(devices) or tr("no layer keeps a cache"),
    )


def _assumptions(
    model: Model, shape: Shape, planned: Plan, deployment: Deployment, machine: Machine
) -> tuple[str, ...]:
    settings, slots = planned.settings, gpu_slots(machine, deployment)
    notes = list(planned.notes)
    if planned.is_fitted_context:
        notes.insert(
            0,
            tr(
                "Context {tokens}: llama.cpp's default is the model's trained {trained} tokens, "
                "which --fit lowers until 1 GiB stays free (never under {least}). It counts its "
                "own buffers at their likely size against {memory}; program, others and the high "
                "estimates come on top here, so less is to spare."
            ).format(
                tokens=grouped(settings.n_ctx),
                trained=grouped(shape.context_length),
                least=grouped(4096),
                memory=tr("free device memory") if slots else tr("all of the RAM"),
            ),
        )
    elif deployment.max_model_len is None and not deployment.n_ctx:
        notes.insert(
            0,
            tr("Context {tokens}: llama.cpp's default, the model's trained length.").format(
                tokens=grouped(settings.n_ctx)
            ),
        )
    if deployment.weight_format == "auto" and not shape.is_read:
        notes.append(conversion(model))
    elif not shape.is_read:
        notes.append(
            tr(
                "Converted and quantised to {file_type} by llama.cpp's own tools without an "
                "importance matrix; published files may choose other types."
            ).format(file_type=shape.file_type)
        )
    notes.append(note(settings.build, is_default=deployment.runtime_version is None))
    if slots and deployment.n_gpu_layers is None:
        notes.append(
            tr(
                "All layers on the GPU; where they don't fit, llama.cpp's --fit moves some to the "
                "host."
            )
        )
    host = machine.host.device
    beside = bool(slots) and slots[0].device.kind is DeviceKind.DISCRETE
    if beside and host.allocatable.basis is Basis.ASSUMED:
        size = format_gib(host.allocatable.likely_bytes)
        notes.append(
            tr("Host RAM {size}. {source}.").format(size=size, source=host.allocatable.source)
        )
    repacked = shape.weights.repackable_bytes
    if not slots and deployment.mmap and deployment.repack and repacked:
        notes.append(
            tr(
                "Up to {repacked} of weights are repacked into copies; their "
                "file pages stay mapped until the system wants the memory."
            ).format(repacked=format_bytes(repacked, digits=1))
        )
    if planned.projector is not None:
        notes.append(
            tr(
                "With the file of its encoders (mmproj) in 16 bits, which -hf "
                "loads as well; language_model_only leaves it out."
            )
        )
    return tuple(notes)


def _slots_of(settings: Settings) -> str:
    return tr("1 slot") if settings.slots == 1 else tr("{slots} slots").format(slots=settings.slots)


def _warnings(shape: Shape, planned: Plan, deployment: Deployment) -> tuple[str, ...]:
    settings = planned.settings
    found = foreign.warnings(deployment, "llama.cpp")
    if deployment.n_cpu_moe and shape.moe is None:
        found.append(tr("n_cpu_moe moves experts, of which this model has none."))
    asked = deployment.max_model_len
    if asked is not None and asked != settings.context:
        found.append(
            tr(
                "n_ctx {n_ctx} counts, not max_model_len {asked}: a "
                "request may have {context} tokens."
            ).format(
                n_ctx=grouped(deployment.n_ctx or 0),
                asked=grouped(asked),
                context=grouped(settings.context),
            )
        )
    types = (deployment.cache_type_k, deployment.cache_type_v)
    if deployment.kv_cache_dtype != "auto" and None not in types:
        found.append(tr("cache_type_k and cache_type_v count, not kv_cache_dtype."))
    if shape.context_length and settings.context > shape.context_length:
        found.append(
            tr(
                "{context} tokens are more than the {context_length} that the model was trained on."
            ).format(
                context=grouped(settings.context), context_length=grouped(shape.context_length)
            )
        )
    if settings.context * settings.at_once > settings.n_ctx:
        found.append(
            tr(
                "{at_once} requests of {context} tokens don't fit the "
                "{n_ctx} cells at once: the last ones wait."
            ).format(
                at_once=settings.at_once,
                context=grouped(settings.context),
                n_ctx=grouped(settings.n_ctx),
            )
        )
    waiting = settings.concurrency - settings.at_once
    if waiting > 0:
        runs = (
            tr("One request runs")
            if settings.at_once == 1
            else tr("{at_once} requests run").format(at_once=settings.at_once)
        )
        rest = (
            tr("the other one waits")
            if waiting == 1
            else tr("the other {waiting} wait").format(waiting=waiting)
        )
        found.append(
            tr("{runs} at a time ({slots_of}): {rest}.").format(
                runs=runs, slots_of=_slots_of(settings), rest=rest
            )
        )
    if deployment.ranks > 1:
        found.append(
            "llama.cpp has no tensor or pipeline parallel sizes: it spreads layers over all GPUs."
        )
    return tuple(found)
