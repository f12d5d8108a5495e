"""From a request to its answer: find the model, choose the machine, size, note what was open.

A desk keeps what further requests can share: models already read, this machine, and whether
the Hub answers. A thousand lines about twenty models read twenty models.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine import lessons
from engine.architecture.read import read
from engine.contract.answer import Notes
from engine.devices import catalogue
from engine.devices.device import DeviceKind, Vendor
from engine.errors import (
    DeviceError,
    HubOfflineError,
    HubTimeoutError,
    LessonError,
    SourceError,
)
from engine.runtimes import foreign, registry
from engine.source import catalogue as catalogue_of_models
from engine.source.derived import derived
from engine.source.raw import RawModel
from engine.source.recall import origin_of
from engine.source.resolve import resolve
from engine.text import printable
from engine.units import GIB
from engine.words import figures, grouped, tr

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.architecture.model import Model
    from engine.cancel import CancelToken
    from engine.contract.request import Request
    from engine.deployment.spec import Deployment
    from engine.devices.device import Device, Machine
    from engine.fit.traffic import Flow, Traffic
    from engine.lessons import Lesson
    from engine.source.hub import HubClient
    from engine.together import Tenant

_KEPT_MODELS = 32
# The answer then states no capacity and no verdict; the steps of a server follow from it.
_UNNAMED_GPU_BYTES = 80 * GIB


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A request with everything found: what ``sizing.size`` takes, and what was left open."""

    model: Model
    deployment: Deployment
    machine: Machine
    notes: Notes
    flow: Flow | None = None
    """What runs at once, where the request states its traffic."""


