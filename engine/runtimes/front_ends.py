"""Programs that run another runtime with defaults of their own: presets, each with its source.

A preset says only what differs. What the user states always goes before it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from engine.architecture.spec import Direction, Doubt, Subject
from engine.deployment.spec import Deployment
from engine.errors import DeploymentError
from engine.runtimes import beneath, bounded, ik_llama_cpp, registry
from engine.runtimes.beneath import Beneath
from engine.runtimes.loading import loaded
from engine.runtimes.taught import taught
from engine.words import tr, tr_later

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engine.architecture.model import Model
    from engine.budget.model import Budget
    from engine.devices.device import Machine


@dataclass(frozen=True, slots=True)
class Preset:
    """One front end: its defaults by field of the deployment, each with the words for it."""

    label: str
    version: str
    source: str
    defaults: Mapping[str, tuple[object, str]]
    least_slots: int = 0
    """Slots that share one cache, however few requests there are; 0: as the runtime decides."""
    most_slots: int = 256
    further_slots: int = 0
    """Slots beyond the requests, for what the program asks in the background."""
    further_cells: int = 0
    """Tokens of context beyond what is asked for."""
    doubts: tuple[Doubt, ...] = ()
    """What follows rules of its own that are not known."""
    settled: Callable[[Budget], Budget] = lambda budget: budget
    """The budget of the runtime beneath by this program's own rules, where some are known."""


_KOBOLD = "koboldcpp.py, add_argument, and gpttype_adapter.cpp, gpttype_load_model"
_PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "lmstudio": Preset(
            "LM Studio",
            "0.4",
            tr_later(
                "lmstudio.ai/docs/app/advanced/parallel-requests and lmstudio-js, kv-config schema"
            ),
            {
                "max_model_len": (4096, tr_later("context 4,096")),
                "n_batch": (512, tr_later("evaluation batch 512")),
                "flash_attn": ("on", tr_later("flash attention on")),
                "cache_ram_bytes": (0, tr_later("no earlier prompts kept")),
            },
            least_slots=4,
        ),
        "jan": Preset(
            "Jan",
            "0.8",
            "extensions/llamacpp-extension/src/preset.ts",
            {},
            further_slots=2,
        ),
        "koboldcpp": Preset(
            "KoboldCpp",
            "1.113",
            _KOBOLD,
            {
                "max_model_len": (8192, tr_later("context 8,192")),
                "n_batch": (512, tr_later("batch 512")),
                "flash_attn": ("on", tr_later("flash attention on")),
                "swa_full": (True, tr_later("full caches for window layers (no --useswa)")),
                "mmap": (False, tr_later("the file read and not mapped (no --usemmap)")),
                "n_outputs_max": (0, tr_later("a row of logits for each token of a batch")),
                "cache_ram_bytes": (0, tr_later("no earlier prompts kept (no --smartcache)")),
                "language_model_only": (True, tr_later("no encoders (no --mmproj)")),
            },
            least_slots=1,
            most_slots=1,
            further_cells=128,
        ),
        "llamafile": Preset(
            "llamafile", "0.10", "docs/cli_arguments.md: llama.cpp's own options", {}
        ),
        "ik_llama.cpp": Preset(
            "ik_llama.cpp",
            "2025",
            tr_later("25 load logs of 2025"),
            {
                "n_ctx": (0, tr_later("the model's whole context")),
                "n_parallel": (1, tr_later("one sequence")),
                "swa_full": (
                    True,
                    tr_later("full caches for window layers, which it does not know"),
                ),
                "n_outputs_max": (0, tr_later("a row of logits for each token of a batch")),
                "cache_ram_bytes": (0, tr_later("no earlier prompts kept")),
                "language_model_only": (True, tr_later("no encoders")),
            },
            settled=ik_llama_cpp.settled,
        ),
        "tgi": Preset(
            "TGI",
            "3",
            "launcher/src/main.rs and models/globals.py (TGI_WIGGLE_ROOM 0.90)",
            {
                "gpu_memory_utilization": (0.9, tr_later("90 % of what is free for the cache")),
                "max_num_batched_tokens": (4096, tr_later("4,096 tokens of prompt in one step")),
            },
            doubts=(
                Doubt(
                    Subject.SEQUENCE_STATE,
                    tr_later(
                        "TGI takes its cache after a warm-up of its own: counted by vLLM's rules"
                    ),
                    Direction.EITHER,
                ),
                Doubt(
                    Subject.ACTIVATIONS,
                    tr_later("TGI's work memory is measured in no record: counted by vLLM's rules"),
                    Direction.EITHER,
                ),
            ),
        ),
    }
)
_DEFAULTS = Deployment()
_RELEASE = re.compile(
    r"[vb]?[0-9]{1,8}(?:\.[0-9]{1,6}){0,3}(?:[.\-+a-z][\w.\-+]*)?", re.ASCII | re.IGNORECASE
)


