"""Plans written as commands, without a budget: so that any plan can be, also one that can't run."""

from __future__ import annotations

from functools import cache

from engine.architecture.read import read
from engine.deployment.spec import Deployment
from engine.devices import catalogue as devices
from engine.launch import dialects
from engine.launch.dialect import NODE_DEVICES, Asked
from engine.launch.write import Writer
from engine.source import catalogue

QWEN = "Qwen/Qwen3-8B"
"""Stored in BF16, not gated, 36 layers."""


@cache
def model(name=QWEN):
    return read(catalogue.raw(catalogue.find(name)))


def machine(gpu="H100 SXM 80GB", count=64):
    return devices.machine(devices.find(gpu), count)


def written(
    runtime, *, gpu="H100 SXM 80GB", count=64, path="", name=QWEN, node_devices=NODE_DEVICES,
    **settings,
):  # fmt: skip
    """The launch of a plan for ``runtime``."""
    plan = Deployment(runtime=runtime, **settings)
    dialect = dialects.of(runtime)
    release = dialect.version(plan.runtime_version)
    asked = Asked(model(name), plan, machine(gpu, count), release, path, node_devices)
    return Writer(dialect, asked, ()).launch()


def text(launch, kind="command"):
    """One form of it."""
    return next(form.text for form in launch.forms if form.kind == kind)


def bare(launch, kind="command"):
    """The same without remarks."""
    lines = text(launch, kind).splitlines()
    return "\n".join(line for line in lines if not line.startswith("#"))