class Desk:
    """Answers requests one after the other. Not shared between threads."""

    def __init__(self, token: CancelToken, open_hub: Callable[[], HubClient] | None = None) -> None:
        """``open_hub`` is called when a request first names a model only the Hub has."""
        self._token = token
        self._open_hub = open_hub
        self._hub: HubClient | None = None
        self._models: OrderedDict[str, Model] = OrderedDict()
        self._here: dict[frozenset[int], Machine] = {}
        self._unlearned = ""
        """Why nothing of earlier runs is known."""

    def plan(self, request: Request, before: Sequence[Request] = ()) -> Plan:
        """Everything the arithmetic needs for ``request``.

        Args:
            request: what is asked.
            before: models that start earlier on the same machine, and hold their part of it.

        Raises:
            PlimsollError: the model, the device or the setting that is wrong.
        """
        # What costs nothing to check comes before a model that may have to come from the Hub.
        if "runtime" in request.given:
            registry.get(request.deployment.runtime)
        whole, about_machine = self._machine(_all_of(request, before))
        machine = whole
        if request.devices is not None:
            from engine.together import on  # noqa: PLC0415 - seldom asked

            machine = on(machine, request.devices)
        model = self.model(request)
        deployment, flow, about_plan = self._deployment(request, model, machine)
        if before:
            from engine.together import Tenant, together  # noqa: PLC0415 - seldom asked

            tenants = [self._tenant(each, whole) for each in before]
            own = Tenant(model, deployment, request.devices)
            machine = together([*tenants, own], whole).placed[-1].sizing.budget.machine
        return Plan(
            flow=flow,
            model=model,
            deployment=deployment,
            machine=machine,
            notes=Notes(
                assumptions=(*about_plan, *about_machine.assumptions),
                warnings=(*_about_source(model), *request.remarks, *about_machine.warnings),
                capacity_known=about_machine.capacity_known,
            ),
        )

    def tenants(
        self, request: Request, before: Sequence[Request] = ()
    ) -> tuple[tuple[Tenant, ...], Machine]:
        """The models that run on one machine in the order of their start, and that machine.

        Raises:
            PlimsollError: a model, the device or the setting that is wrong.
        """
        machine, _ = self._machine(_all_of(request, before))
        everyone = (*before, request, *request.others)
        return tuple(self._tenant(each, machine) for each in everyone), machine

    def _tenant(self, request: Request, machine: Machine) -> Tenant:
        from engine.together import Tenant  # noqa: PLC0415 - seldom asked

        model = self.model(request)
        deployment, _, _ = self._deployment(request, model, machine)
        return Tenant(model, deployment, request.devices)

    def _deployment(
        self, request: Request, model: Model, machine: Machine
    ) -> tuple[Deployment, Flow | None, tuple[str, ...]]:
        """The plan with what the request left open, its traffic's flow, and what was assumed."""
        deployment, assumed = _complete(request, model, machine)
        if "from_command" in request.given:
            from engine.launch.weights import of_model  # noqa: PLC0415 - seldom stated

            deployment = of_model(deployment, model)
        if request.draft_model is not None:
            deployment = replace(deployment, draft_model=self._known(request.draft_model))
        if request.traffic is None:
            return deployment, None, assumed
        flow, deployment, about_traffic = _sustained(request.traffic, deployment)
        return deployment, flow, (about_traffic, *assumed)

    def model(self, request: Request) -> Model:
        """The model that ``request`` names or carries."""
        if request.config is not None:
            raw = RawModel(
                id=request.model or str(request.config.get("_name_or_path") or "inline config"),
                source="config given with the request",
                config=request.config,
                tensors=request.tensors,
                tensors_source="tensors given with the request" if request.tensors else "",
            )
            return read(raw)
        return self._known(request.model or "")

    def _known(self, name: str) -> Model:
        known = self._models.get(name)
        if known is None:
            raw = self._fetch(name)
            known = self._models[name] = replace(read(raw), origin=origin_of(name, raw))
            if len(self._models) > _KEPT_MODELS:
                self._models.popitem(last=False)
        else:
            self._models.move_to_end(name)
        return known

    def _fetch(self, name: str) -> RawModel:
        try:
            return resolve(name, self._token, None)
        except (SourceError, HubOfflineError):
            if self._open_hub is None:
                copied = catalogue_of_models.mirrored(name) or derived(name)
                if copied is None:
                    raise
                return copied
        try:
            self._hub = self._hub or self._open_hub()
            return resolve(name, self._token, self._hub)
        except (HubOfflineError, HubTimeoutError):
            # It will not answer the next line either, and each try costs seconds.
            self._open_hub = None
            raise

    def _machine(self, request: Request) -> tuple[Machine, Notes]:
        count, ram = request.gpu_count, request.host_total_bytes
        if count == 0:
            return self._cpu_alone() if ram is None else catalogue.without_gpu(ram), Notes()
        if request.gpu is None and request.gpu_total_bytes is None:
            if ram is not None:
                message = tr(
                    "This machine's RAM is measured: host_total_bytes is for another, "
                    "which gpu names."
                )
                raise DeviceError(message, field="host_total_bytes")
            return self._this_machine(request, count)
        if request.instead_of or request.empty:
            message = tr("{device} isn't this machine: nothing runs there.").format(
                device=request.gpu or tr("The device")
            )
            raise DeviceError(message, field="instead_of" if request.instead_of else "baseline")
        if request.gpu is not None and catalogue.lists(request.gpu):
            return self._mixed(request, request.gpu), Notes()
        assumed: tuple[str, ...] = ()
        if count is None:
            plans = [each.deployment for each in (request, *request.others)]
            stated = [max(each.devices or (0,)) + 1 for each in (request, *request.others)]
            count = max(*map(_devices, plans), *stated)
            assumed = (
                tr("gpu_count {count}: as many devices as the parallel sizes need.").format(
                    count=count
                ),
            )
        try:
            device = _named(request.gpu, request.gpu_total_bytes)
        except DeviceError as exc:
            if request.gpu is None or request.deployment.kv_pool_bytes is None:
                raise
            # The pool's arithmetic needs no device: answer it, and say what isn't known.
            device = catalogue.custom(_UNNAMED_GPU_BYTES, printable(request.gpu.strip(), 80))
            told = (
                tr("{trouble} Without the device only the pool's arithmetic is known.").format(
                    trouble=exc.message
                ),
            )
            shown = catalogue.machine(device, count, ram)
            return shown, Notes(assumed, told, capacity_known=False)
        return catalogue.machine(device, count, ram), Notes(assumptions=assumed)

    @staticmethod
    def _mixed(request: Request, names: str) -> Machine:
        """A machine of listed devices; each of them says its own count and size."""
        for field in ("gpu_count", "gpu_total_bytes"):
            if field in request.given:
                message = tr("gpu names every device of {names}: leave out {field}.").format(
                    names=repr(names[:80]), field=field
                )
                raise DeviceError(message, field=field)
        return catalogue.mixed(catalogue.named(names), request.host_total_bytes)

    def _this_machine(self, request: Request, count: int | None) -> tuple[Machine, Notes]:
        here = self._look_around(request.instead_of)
        if request.empty:
            here = here.emptied()
        gpus = [slot for slot in here.slots if slot.device.kind is not DeviceKind.HOST]
        told = (self._unlearned,) if self._unlearned else ()
        if count is None or count == len(gpus):
            note = tr("Device: {device}.").format(device=here.name)
            return here, Notes(assumptions=(note,), warnings=told)
        if count < len(gpus):
            note = tr("Device: the first {count} of {all} GPUs of this machine.").format(
                count=count, all=len(gpus)
            )
            first = replace(here, slots=tuple(gpus[:count]))
            return first, Notes(assumptions=(note,), warnings=told)
        if gpus:
            message = tr(
                "This machine has {there} GPUs, not {count}: name another with gpu."
            ).format(there=len(gpus), count=count)
            raise DeviceError(message, field="gpu_count")
        unnamed = catalogue.custom(_UNNAMED_GPU_BYTES, "GPU (not named)")
        warning = tr(
            "No device is named and this machine has no GPU: whether it fits is not known."
        )
        return catalogue.machine(unnamed, count), Notes(warnings=(warning,), capacity_known=False)

    def _cpu_alone(self) -> Machine:
        here = self._look_around()
        return replace(here, slots=(here.host,))

    def _look_around(self, instead_of: frozenset[int] = frozenset()) -> Machine:
        known = self._here.get(instead_of)
        if known is None:
            from engine.devices.here import this_machine  # noqa: PLC0415 - loads drivers

            found = this_machine(instead_of=instead_of)
            known = self._here[instead_of] = replace(found, lessons=self._lessons())
        return known

    def _lessons(self) -> tuple[Lesson, ...]:
        """What runs on this machine taught; none, and a warning, where they can't be read."""
        try:
            return lessons.read(lessons.default_file()).lessons
        except LessonError as error:
            self._unlearned = error.message
            return ()


