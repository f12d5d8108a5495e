"""Containers as Kubernetes starts them: a Deployment, and a LeaderWorkerSet over several nodes.

Source:
    kubernetes-sigs/lws ``docs/reference/leaderworkerset.v1.md`` (``size`` counts the leader) and
    ``docs/reference/labels-annotations-and-environment-variables.md``; vLLM
    ``docs/deployment/frameworks/lws.md`` (``LWS_LEADER_ADDRESS``, ``LWS_WORKER_INDEX``).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from engine.devices.device import Vendor
from engine.launch import nodes
from engine.launch.docker import label
from engine.launch.packed import CACHE, MODELS

if TYPE_CHECKING:
    from engine.launch.dialect import Asked
    from engine.launch.nodes import Placement
    from engine.launch.packed import Packed

RESOURCES = {Vendor.NVIDIA: "nvidia.com/gpu", Vendor.AMD: "amd.com/gpu"}
_LEADER = "$(LWS_LEADER_ADDRESS)"
_INDEX = "$(LWS_WORKER_INDEX)"
_OF_A_GROUP = (_LEADER, _INDEX)
"""Variables that the set gives each of its pods."""


def deployment(packed: Packed, runtime: str) -> str:
    """One pod with all devices."""
    name = label(runtime)
    lines = [
        "apiVersion: apps/v1",
        "kind: Deployment",
        "metadata:",
        f"  name: {name}",
        "spec:",
        "  replicas: 1",
        "  selector:",
        f"    matchLabels: {{app: {name}}}",
        "  template:",
        "    metadata:",
        f"      labels: {{app: {name}}}",
        *_indented(_pod(packed, name), 4),
    ]
    return "\n".join(lines)


def leader_worker_set(asked: Asked, placed: Placement, packed: Packed) -> str:
    """One pod for each node: the leader answers requests, the others compute with it."""
    name = label(asked.plan.runtime)
    leader = packed.with_words(*nodes.own(asked, placed, 0, head=_LEADER))
    worker = packed.with_words(*nodes.own(asked, placed, 1, head=_LEADER, rank=_INDEX))
    lines = [
        "apiVersion: leaderworkerset.x-k8s.io/v1",
        "kind: LeaderWorkerSet",
        "metadata:",
        f"  name: {name}",
        "spec:",
        "  replicas: 1",
        "  leaderWorkerTemplate:",
        f"    size: {placed.nodes}",
        "    restartPolicy: RecreateGroupOnPodRestart",
        f"    # {placed.about(0)}",
        "    leaderTemplate:",
        "      metadata:",
        f"        labels: {{app: {name}}}",
        *_indented(_pod(leader, name), 6),
        *(f"    # {placed.about(node)}" for node in range(1, placed.nodes)),
        "    workerTemplate:",
        *_indented(_pod(worker, name, answers=False), 6),
    ]
    return "\n".join(lines)


def _indented(lines: list[str], by: int) -> list[str]:
    return [" " * by + line for line in lines]


def _quoted(word: str) -> str:
    """A word of a pod, where ``$(NAME)`` stands for a variable."""
    return json.dumps(word if word in _OF_A_GROUP else word.replace("$(", "$$("))


def _pod(packed: Packed, name: str, *, answers: bool = True) -> list[str]:
    image = packed.image
    lines = ["spec:", "  containers:", f"    - name: {name}", f"      image: {image.name}"]
    if image.before:
        lines.append(f"      command: {json.dumps(image.before)}")
    lines.append("      args:")
    lines += [f"        - {_quoted(word)}" for word in packed.words[len(image.before) :]]
    if answers:
        lines += ["      ports:", f"        - containerPort: {image.port}"]
    lines += _variables(packed)
    lines += [
        "      resources:",
        "        limits:",
        f"          {RESOURCES[packed.vendor]}: {packed.devices}",
    ]
    return [*lines, *_volumes(packed)]


def _variables(packed: Packed) -> list[str]:
    lines: list[str] = []
    fetched = {} if packed.folder else {packed.image.cache: CACHE}
    for name, value in (packed.environment | fetched).items():
        lines += [f"        - name: {name}", f"          value: {_quoted(value)}"]
    if not packed.folder:
        lines += [
            "        - name: HF_TOKEN",
            "          valueFrom:",
            "            secretKeyRef: {name: hugging-face, key: token, optional: true}",
        ]
    return ["      env:", *lines] if lines else []


def _volumes(packed: Packed) -> list[str]:
    """The model's files, and the shared memory by which several ranks talk."""
    mounts = [("models", MODELS if packed.folder else CACHE)]
    mounts += [("shared-memory", "/dev/shm")] if packed.image.shares_memory(packed.devices) else []  # noqa: S108 - a mount point
    lines = ["      volumeMounts:"]
    lines += [f"        - {{name: {name}, mountPath: {path}}}" for name, path in mounts]
    lines += ["  volumes:", "    - name: models"]
    claim = "      persistentVolumeClaim: {claimName: models}"
    lines.append(claim if packed.folder else "      emptyDir: {}")
    if packed.image.shares_memory(packed.devices):
        lines += ["    - name: shared-memory", "      emptyDir: {medium: Memory}"]
    return lines
