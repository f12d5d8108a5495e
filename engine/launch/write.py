"""From a plan and its answer to the text that starts it."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from engine.launch import (
    containers,
    dialects,
    front_ends,
    mlx,
    nodes,
    notes,
    ollama,
    ray_serve,
    shell,
    transformers,
)
from engine.launch.dialect import NODE_DEVICES, Asked
from engine.launch.flags import write
from engine.launch.launch import Form, Kind, Launch
from engine.runtimes import registry
from engine.runtimes.platforms import platform_of
from engine.text import printable
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.deployment.spec import Deployment
    from engine.launch.dialect import Dialect, Spoken
    from engine.sizing import Sizing


def launch(
    sizing: Sizing,
    plan: Deployment | None = None,
    path: str = "",
    *,
    capacity_known: bool = True,
    node_devices: int = NODE_DEVICES,
) -> Launch:
    """How the plan behind ``sizing`` is started.

    Args:
        sizing: the answer to the plan.
        plan: the plan as it was asked for, so that no flag states a default; None takes the
            budget's own.
        path: where the model lies on a disk; empty for one of the Hub.
        capacity_known: whether the device is; else nothing is said of whether it fits.
        node_devices: devices of one node, for a plan that takes more than one has.

    Raises:
        DeploymentError: a release that is none.
    """
    budget = sizing.budget
    plan = plan or budget.deployment
    dialect = dialects.of(plan.runtime)
    known = notes.of(sizing, plan, capacity_known=capacity_known)
    if dialect is None:
        return _settings(sizing, plan, path, known)
    stated = plan.runtime_version or budget.deployment.runtime_version
    release = dialect.version(stated)
    asked = Asked(budget.model, plan, budget.machine, release, _loadable(path), node_devices)
    return Writer(dialect, asked, known).launch()


def _loadable(path: str) -> str:
    """What a runtime loads where ``path`` is one of the files of a model's folder."""
    if path.lower().endswith((".json", ".safetensors")):
        return str(PurePath(path).parent)
    return path


def _label(plan: Deployment, release: str) -> str:
    return f"{registry.get(plan.runtime).label} {release}".rstrip()


