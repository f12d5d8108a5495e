"""Transformers' budget: weights by layer over the devices, a cache that grows, a prefill peak."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.budget import sequence_state as state
from engine.budget.model import Budget, SequenceState
from engine.budget.weights import AS_STORED
from engine.runtimes.taught import taught
from engine.runtimes.transformers import caches, releases
from engine.runtimes.transformers.cache import growth_bytes, kinds
from engine.runtimes.transformers.placement import NOT_SPREAD, Cut, Placement, kept_whole, place
from engine.runtimes.transformers.rank import Ranks
from engine.runtimes.transformers.settings import FORMATS_LOADED, Settings, settle
from engine.units import format_gib
from engine.words import tr

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.budget.model import RankBudget
    from engine.deployment.spec import Deployment
    from engine.devices.device import Machine, Slot

_BITSANDBYTES = ("nf4", "int8")


class Transformers:
    """Transformers with accelerate's placement."""

    name = "transformers"
    label = "Transformers"
    versions: tuple[str, ...] = releases.VERSIONS
    kv_cache_dtypes: tuple[str, ...] = (AS_STORED,)

    def weight_formats(self, model: Model) -> tuple[str, ...]:
        """As stored, and every format Transformers loads or quantises to."""
        names = (n for n in FORMATS_LOADED if n != model.spec.weight_format)
        return () if model.is_gguf else (AS_STORED, *names)

    @taught
    def plan(self, model: Model, deployment: Deployment, machine: Machine) -> Budget:
        """The budget of every device, and of the RAM where something lies in it.

        Raises:
            DeploymentError: the deployment is impossible; names the field to correct.
        """
        settings = settle(model, deployment, machine)
        tp = settings.deployment.tensor_parallel_size
        slots = _devices(settings, machine)
        whole = kept_whole(model.spec, settings.version)
        placement = place(
            model,
            Cut(settings.held.weight_format, tp, whole),
            slots,
            machine.host,
            settings.device_map,
        )
        builder = Ranks(model, settings, placement, _packed(model, settings, machine, slots))
        ranks = [builder.device(rank, slot) for rank, slot in enumerate(slots)]
        fullest = max(ranks, key=lambda r: r.needed.likely_bytes)
        host = builder.host(len(ranks), machine.host)
        if host is not None:
            ranks.append(host)
        spec = model.spec
        return Budget(
            model=model,
            deployment=settings.deployment,
            machine=machine,
            ranks=tuple(ranks),
            sequence_state=SequenceState(
                architecture_bytes_per_sequence=state.architecture_bytes(
                    spec, settings.kv_dtype, settings.context
                ),
                reserved_bytes_per_sequence=fullest.needed.likely_bytes // settings.batch,
                bytes_per_token=_growth(model, settings, placement, fullest),
                formula=state.sequence_equation(spec, settings.kv_dtype, settings.context),
            ),
            assumptions=settings.assumptions,
            warnings=(*settings.warnings, *_away(placement)),
            refusals=_refusals(model, settings, placement),
            doubts=spec.doubts,
        )


def _devices(settings: Settings, machine: Machine) -> tuple[Slot, ...]:
    """``device_map`` spreads the layers over every device there is, unless some are asked for."""
    if settings.device_map == NOT_SPREAD:
        return machine.slots[: settings.deployment.tensor_parallel_size]
    ranks = settings.deployment.ranks
    return machine.slots if ranks == 1 else machine.slots[:ranks]


def _packed(
    model: Model, settings: Settings, machine: Machine, slots: tuple[Slot, ...]
) -> tuple[int, int]:
    """The whole model as it is stored and as it is held."""
    if settings.held.is_certain or not settings.held.unpacked_from:
        return 1, 1
    tp = settings.deployment.tensor_parallel_size
    stored, held = (
        place(model, Cut(name, tp), slots[:tp], machine.host, NOT_SPREAD).devices[0].size_bytes
        for name in (settings.deployment.weight_format, settings.held.weight_format)
    )
    return stored, held or 1


def _growth(model: Model, settings: Settings, placement: Placement, fullest: RankBudget) -> int:
    """What one more token costs the fullest device after the last one."""
    tp = settings.deployment.tensor_parallel_size
    layers = placement.devices[fullest.rank // tp].layers
    computes = layers if fullest.rank else (*layers, *placement.away)
    cache = settings.cache
    plain = sum(
        growth_bytes(layer, settings.context, settings.kv_dtype, tp=tp, form=cache.form) * count
        for layer, count in kinds([model.spec.layers[at] for at in computes])
    )
    if cache.is_quantised:
        return plain * cache.group_bytes // (caches.GROUP * settings.element_bytes)
    if cache.is_offloaded and computes:
        return plain * min(caches.ON_DEVICE, len(computes)) // len(computes)
    return plain


def _away(placement: Placement) -> list[str]:
    """What a plan with layers elsewhere has to know."""
    told: list[str] = []
    if placement.host.size_bytes:
        told.append(
            tr(
                "{size_bytes} of weights stay in RAM and come to the first GPU "
                "to compute, layer by layer: every token waits for them."
            ).format(size_bytes=format_gib(placement.host.size_bytes))
        )
    if placement.disk.size_bytes:
        told.append(
            tr("{size_bytes} of weights stay on disk: set offload_folder.").format(
                size_bytes=format_gib(placement.disk.size_bytes)
            )
        )
    if placement.away:
        told.append(
            tr(
                "The cache of the {away} layers that lie elsewhere is on the "
                "first GPU; device_map plans no room for it."
            ).format(away=len(placement.away))
        )
    return told


def _refusals(model: Model, settings: Settings, placement: Placement) -> tuple[str, ...]:
    """Formats that cannot leave layers in RAM (``quantizers/*.py :: validate_environment``)."""
    if not placement.away:
        return ()
    name = settings.deployment.weight_format
    if name == AS_STORED:
        name = model.spec.weight_format
    if name.startswith(_BITSANDBYTES):
        message = tr(
            "bitsandbytes refuses modules in RAM or on disk: the quantised "
            "model has to fit the GPUs (or set "
            "llm_int8_enable_fp32_cpu_offload and a device_map of your "
            "own)."
        )
        return (message,)
    if name.startswith("fp8") and name != model.spec.weight_format:
        return (tr("Transformers makes FP8 weights on the GPU only: it refuses modules in RAM."),)
    return ()
