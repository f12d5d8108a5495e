"""A plan that outgrows one machine: vLLM over several nodes, and the same on Ray Serve LLM.

The ranks of one tensor parallel group exchange the results of every layer, those of two pipeline
stages one vector for each token: so a stage lies inside a node, and nodes hold whole stages.

Source:
    vLLM: ``docs/serving/parallelism_scaling.md``; ``vllm/config/parallel.py`` and
    ``vllm/v1/executor/multiproc_executor.py`` of 0.14.0 and 0.33.0 (every node has as many ranks,
    node ``k`` those from ``k × ranks of a node`` on; pull request 23691 brought ``--nnodes``);
    ``vllm/executor/ray_gpu_executor.py`` of 0.6.6 and ``vllm/v1/executor/ray_utils.py`` of 0.33.0
    (workers are sorted by their node, the head's first; a bundle holds one GPU at most).
    Ray: ``doc/source/serve/llm/user-guides/configuration.md`` and ``cross-node-parallelism.md``;
    ``vllm_models.py`` of 2.48.0 to 2.60.0 (Ray Serve LLM names the back-end itself, and takes
    ``placement_group_config`` since 2.52.0, which asks for vLLM 0.11.0).
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.devices.device import Vendor
from engine.launch import shell
from engine.launch.flags import TEXT, Flag, write
from engine.launch.launch import Form, Kind
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.launch.dialect import Asked

_WITHOUT_RAY = (0, 14)
"""The first release read whose own processes span nodes; 0.11.0 needs Ray for it."""
_ON_RAY_SERVE = (0, 11)
"""The first vLLM beside a Ray whose configuration has placement groups."""
FLAGS = (
    Flag("distributed_executor_backend", ("--distributed-executor-backend",), TEXT),
    Flag("nnodes", ("--nnodes",), since=_WITHOUT_RAY),
    Flag("node_rank", ("--node-rank",), since=_WITHOUT_RAY),
    Flag("master_addr", ("--master-addr",), TEXT, since=_WITHOUT_RAY),
    Flag("headless", ("--headless",), None, since=_WITHOUT_RAY),
)
"""What only a start over several nodes is given."""
_HEAD = "HEAD_ADDRESS"
_RAY_PORT = 6379
"""Where ``ray start --head`` listens unless it is told otherwise."""
_VENDORS = {Vendor.NVIDIA, Vendor.AMD}


@dataclass(frozen=True, slots=True)
class Placement:
    """Which ranks lie on which node."""

    nodes: int
    tensor: int
    """Ranks of one pipeline stage."""
    stages: int
    """Pipeline stages of one node."""

    @property
    def devices(self) -> int:
        """Ranks of one node, each with a device of its own."""
        return self.tensor * self.stages

    def about(self, node: int) -> str:
        """What lies on ``node``, for a person."""
        return tr("Node {node} – ranks: {ranks}; pipeline stages: {stages}").format(
            node=node,
            ranks=_span(node * self.devices, self.devices),
            stages=_span(node * self.stages, self.stages),
        )


def _span(first: int, count: int) -> str:
    return str(first) if count == 1 else f"{first}–{first + count - 1}"


def place(tensor: int, pipeline: int, node_devices: int) -> Placement | None:
    """The fewest nodes that hold ``pipeline`` stages of ``tensor`` ranks, the same number each.

    Returns:
        None where a node has too few devices for one stage.
    """
    # vLLM takes no other split than an even one.
    fitting = [
        n for n in range(1, pipeline + 1) if pipeline % n == 0 and n * tensor <= node_devices
    ]
    if not fitting:
        return None
    return Placement(pipeline // fitting[-1], tensor, fitting[-1])


def _placed(asked: Asked) -> Placement | None:
    plan = asked.plan
    if not _outgrows(asked) or plan.data_parallel_size > 1:
        return None
    return place(plan.tensor_parallel_size, plan.pipeline_parallel_size, asked.node_devices)


def _outgrows(asked: Asked) -> bool:
    vendors = {slot.device.vendor for slot in asked.machine.slots}
    is_spread = asked.plan.runtime == "vllm" and vendors <= _VENDORS
    return is_spread and asked.plan.ranks > asked.node_devices


def remarks(asked: Asked) -> tuple[str, ...]:
    """What has to be known of a plan with more ranks than a node has devices."""
    plan = asked.plan
    if not _outgrows(asked):
        return ()
    if plan.data_parallel_size > 1:
        return (
            tr(
                "A start over several nodes is written for one replica alone: plan it with a data "
                "parallel size of 1."
            ),
        )
    placed = _placed(asked)
    if placed is None:
        return (
            tr(
                "A tensor parallel size of {tensor} would cross nodes of {devices} devices, and "
                "send the results of every layer over their network: plan {devices} at most, and "
                "more pipeline stages."
            ).format(tensor=plan.tensor_parallel_size, devices=asked.node_devices),
        )
    return (
        tr(
            "The plan’s {ranks} ranks are more than the {devices} devices of a node: its forms for "
            "several nodes spread it over {nodes}."
        ).format(ranks=plan.ranks, devices=asked.node_devices, nodes=placed.nodes),
    )


def forms(
    asked: Asked,
    model: str,
    groups: Sequence[tuple[str, ...]],
    environment: Mapping[str, str],
    notes: Sequence[str],
) -> tuple[Form, ...]:
    """The plan over several nodes; none where it fits one, or where no placement is sound.

    Args:
        asked: the plan.
        model: what the runtime finds the model by.
        groups: the command for one machine, its program and model first.
        environment: variables that are set for it.
        notes: what is said above each form.
    """
    placed = _placed(asked)
    if placed is None:
        return ()
    told = [*notes, tr("Put the address of node 0 where {word} stands.").format(word=_HEAD)]
    if asked.path:
        told.append(tr("Every node reads the model from the same path."))
    above = shell.remarks(told)
    started = _by_ray if asked.version < _WITHOUT_RAY else _by_processes
    lines = [*above, *started(asked, placed, groups, environment)]
    made = [Form(Kind.MULTI_NODE, "\n".join(lines))]
    if asked.version >= _ON_RAY_SERVE:
        config = _config(asked, model, placed, groups[1:], environment)
        served = [*above, *_before_serving(placed), *config]
        made.append(Form(Kind.RAY_SERVE, "\n".join(served)))
    return tuple(made)


def _by_processes(
    asked: Asked,
    placed: Placement,
    groups: Sequence[tuple[str, ...]],
    environment: Mapping[str, str],
) -> list[str]:
    lines: list[str] = []
    for node in range(placed.nodes):
        values: dict[str, Any] = {"nnodes": placed.nodes, "node_rank": node, "master_addr": _HEAD}
        if node:
            values["headless"] = True  # Node 0 alone answers requests.
        own = write(FLAGS, values, asked.version).groups
        lines += shell.remarks([placed.about(node)])
        lines.append(shell.posix([*groups, *own], environment))
    return lines


def _by_ray(
    asked: Asked,
    placed: Placement,
    groups: Sequence[tuple[str, ...]],
    environment: Mapping[str, str],
) -> list[str]:
    head, other = _cluster(placed)
    values = {"distributed_executor_backend": "ray"}
    return [
        *shell.remarks([_of_cluster(placed)]),
        *shell.remarks([placed.about(0)]),
        shell.posix([head], environment),
        *(
            line
            for node in range(1, placed.nodes)
            for line in (*shell.remarks([placed.about(node)]), shell.posix([other], environment))
        ),
        *shell.remarks([tr("Then on node 0:")]),
        shell.posix([*groups, *write(FLAGS, values, asked.version).groups], environment),
    ]


def _cluster(placed: Placement) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What makes the cluster: on node 0, and on every other one."""
    devices = ("--num-gpus", str(placed.devices))
    return (
        ("ray", "start", "--head", *devices),
        ("ray", "start", "--address", f"{_HEAD}:{_RAY_PORT}", *devices),
    )


def _of_cluster(placed: Placement) -> str:
    return tr(
        "--num-gpus {devices} is what places the ranks: Ray fills a node with as many before it "
        "takes the next."
    ).format(devices=placed.devices)


def _before_serving(placed: Placement) -> list[str]:
    """How the cluster is made and the file is served, as comments of the file."""
    head, other = (shell.posix([words], {}) for words in _cluster(placed))
    told = [
        _of_cluster(placed),
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
