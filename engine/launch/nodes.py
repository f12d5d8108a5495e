"""A plan that outgrows one machine: vLLM over several nodes.

The ranks of one tensor parallel group exchange the results of every layer, those of two pipeline
stages one vector for each token: so a stage lies inside a node, and nodes hold whole stages.

Source:
    vLLM: ``docs/serving/parallelism_scaling.md``; ``vllm/config/parallel.py`` and
    ``vllm/v1/executor/multiproc_executor.py`` of 0.14.0 and 0.33.0 (every node has as many ranks,
    node ``k`` those from ``k × ranks of a node`` on; pull request 23691 brought ``--nnodes``);
    ``vllm/executor/ray_gpu_executor.py`` of 0.6.6 and ``vllm/v1/executor/ray_utils.py`` of 0.33.0
    (workers are sorted by their node, the head's first; a bundle holds one GPU at most).
"""

from __future__ import annotations

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
FLAGS = (
    Flag("distributed_executor_backend", ("--distributed-executor-backend",), TEXT),
    Flag("nnodes", ("--nnodes",), since=_WITHOUT_RAY),
    Flag("node_rank", ("--node-rank",), since=_WITHOUT_RAY),
    Flag("master_addr", ("--master-addr",), TEXT, since=_WITHOUT_RAY),
    Flag("headless", ("--headless",), None, since=_WITHOUT_RAY),
)
"""What only a start over several nodes is given."""
HEAD = "HEAD_ADDRESS"
"""Stands for the address of node 0."""
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


def placed(asked: Asked) -> Placement | None:
    """Where the ranks of a plan lie that outgrows a node; None where no placement is sound."""
    plan = asked.plan
    if not outgrows(asked) or plan.data_parallel_size > 1:
        return None
    return place(plan.tensor_parallel_size, plan.pipeline_parallel_size, asked.node_devices)


def outgrows(asked: Asked) -> bool:
    """Whether the plan has more ranks than a node has devices."""
    vendors = {slot.device.vendor for slot in asked.machine.slots}
    is_spread = asked.plan.runtime == "vllm" and vendors <= _VENDORS
    return is_spread and asked.plan.ranks > asked.node_devices


def remarks(asked: Asked) -> tuple[str, ...]:
    """What has to be known of a plan with more ranks than a node has devices."""
    plan = asked.plan
    if not outgrows(asked):
        return ()
    if plan.data_parallel_size > 1:
        return (
            tr(
                "A start over several nodes is written for one replica alone: plan it with a data "
                "parallel size of 1."
            ),
        )
    found = placed(asked)
    if found is None:
        return (
            tr(
                "A tensor parallel size of {tensor} would cross nodes of {devices} devices, and "
                "send the results of every layer over their network: plan {devices} at most, and "
                "more pipeline stages."
            ).format(tensor=plan.tensor_parallel_size, devices=asked.node_devices),
        )
    spread = tr(
        "The plan’s {ranks} ranks are more than the {devices} devices of a node: it is spread over "
        "{nodes} nodes."
    ).format(ranks=plan.ranks, devices=asked.node_devices, nodes=found.nodes)
    if by_processes(asked):
        return (spread,)
    without = tr("Containers over several nodes are written from vLLM {release} on.")
    return (spread, without.format(release=".".join(map(str, _WITHOUT_RAY))))


def by_processes(asked: Asked) -> bool:
    """Whether the release's own processes span nodes; before it needs a Ray cluster."""
    return asked.version >= _WITHOUT_RAY


def to_fill_in(asked: Asked) -> list[str]:
    """What a form over several nodes leaves to the person who starts it."""
    told = [tr("Put the address of node 0 where {word} stands.").format(word=HEAD)]
    if asked.path:
        told.append(tr("Every node reads the model from the same path."))
    return told


def own(
    asked: Asked, placed: Placement, node: int, *, head: str = HEAD, rank: str = ""
) -> tuple[tuple[str, ...], ...]:
    """What ``vllm serve`` is given on one node beside the plan.

    Args:
        asked: the plan.
        placed: where its ranks lie.
        node: which node, from 0.
        head: what stands for the address of node 0.
        rank: what stands for the number of the node; empty for the number itself.
    """
    values: dict[str, Any] = {
        "nnodes": placed.nodes, "node_rank": rank or node, "master_addr": head,
    }  # fmt: skip
    if node:
        values["headless"] = True  # Node 0 alone answers requests.
    return write(FLAGS, values, asked.version).groups


def form(
    asked: Asked,
    found: Placement,
    groups: Sequence[tuple[str, ...]],
    environment: Mapping[str, str],
    notes: Sequence[str],
) -> Form:
    """The commands for each node.

    Args:
        asked: the plan.
        found: where its ranks lie.
        groups: the command for one machine, its program and model first.
        environment: variables that are set for it.
        notes: what is said above.
    """
    above = shell.remarks([*notes, *to_fill_in(asked)])
    started = _by_processes if by_processes(asked) else _by_ray
    return Form(Kind.MULTI_NODE, "\n".join([*above, *started(asked, found, groups, environment)]))


def _by_processes(
    asked: Asked,
    placed: Placement,
    groups: Sequence[tuple[str, ...]],
    environment: Mapping[str, str],
) -> list[str]:
    lines: list[str] = []
    for node in range(placed.nodes):
        lines += shell.remarks([placed.about(node)])
        lines.append(shell.posix([*groups, *own(asked, placed, node)], environment))
    return lines


def _by_ray(
    asked: Asked,
    placed: Placement,
    groups: Sequence[tuple[str, ...]],
    environment: Mapping[str, str],
) -> list[str]:
    head, other = cluster(placed)
    values = {"distributed_executor_backend": "ray"}
    return [
        *shell.remarks([of_cluster(placed)]),
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


def cluster(placed: Placement) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What makes the cluster: on node 0, and on every other one."""
    devices = ("--num-gpus", str(placed.devices))
    return (
        ("ray", "start", "--head", *devices),
        ("ray", "start", "--address", f"{HEAD}:{_RAY_PORT}", *devices),
    )


def of_cluster(placed: Placement) -> str:
    """Why a node offers Ray so many devices and no more."""
    return tr(
        "--num-gpus {devices} is what places the ranks: Ray fills a node with as many before it "
        "takes the next."
    ).format(devices=placed.devices)