class Writer:
    """Writes one plan; ``known`` is said before all that the runtime itself gives cause to say."""

    def __init__(self, dialect: Dialect, asked: Asked, known: Sequence[str]) -> None:
        self.dialect, self.asked = dialect, asked
        self.spoken: Spoken = dialect.speak(asked)
        self.model = printable(self.spoken.model, 1000)
        start = "b" if asked.plan.runtime == "llama.cpp" else ""
        self.label = _label(asked.plan, start + ".".join(map(str, asked.version)))
        variables = write(dialect.environment, self.spoken.values, asked.version)
        self.environment = {group[0]: group[1] for group in variables.groups}
        self._known = known

    def launch(self) -> Launch:
        """The plan in the forms of its runtime."""
        runtime = self.asked.plan.runtime
        if runtime == "ollama":
            return self._ollama()
        if runtime == "transformers":
            return self._transformers()
        spoken, release = self.spoken, self.asked.version
        found = write(self.dialect.flags, spoken.values, release)
        rest = [name for name in found.unsaid if not self._is_variable(name)]
        told = self._notes(rest)
        head: tuple[str, ...] = self.dialect.program
        if runtime == "mlx" and mlx.generates(spoken.values, release):
            head = mlx.GENERATE
            told = (*told, tr("Put your prompt into --prompt."))
        first = (*head, self.model) if runtime == "vllm" else head
        groups = [first, *found.groups]
        text = "\n".join([*shell.remarks(told), self._command(groups)])
        boxed = containers.forms(self.asked, self.model, found.groups, self.environment, told)
        # No machine could run the one command of a plan that is spread over several.
        spread = self._over_nodes(groups, told)
        first, *served = spread or (Form(Kind.COMMAND, text),)
        return self._made((first, *boxed, *served), told, rest, () if spread else groups)

    def _over_nodes(
        self, groups: Sequence[tuple[str, ...]], told: Sequence[str]
    ) -> tuple[Form, ...]:
        placed = nodes.placed(self.asked)
        if placed is None:
            return ()
        each = nodes.form(self.asked, placed, groups, self.environment, told)
        served = ray_serve.form(self.asked, placed, self.model, groups[1:], self.environment, told)
        return (each,) if served is None else (each, served)

    def _command(self, groups: Sequence[tuple[str, ...]]) -> str:
        on_windows = platform_of(self.asked.plan, self.asked.machine) == "windows"
        written = shell.powershell if on_windows else shell.posix
        return written(groups, self.environment)

    def _is_variable(self, setting: str) -> bool:
        return any(flag.setting == setting for flag in self.dialect.environment)

    def _notes(self, unsaid: Sequence[str]) -> tuple[str, ...]:
        told = [*self._known, *self.spoken.remarks]
        told += [self._unsaid(name) for name in unsaid]
        told += nodes.remarks(self.asked)
        return tuple(printable(sentence, 600) for sentence in told)

    def _unsaid(self, name: str) -> str:
        value = self.spoken.values[name]
        return tr("{label} has no flag for {name} {value}: set it in another way.").format(
            label=self.label, name=name, value=value
        )

    def _made(
        self,
        forms: tuple[Form, ...],
        told: Sequence[str],
        unsaid: Sequence[str],
        groups: Sequence[tuple[str, ...]],
    ) -> Launch:
        return Launch(
            runtime=self.asked.plan.runtime,
            label=self.label,
            model=self.model,
            words=tuple(word for group in groups for word in group),
            environment=self.environment,
            forms=forms,
            notes=tuple(told),
            unsaid={name: self._unsaid(name) for name in unsaid},
        )

    def _ollama(self) -> Launch:
        values = self.spoken.values
        lines = write(ollama.PARAMETERS, values, self.asked.version)
        names = {flag.setting for flag in (*ollama.PARAMETERS, *ollama.ENVIRONMENT)}
        unsaid = [name for name in values if name not in names]
        # The context is a parameter of the model; the server's variable is for other ones.
        self.environment.pop("OLLAMA_CONTEXT_LENGTH", None)
        told = self._notes(unsaid)
        file = [
            f"FROM {self.model}",
            *(f"PARAMETER {name} {value}" for name, value in lines.groups),
        ]
        serve = self._command([self.dialect.program])
        steps = [
            *shell.remarks(told),
            serve,
            *shell.remarks([tr("In another terminal, beside the Modelfile:")]),
            "ollama create plan -f Modelfile",
            "ollama run plan",
        ]
        forms = (
            Form(Kind.COMMAND, "\n".join(steps)),
            Form(Kind.MODELFILE, "\n".join([*shell.remarks(told), *file])),
        )
        return self._made(forms, told, unsaid, [self.dialect.program])

    def _transformers(self) -> Launch:
        text, unsaid = transformers.snippet(self.spoken, self.asked.version)
        told = self._notes(unsaid)
        form = Form(Kind.PYTHON, "\n".join([*shell.remarks(told), text]))
        return self._made((form,), told, unsaid, [])


def _settings(sizing: Sizing, plan: Deployment, path: str, known: Sequence[str]) -> Launch:
    budget = sizing.budget
    model, rows = front_ends.settings(budget.model, plan, budget.machine, path)
    label = _label(plan, plan.runtime_version or "")
    told = (
        *known,
        tr("{label} takes these in its own window or options.").format(label=label),
    )
    clean = tuple(printable(sentence, 600) for sentence in told)
    text = "\n".join([*shell.remarks(clean), *(f"{name}: {value}" for name, value in rows)])
    return Launch(
        runtime=plan.runtime,
        label=label,
        model=model,
        words=(),
        environment={},
        forms=(Form(Kind.SETTINGS, text),),
        notes=clean,
        unsaid={},
    )