def states(name: str, setting: str) -> bool:
    """Whether ``name`` is such a program and has a default of its own for ``setting``."""
    preset = _PRESETS.get(name)
    return preset is not None and setting in preset.defaults


class FrontEnd:
    """A program that runs ``registry.family(name)`` with its own defaults."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._preset = _PRESETS[name]
        self.label = self._preset.label
        self.versions: tuple[str, ...] = (self._preset.version,)
        self._below = registry.get(registry.family(name))
        self.kv_cache_dtypes: tuple[str, ...] = self._below.kv_cache_dtypes

    def weight_formats(self, model: Model) -> tuple[str, ...]:
        """What the runtime beneath loads."""
        return self._below.weight_formats(model)

    @taught
    def plan(self, model: Model, deployment: Deployment, machine: Machine) -> Budget:
        """The budget of the runtime beneath, with this program's defaults.

        Raises:
            DeploymentError: the runtime beneath would refuse; names the setting.
        """
        told = self._unlike(deployment.runtime_version)
        found = self.beneath(model, deployment, machine)
        budget = beneath.budget(model, deployment, self.versions[0], found)
        if told:
            budget = replace(budget, warnings=(*budget.warnings, told))
        if found.context is not None:
            settled = budget.deployment.with_(max_model_len=found.context)
            budget = replace(budget, deployment=settled)
        doubts = [replace(doubt, reason=tr(doubt.reason)) for doubt in self._preset.doubts]
        return bounded.bound(self._preset.settled(budget), doubts)

    def _unlike(self, version: str | None) -> str:
        """What to know of a release that is not the one whose defaults are known."""
        known = self._preset.version
        if version is None or f"{version.removeprefix('v')}.".startswith(f"{known}."):
            return ""
        if _RELEASE.fullmatch(version) is None:
            message = tr("{version!r:.40} is not a version of {label} such as {known}.").format(
                version=version, label=self.label, known=known
            )
            raise DeploymentError(message, field="runtime_version")
        return tr("{label}’s defaults are those of {known}; {version} may have others.").format(
            label=self.label, known=known, version=version
        )

    def beneath(self, model: Model, deployment: Deployment, machine: Machine) -> Beneath:
        """The plan as it reaches the runtime beneath."""
        preset = self._preset
        stripped = beneath.stripped(deployment)
        changed: dict[str, object] = {}
        words: list[str] = []
        for name, (value, said) in preset.defaults.items():
            if getattr(deployment, name) == getattr(_DEFAULTS, name) and not _stated(
                name, deployment
            ):
                changed[name] = value
                words.append(tr(said))
        if deployment.weight_format == "auto" and not model.is_gguf:
            changed["weight_format"] = loaded(model, self.name).name
        plan = self._slots(stripped.with_(**changed), words)
        context = plan.max_model_len
        if preset.further_cells and context and not plan.n_ctx:
            total = context * min(plan.concurrency, preset.most_slots) + preset.further_cells
            plan = plan.with_(n_ctx=total, max_model_len=None)
            words.append(
                tr("{further_cells} tokens of context beyond what is asked for").format(
                    further_cells=preset.further_cells
                )
            )
        notes = (
            tr("{label}'s defaults: {names} ({source}).").format(
                label=self.label, names=", ".join(words), source=preset.source
            ),
        )
        return Beneath(plan, machine, notes if words else (), context=context)

    def _slots(self, plan: Deployment, words: list[str]) -> Deployment:
        """``plan`` with the slots that this program asks for."""
        preset = self._preset
        wanted = max(plan.concurrency + preset.further_slots, preset.least_slots)
        wanted = min(wanted, preset.most_slots)
        if plan.n_parallel is None and (preset.least_slots or preset.further_slots):
            plan = plan.with_(n_parallel=wanted, kv_unified=plan.kv_unified is not False)
            words.append(
                tr("one slot")
                if wanted == 1
                else tr("{wanted} slots that share one cache").format(wanted=wanted)
            )
        if plan.n_batch is not None and plan.n_ubatch is None and preset.defaults.get("n_batch"):
            plan = plan.with_(n_ubatch=plan.n_batch)
        return plan


def _stated(name: str, deployment: Deployment) -> bool:
    """Whether another field says the same thing."""
    other = {"max_model_len": deployment.n_ctx, "n_ctx": deployment.max_model_len}
    return other.get(name) is not None
