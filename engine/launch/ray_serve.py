"""A plan over several nodes as a file for Ray Serve LLM.

Source:
    Ray: ``doc/source/serve/llm/user-guides/configuration.md`` and ``cross-node-parallelism.md``;
    ``vllm_models.py`` of 2.48.0 to 2.60.0 (Ray Serve LLM names the back-end itself, and takes
    ``placement_group_config`` since 2.52.0, which asks for vLLM 0.11.0).
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from engine.launch import nodes, shell
from engine.launch.launch import Form, Kind
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.launch.dialect import Asked
    from engine.launch.nodes import Placement

_SINCE = (0, 11)
"""The first vLLM beside a Ray whose configuration has placement groups."""


def form(
    asked: Asked,
    placed: Placement,
    model: str,
    flags: Sequence[tuple[str, ...]],
    environment: Mapping[str, str],
    notes: Sequence[str],
) -> Form | None:
    """The file for ``serve run``; None where no Ray has its placement for the release.

    Args:
        asked: the plan.
        placed: where its ranks lie.
        model: what the runtime finds the model by.
        flags: those of the command for one machine.
        environment: variables that are set for it.
        notes: what is said above.
    """
    if asked.version < _SINCE:
        return None
    above = shell.remarks([*notes, *nodes.to_fill_in(asked)])
    config = _config(asked, model, placed, flags, environment)
    return Form(Kind.RAY_SERVE, "\n".join([*above, *_before_serving(placed), *config]))


def _before_serving(placed: Placement) -> list[str]:
    """How the cluster is made and the file is served, as comments of the file."""
    head, other = (shell.posix([words], {}) for words in nodes.cluster(placed))
    told = [
        nodes.of_cluster(placed),
        tr("Ray takes this file, as plan.yaml, from release {release} on.").format(release="2.52"),
        tr("On node 0, then on every other node, then on node 0 again:"),
    ]
    return [
        *shell.remarks(told),
        f"#   {head}",
        f"#   {other}",
        "#   serve run plan.yaml",
    ]


def _config(
    asked: Asked,
    model: str,
    placed: Placement,
    flags: Sequence[tuple[str, ...]],
    environment: Mapping[str, str],
) -> list[str]:
    """The file for ``serve run``; every value is written as JSON, which YAML reads too."""
    source = [f"            model_source: {json.dumps(model)}"] if asked.path else []
    lines = [
        "applications:",
        "  - name: plan",
        '    route_prefix: "/"',
        "    import_path: ray.serve.llm:build_openai_app",
        "    args:",
        "      llm_configs:",
        "        - model_loading_config:",
        f"            model_id: {json.dumps(asked.model.id)}",
        *source,
        "          engine_kwargs:",
        *(
            f"            {setting}: {json.dumps(value)}"
            for setting, value in map(_argument, flags)
        ),
        "          placement_group_config:",
        "            strategy: PACK",
        "            bundles:",
    ]
    for node in range(placed.nodes):
        lines.append(f"              # {placed.about(node)}")
        lines += ["              - {CPU: 1, GPU: 1}"] * placed.devices
    again = tr("Each further replica takes as many nodes again.")
    lines += [
        "          deployment_config:",
        f"            # {again}",
        "            num_replicas: 1",
    ]
    if environment:
        lines += [
            "          runtime_env:",
            f"            env_vars: {json.dumps(dict(environment))}",
        ]
    return lines


def _argument(group: tuple[str, ...]) -> tuple[str, Any]:
    """A flag as the argument of vLLM's engine that it sets: they share their names."""
    name = group[0].removeprefix("--").replace("-", "_")
    if len(group) == 1:
        return name.removeprefix("no_"), not name.startswith("no_")
    value: Any = group[1]
    with suppress(ValueError):
        value = json.loads(group[1])
    return name, value
