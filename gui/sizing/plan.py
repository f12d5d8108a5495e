"""The plan being edited, and what its controls may offer. Values only; no Qt."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from engine.deployment.spec import Deployment
from engine.devices import catalogue
from engine.errors import DeviceError
from engine.runtimes import foreign, registry
from engine.runtimes.loading import in_words, loaded
from engine.runtimes.own_context import has_own_context
from engine.words import grouped, tr, tr_later

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.devices.device import Machine
    from engine.runtimes.base import Runtime

FIRST_CONTEXT = 8192
"""Context of a fresh plan where the runtime would reserve for all that the model takes: a chat
with a long document; small enough for most cards."""
FIRST_CONCURRENCY = 4
GGUF_RUNTIME = "llama.cpp"


@dataclass(frozen=True, slots=True, eq=False)
class Neighbour:
    """A model that runs beside the planned one, on the same machine."""

    model: Model
    deployment: Deployment
    assumes_context: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """What the user chose: the deployment, where, and beside what."""

    deployment: Deployment
    device: str | None = None
    """A device of the catalogue, memory alone, or a list with counts; None is this computer."""
    host_total_bytes: int | None = None
    """RAM of the machine that ``device`` names; None where it isn't stated."""
    emptied: bool = False
    """Whether to count the device as if nothing else ran on it."""
    assumes_context: bool = False
    """Whether nobody chose the context yet, so that it follows the runtime."""
    beside: tuple[Neighbour, ...] = ()
    """Other models on the same machine. They start before this one, in their order."""

    def with_(self, **changes: Any) -> Plan:
        """A copy with ``changes``."""
        return replace(self, **changes)

    def deploying(self, deployment: Deployment) -> Plan:
        """A copy with ``deployment``; a context that differs in it was chosen."""
        before = (self.deployment.max_model_len, self.deployment.n_ctx)
        kept = before == (deployment.max_model_len, deployment.n_ctx)
        return replace(self, deployment=deployment, assumes_context=self.assumes_context and kept)


def first_plan(runtime: str) -> Plan:
    """The plan of a fresh window."""
    deployment = Deployment(
        runtime=runtime,
        max_model_len=first_context(runtime, None, None),
        concurrency=FIRST_CONCURRENCY,
    )
    return Plan(deployment, assumes_context=True)


def first_context(runtime: str, version: str | None, model: Model | None) -> int | None:
    """What a plan begins with: None for a length of the runtime's own.

    Never what the model takes at most only because nobody said otherwise.
    """
    if has_own_context(runtime, version):
        return None
    most = model.spec.max_position_embeddings if model is not None else None
    return min(FIRST_CONTEXT, most or FIRST_CONTEXT)


def assuming_context(plan: Plan, model: Model | None) -> Plan:
    """The plan with the context that it would begin with."""
    deployment = plan.deployment
    first = first_context(deployment.runtime, deployment.runtime_version, model)
    return plan.with_(
        deployment=deployment.with_(max_model_len=first, n_ctx=None), assumes_context=True
    )


def machine_for(plan: Plan, here: Machine) -> Machine:
    """Where the plan runs: this computer, a list of devices, or one device as often as ranks.

    Where several models share it, as many devices as the largest of them takes.

    Raises:
        DeviceError: no device of that name.
    """
    if plan.device is None:
        return here.emptied() if plan.emptied else here
    ranks = (plan.deployment.ranks, *(other.deployment.ranks for other in plan.beside))
    return catalogue.planned(plan.device, max(ranks), plan.host_total_bytes)


def on_device(plan: Plan, device: str | None) -> Plan:
    """The plan on ``device``, or on this computer; stated RAM stays where it can be meant."""
    kept = plan.host_total_bytes if has_ram_to_state(device) else None
    return plan.with_(device=device, host_total_bytes=kept)


def has_ram_to_state(device: str | None) -> bool:
    """Whether a machine is planned for whose RAM is known only where it is stated."""
    try:
        return device is not None and catalogue.takes_ram(device)
    except DeviceError:
        return False