def _all_of(request: Request, before: Sequence[Request]) -> Request:
    """``request`` with all models that share its machine."""
    return replace(request, others=(*before, *request.others))


def _about_source(model: Model) -> tuple[str, ...]:
    """A model that is known by its name alone."""
    if not model.source.startswith(catalogue_of_models.MIRRORED):
        return ()
    return (
        tr("{model} could not be read; sized by the {source}.").format(
            model=model.id, source=model.source
        ),
    )


def _devices(plan: Deployment) -> int:
    """How many devices the parallel sizes of ``plan`` need, those that its runtime has."""
    copies = "data_parallel_size" in foreign.settings_of(plan.runtime)
    return plan.ranks * (plan.data_parallel_size if copies else 1)


def _named(name: str | None, total_bytes: int | None) -> Device:
    if total_bytes is None:
        return catalogue.named(name or "")[0]
    like = catalogue.match(name, total_bytes) if name else None
    return catalogue.custom(total_bytes, name or "", like)


def _complete(
    request: Request, model: Model, machine: Machine
) -> tuple[Deployment, tuple[str, ...]]:
    """The deployment with a runtime, and a sentence for every choice made here."""
    deployment = request.deployment
    notes: list[str] = []
    if "runtime" not in request.given:
        name = default_runtime(model, machine)
        deployment = deployment.with_(runtime=name)
        notes.append(tr("runtime {name}: {why}.").format(name=name, why=_why(name, model)))
    at_once = {"concurrency", "n_parallel", "batch_size", "live_tokens", "arrival_rate"}
    if not request.given & at_once:
        notes.append(tr("concurrency 1: one request at a time."))
    return deployment, tuple(notes)


def _sustained(traffic: Traffic, deployment: Deployment) -> tuple[Flow, Deployment, str]:
    """The plan for the traffic's peak, and how it was found."""
    from engine.fit.traffic import flow, under  # noqa: PLC0415 - seldom stated

    found = flow(traffic)
    paged = foreign.has(deployment.runtime, "live_tokens")
    note = (
        tr(
            "sustained: {mean} requests run at once on average, {most} or fewer 99 % of the time, "
            "with {tokens} live tokens (arrivals at random, each running at once)."
        )
    ).format(
        mean=figures(f"{found.requests.mean:,.1f}"),
        most=grouped(found.requests.p99),
        tokens=grouped(found.live_tokens.p99),
    )
    return found, under(deployment, found, counts_live_tokens=paged), note


def default_runtime(model: Model, machine: Machine) -> str:
    """The runtime of a plan that names none: vLLM where it is at home, else llama.cpp."""
    first = machine.slots[0].device
    at_home = first.kind is DeviceKind.DISCRETE and first.vendor in {Vendor.NVIDIA, Vendor.AMD}
    return "vllm" if at_home and not model.is_gguf else "llama.cpp"


def _why(name: str, model: Model) -> str:
    label = registry.get(name).label
    if model.is_gguf:
        return tr("{runtime} reads GGUF files").format(runtime=label)
    return tr("{runtime} is our default for this device").format(runtime=label)
