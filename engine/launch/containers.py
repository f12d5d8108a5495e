"""The same start in a container: Docker, Compose and Kubernetes, with the devices it takes.

A plan over several nodes has a container on each: a command or a service for every node, and in
Kubernetes a LeaderWorkerSet.

Source:
    vLLM ``docs/deployment/frameworks/lws.md`` and ``docs/serving/parallelism_scaling.md``;
    kubernetes-sigs/lws ``docs/reference/leaderworkerset.v1.md``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.launch import docker, kubernetes, nodes, shell
from engine.launch.launch import Form, Kind
from engine.launch.packed import pack
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.launch.dialect import Asked
    from engine.launch.nodes import Placement
    from engine.launch.packed import Packed


def forms(
    asked: Asked,
    model: str,
    groups: Sequence[tuple[str, ...]],
    environment: Mapping[str, str],
    notes: Sequence[str],
) -> tuple[Form, ...]:
    """Every container form that is known to work; none where there is no image for the device."""
    packed = pack(asked, model, groups, environment)
    if packed is None:
        return ()
    said = (*notes, packed.image.note) if packed.image.note else tuple(notes)
    if nodes.outgrows(asked):
        placed = nodes.placed(asked)
        has_own = placed is not None and nodes.by_processes(asked)
        return _of_nodes(asked, placed, packed, said) if placed and has_own else ()
    runtime = asked.plan.runtime
    made = [_form(Kind.DOCKER, said, docker.command(packed))]
    made.append(_form(Kind.COMPOSE, said, docker.compose({docker.label(runtime): packed})))
    if packed.vendor in kubernetes.RESOURCES:
        made.append(_form(Kind.KUBERNETES, said, kubernetes.deployment(packed, runtime)))
    return tuple(made)


def _of_nodes(
    asked: Asked, placed: Placement, packed: Packed, notes: Sequence[str]
) -> tuple[Form, ...]:
    uses_all = placed.devices == asked.node_devices
    packed = packed.on_each(placed.devices, uses_all=uses_all)
    each = [packed.with_words(*nodes.own(asked, placed, node)) for node in range(placed.nodes)]
    told = [*notes, *nodes.to_fill_in(asked)]
    commands = [
        line
        for node, one in enumerate(each)
        for line in (*shell.remarks([placed.about(node)]), docker.command(one))
    ]
    services = {f"node-{node}": one for node, one in enumerate(each)}
    alone = tr("On each node, start its own service alone: {command} on the first.").format(
        command="docker compose up node-0"
    )
    needs = [tr("The cluster needs the LeaderWorkerSet controller: lws.sigs.k8s.io.")]
    if asked.path:
        needs.append(tr("The claim “models” has to be one that several nodes may read."))
    return (
        _form(Kind.DOCKER, told, "\n".join(commands)),
        _form(Kind.COMPOSE, [*told, alone], docker.compose(services)),
        _form(
            Kind.KUBERNETES, [*notes, *needs], kubernetes.leader_worker_set(asked, placed, packed)
        ),
    )


def _form(kind: Kind, notes: Sequence[str], text: str) -> Form:
    return Form(kind, "\n".join([*shell.remarks(notes), text]))