def adapted(plan: Plan, model: Model) -> tuple[Plan, tuple[str, ...]]:
    """The plan with whatever ``model`` cannot take put back to the default.

    Returns:
        The plan, and one sentence for each change, so that nothing changes silently.
    """
    deployment = plan.deployment
    notes: list[str] = []
    if model.is_gguf and registry.family(deployment.runtime) != GGUF_RUNTIME:
        label = registry.get(GGUF_RUNTIME).label
        notes.append(tr("Runtime set to {runtime}, which reads GGUF files.").format(runtime=label))
        plan = with_runtime(plan, GGUF_RUNTIME, None, model)
        deployment = plan.deployment
    runtime = registry.get(deployment.runtime)
    if deployment.weight_format not in runtime.weight_formats(model):
        auto = _auto_label(runtime, model)
        notes.append(
            tr("{model} can't be loaded as {format}: {default}.").format(
                model=model.id, format=deployment.weight_format, default=auto
            )
        )
        deployment = deployment.with_(weight_format="auto")
    if plan.assumes_context:
        # Not the model's: what is cut for it is said below.
        deployment = assuming_context(plan.with_(deployment=deployment), None).deployment
    longest = model.spec.max_position_embeddings
    if longest and deployment.max_model_len and deployment.max_model_len > longest:
        notes.append(
            tr("Context set to {tokens}, the most this model takes.").format(
                tokens=grouped(longest)
            )
        )
        deployment = deployment.with_(max_model_len=longest)
    return plan.with_(deployment=deployment), tuple(notes)


def with_runtime(plan: Plan, name: str, version: str | None, model: Model | None) -> Plan:
    """The plan on another runtime; choices that the other doesn't know return to its default."""
    runtime = registry.get(name)
    deployment = foreign.without(plan.deployment, name)
    deployment = deployment.with_(runtime=name, runtime_version=version)
    if deployment.kv_cache_dtype not in runtime.kv_cache_dtypes:
        deployment = deployment.with_(kv_cache_dtype="auto")
    if model is not None and deployment.weight_format not in runtime.weight_formats(model):
        deployment = deployment.with_(weight_format="auto")
    plan = plan.with_(deployment=deployment)
    return assuming_context(plan, model) if plan.assumes_context else plan


def runtime_choices() -> tuple[tuple[str, tuple[str, str]], ...]:
    """Every runtime and version whose rules are known, label and (name, version).

    The newest of each come first, so that nobody scrolls past 30 versions of another.
    """
    newest: list[tuple[str, tuple[str, str]]] = []
    older: list[tuple[str, tuple[str, str]]] = []
    for name, runtime in registry.RUNTIMES.items():
        found = [(f"{runtime.label} {short_version(v)}", (name, v)) for v in runtime.versions]
        newest += found[:1]
        older += found[1:]
    return (*newest, *older)


def short_version(version: str) -> str:
    """``0.33`` for ``0.33.0``."""
    return version.removesuffix(".0") if version.count(".") > 1 else version


def format_choices(runtime: Runtime, model: Model) -> tuple[tuple[str, str], ...]:
    """Weight formats that ``runtime`` can load: label and key; as stored first."""
    return tuple(
        (_auto_label(runtime, model) if key == "auto" else format_label(key), key)
        for key in runtime.weight_formats(model)
    )


def _auto_label(runtime: Runtime, model: Model) -> str:
    """What the runtime loads where no format is chosen: ``BF16, as stored``."""
    found = loaded(model, runtime.name)
    return in_words(found, format_label(found.name))


def kv_choices(runtime: Runtime, model: Model, resolved: str) -> tuple[tuple[str, str], ...]:
    """KV cache dtypes of ``runtime``; ``resolved`` is what its default comes to here."""
    own = model.spec.kv_cache_dtype or model.spec.dtype
    auto = format_label(own if resolved == "auto" else resolved)
    offered = [(format_label(key), key) for key in runtime.kv_cache_dtypes if key != "auto"]
    return ((tr("{format}, default").format(format=auto), "auto"), *offered)


_WORDS = {
    "bfloat16": "BF16",
    "float16": "FP16",
    "float32": "FP32",
    "float8_e4m3fn": "FP8 E4M3",
    "mixed": tr_later("Mixed"),
}
_SMALL_WORDS = frozenset({"per", "head"})


def format_label(key: str) -> str:
    """A format or dtype as people write it: ``BF16``, ``FP8 block``, ``AWQ INT4``, ``Q8_0``."""
    if key in _WORDS:
        return tr(_WORDS[key])
    if key != key.lower():
        return key
    if key.lstrip("i").startswith("q") and key.lstrip("i")[1:2].isdigit():
        return key.upper()
    parts = key.replace("_", " ").replace("-", " ").split()
    return " ".join(p.upper() if _is_abbreviation(p) else p for p in parts)


def _is_abbreviation(part: str) -> bool:
    has_digit = any(c.isdigit() for c in part)
    return has_digit or (len(part) <= 4 and part not in _SMALL_WORDS)
