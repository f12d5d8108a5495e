"""Ollama as a ``Runtime``: llama-server with the settings that Ollama starts it with."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.architecture.spec import Direction, Doubt, ModuleClass, Subject
from engine.errors import DeploymentError
from engine.runtimes import beneath, bounded
from engine.runtimes.checks import RELEASE
from engine.runtimes.llama_cpp import LlamaCpp, shape_of
from engine.runtimes.llama_cpp.shape import CacheKind
from engine.runtimes.loading import loaded
from engine.runtimes.ollama import launch
from engine.runtimes.taught import taught
from engine.units import format_gib
from engine.words import grouped, tr

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.budget.model import Budget
    from engine.deployment.spec import Deployment
    from engine.devices.device import Machine, Slot
    from engine.runtimes.llama_cpp.shape import Shape

_FIRST_WITH_LLAMA_SERVER = (0, 30)
"""Release 0.30.0 of June 2026; 0.24 still logs runners of its own."""
_BUNDLED = (
    ((0,), "b2400"),
    ((0, 5), "b4900"),
    ((0, 7), "b5350"),
    (_FIRST_WITH_LLAMA_SERVER, "b10500"),
)
"""Release -> about the build of llama.cpp that it and those after it come with, by their days."""
_SOURCE = "Ollama 0.33"


class Ollama:
    """Ollama 0.30 and later, which runs llama-server; older releases as a bound."""

    name = "ollama"
    label = "Ollama"
    versions: tuple[str, ...] = ("0.33", "0.32")
    kv_cache_dtypes: tuple[str, ...] = ("auto", "f16", "q8_0", "q4_0")

    def weight_formats(self, model: Model) -> tuple[str, ...]:
        """``auto``, and every mix that the model can be made into."""
        return LlamaCpp().weight_formats(model)

    @taught
    def plan(self, model: Model, deployment: Deployment, machine: Machine) -> Budget:
        """The budget of every GPU that Ollama chooses and of the host.

        Raises:
            DeploymentError: Ollama or llama-server would refuse; names the setting.
            ConfigError: a GGUF file's metadata cannot be a model's.
        """
        version = _version(deployment.runtime_version)
        found = self.beneath(model, deployment, machine)
        budget = beneath.budget(model, deployment, self.versions[0], found)
        settled = budget.deployment.with_(
            gpu_overhead_bytes=deployment.gpu_overhead_bytes, sched_spread=deployment.sched_spread
        )
        budget = replace(budget, deployment=settled, machine=machine)
        return bounded.bound(budget, _doubts(model, deployment, version))

    def beneath(self, model: Model, deployment: Deployment, machine: Machine) -> beneath.Beneath:
        """The flags of llama-server, and the GPUs that it sees.

        Raises:
            DeploymentError: a setting that Ollama hasn't in this form; names it.
        """
        return _Launch(model, deployment, machine).settled()


class _Launch:
    """One start of llama-server, worked out in the order in which Ollama does."""

    def __init__(self, model: Model, deployment: Deployment, machine: Machine) -> None:
        auto = deployment.weight_format == "auto"
        self.weights = loaded(model, "ollama").name if auto else deployment.weight_format
        if auto and model.is_gguf:
            self.weights = "auto"
        self.model, self.asked, self.machine = model, deployment, machine
        self.shape: Shape = shape_of(model, self.weights)
        self.notes: list[str] = []
        self.warnings: list[str] = []

    def settled(self) -> beneath.Beneath:
        asked = self.asked
        slots = self._slots()
        context = self._context(slots)
        total = context * slots
        predicted = launch.predicted_bytes(self.shape, total)
        chosen = launch.chosen_gpus(self.machine, predicted, spread=asked.sched_spread)
        if asked.n_gpu_layers == 0:
            chosen = ()
        self._tell_choice(chosen, predicted)
        tokens = self._batch(chosen, total, predicted)
        kept = beneath.stripped(asked).with_(
            weight_format=self.weights,
            max_model_len=context,
            n_ctx=None,
            n_parallel=slots,
            n_batch=tokens,
            n_ubatch=asked.n_ubatch or tokens,
            mmap=asked.mmap and self._is_mapped(chosen, predicted),
            runtime_version=_bundled(_version(asked.runtime_version)),
            **self._cache_types(),
        )
        machine = self.machine
        if chosen and len(chosen) < len(launch.gpus(machine)):
            machine = replace(machine, slots=chosen)
        return beneath.Beneath(kept, machine, tuple(self.notes), tuple(self.warnings))

    def _slots(self) -> int:
        for name, least in (("concurrency", 1), ("gpu_overhead_bytes", 0)):
            stated = getattr(self.asked, name)
            if stated is not None and stated < least:
                message = tr("{name} is {stated}; it has to be {least} or more.").format(
                    name=name, stated=grouped(stated), least=least
                )
                raise DeploymentError(message, field=name)
        asked = self.asked.n_parallel
        wanted = asked if asked is not None else self.asked.concurrency
        if wanted > 1 and launch.runs_one_at_a_time(self.shape):
            self.warnings.append(
                tr(
                    "Ollama runs {architecture} models one request at a time: "
                    "OLLAMA_NUM_PARALLEL is held at 1."
                ).format(architecture=self.shape.architecture)
            )
            return 1
        if asked is None and wanted > 1:
            self.notes.append(
                tr(
                    "OLLAMA_NUM_PARALLEL = {wanted}, a slot for each request; its default is 1."
                ).format(wanted=wanted)
            )
        elif asked is None:
            self.notes.append(tr("OLLAMA_NUM_PARALLEL = 1, Ollama's default."))
        return wanted

    def _context(self, slots: int) -> int:
        """num_ctx: asked for, or by tier; never more than the model was trained on."""
        asked, trained = self.asked, self.shape.context_length
        if asked.n_ctx:
            context = max(asked.n_ctx // slots, 1)
        elif asked.n_ctx == 0 and trained:
            context = trained
        elif asked.max_model_len is not None:
            context = asked.max_model_len
        else:
            return self._default_context(trained)
        if any(t.module is ModuleClass.VISION for t in self.model.spec.outer):
            context = max(context, launch.LEAST_VISION_CONTEXT)
        if trained and context > trained:
            self.warnings.append(
                tr(
                    "Ollama cuts num_ctx {context} to the {trained} tokens "
                    "that the model was trained on."
                ).format(context=grouped(context), trained=grouped(trained))
            )
        return min(context, trained or context)

    def _default_context(self, trained: int) -> int:
        overhead = self.asked.gpu_overhead_bytes or 0
        tier = launch.default_context(launch.gpus(self.machine), overhead)
        context = min(tier, trained or tier)
        why = tr("by the memory of all GPUs (23 GiB: 32,768; 47 GiB: 262,144)")
        cut = (
            tr(", cut to what the model was trained on from {tier}").format(tier=grouped(tier))
            if context < tier
            else ""
        )
        self.notes.append(
            tr("num_ctx {context}: {source}'s default {why}{cut}.").format(
                context=grouped(context), source=_SOURCE, why=why, cut=cut
            )
        )
        lower = launch.next_lower_context(context)
        if lower is not None:
            self.notes.append(
                tr(
                    "Should llama-server run out of memory at load, Ollama "
                    "starts it once more with num_ctx {lower}."
                ).format(lower=grouped(lower))
            )
        return context

    def _tell_choice(self, chosen: tuple[Slot, ...], predicted: int) -> None:
        self.notes.append(
            tr(
                "Ollama's own estimate is {predicted} (the file, and an F16 "
                "cache for every layer); it chooses GPUs and batch by it, no "
                "figure here is taken from it."
            ).format(predicted=format_gib(predicted, digits=1))
        )
        there = len(launch.gpus(self.machine))
        if there > 1 and len(chosen) == 1:
            self.notes.append(
                tr(
                    "One GPU of {there} ({name}): the estimate fits in 80 % of "
                    "its free memory; OLLAMA_SCHED_SPREAD would use all."
                ).format(there=there, name=chosen[0].device.name)
            )
        elif there > 1 and chosen:
            self.notes.append(
                tr("Spread over {chosen} GPUs, by their free memory.").format(chosen=len(chosen))
            )

    def _batch(self, chosen: tuple[Slot, ...], total: int, predicted: int) -> int:
        if self.asked.n_batch is not None:
            return self.asked.n_batch
        off = self.asked.flash_attn in (False, "off")
        if off and any(s.device.vendor.value == "NVIDIA" for s in chosen):
            tokens = launch.batch_without_flash(chosen, total)
        else:
            available = launch.available_bytes(self.machine, chosen)
            tokens = launch.batch(self.shape, total, predicted, available)
        self.notes.append(
            tr(
                "num_batch {tokens}: {source} chooses 512, 1,024 or 2,048 by context and room."
            ).format(tokens=grouped(tokens), source=_SOURCE)
        )
        return tokens

    def _is_mapped(self, chosen: tuple[Slot, ...], predicted: int) -> bool:
        platform = self.asked.platform or self.machine.platform
        size = self.shape.weights.size_bytes
        reason = launch.unmapped(self.machine, chosen, platform, predicted, size)
        if reason and self.asked.mmap:
            self.notes.append(
                tr("The file is read and not mapped ({reason}), as Ollama decides.").format(
                    reason=reason
                )
            )
        return not reason

    def _cache_types(self) -> dict[str, str]:
        """One type for keys and values."""
        asked = self.asked
        key, value = asked.cache_type_k, asked.cache_type_v
        if key != value:
            raise DeploymentError(
                tr(
                    "Ollama has one type for keys and values "
                    "(OLLAMA_KV_CACHE_TYPE): give cache_type_k and "
                    "cache_type_v alike."
                ),
                field="cache_type_v" if value else "cache_type_k",
            )
        if key and value:
            return {"kv_cache_dtype": "auto", "cache_type_k": key, "cache_type_v": value}
        if asked.kv_cache_dtype != "auto":
            return {"kv_cache_dtype": asked.kv_cache_dtype}
        self.notes.append(tr("KV cache in f16, Ollama's default (OLLAMA_KV_CACHE_TYPE)."))
        return {"kv_cache_dtype": "f16"}


def _version(text: str | None) -> tuple[int, ...]:
    if text is None:
        return _FIRST_WITH_LLAMA_SERVER
    found = RELEASE.fullmatch(text)
    if found is None:
        raise DeploymentError(
            tr("runtime_version {text!r:.40} is no release of Ollama, such as 0.33.2.").format(
                text=text
            ),
            field="runtime_version",
        )
    return tuple(int(part) for part in found.groups(default="0"))


def _bundled(version: tuple[int, ...]) -> str:
    """The build of llama.cpp that comes with a release."""
    return next(build for since, build in reversed(_BUNDLED) if version >= since)


def _doubts(model: Model, deployment: Deployment, version: tuple[int, ...]) -> tuple[Doubt, ...]:
    """Before 0.30 Ollama laid out memory with runners of its own."""
    if version >= _FIRST_WITH_LLAMA_SERVER:
        return ()
    start = tr("Ollama before 0.30 ran models with runners of its own")
    found = [
        Doubt(
            Subject.ACTIVATIONS,
            tr("{start}: their work buffers are counted as llama-server's").format(start=start),
            Direction.EITHER,
        )
    ]
    shape = shape_of(model, loaded(model, "ollama").name if not model.is_gguf else "auto")
    plain = all(b.cache is CacheKind.FULL and not b.is_recurrent for b in shape.kinds)
    if not plain or shape.mla is not None or deployment.max_model_len is None:
        reason = tr("{start}: windows, states and the default context followed other rules").format(
            start=start
        )
        found.append(Doubt(Subject.SEQUENCE_STATE, reason, Direction.EITHER))
    return tuple(found)
