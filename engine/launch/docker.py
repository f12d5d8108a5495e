"""Containers as Docker and Compose start them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from engine.devices.device import Vendor
from engine.launch import shell
from engine.launch.packed import AMD_DEVICES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.launch.packed import Packed


def label(runtime: str) -> str:
    """A runtime's name as Compose and Kubernetes take one."""
    return re.sub(r"[^a-z0-9]+", "-", runtime)


def command(packed: Packed) -> str:
    """``docker run``."""
    options: list[tuple[str, ...]] = [("docker", "run", "--rm")]
    if packed.vendor is Vendor.NVIDIA:
        chosen = ",".join(map(str, range(packed.devices)))
        options.append(("--gpus", "all" if packed.uses_all else f'"device={chosen}"'))
    elif packed.vendor is Vendor.AMD:
        options += [("--device", device) for device in AMD_DEVICES]
    if packed.image.shares_memory(packed.devices):
        options.append(("--ipc", "host"))
    if packed.on_its_hosts_network:
        options.append(("--network", "host"))
    else:
        options.append(("-p", f"{packed.image.port}:{packed.image.port}"))
    options += [("-e", variable) for variable in packed.variables]
    options.append(("-v", packed.volume))
    image = (packed.image.name, *packed.image.before)
    after = [packed.image.after] if packed.image.after else []
    return shell.posix([*options, image, *packed.arguments, *after], {})


def compose(services: Mapping[str, Packed]) -> str:
    """A Compose file; its services share one volume."""
    lines = ["services:"]
    for name, packed in services.items():
        lines += [f"  {name}:", *_service(packed)]
    if not all(packed.folder for packed in services.values()):
        lines += ["volumes:", "  hugging-face: {}"]
    return "\n".join(lines)


def _quoted(word: str) -> str:
    """A word in a Compose file, where a dollar sign stands for a variable."""
    return json.dumps(word.replace("$", "$$"))


def _service(packed: Packed) -> list[str]:
    lines = [f"    image: {packed.image.name}", "    command:"]
    lines += [f"      - {_quoted(word)}" for word in packed.words]
    if packed.on_its_hosts_network:
        lines.append("    network_mode: host")
    else:
        lines += ["    ports:", f'      - "{packed.image.port}:{packed.image.port}"']
    if packed.variables:
        lines += ["    environment:", *(f"      - {_quoted(v)}" for v in packed.variables)]
    lines += ["    volumes:", f"      - {_quoted(packed.volume)}"]
    if packed.image.shares_memory(packed.devices):
        lines.append("    ipc: host")
    if packed.vendor is Vendor.NVIDIA:
        lines += [
            "    deploy:",
            "      resources:",
            "        reservations:",
            "          devices:",
            "            - driver: nvidia",
            f"              count: {packed.devices}",
            "              capabilities: [gpu]",
        ]
    elif packed.vendor is Vendor.AMD:
        lines += ["    devices:", *(f"      - {device}" for device in AMD_DEVICES)]
    return lines
