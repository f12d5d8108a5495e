"""The same start in a container: Docker, Compose and Kubernetes, with the devices it takes.

Source:
    docs.vllm.ai deployment/docker; SGLang ``docs/get-started/install.mdx``; llama.cpp
    ``docs/docker.md``.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from engine.devices.device import Vendor
from engine.launch import shell
from engine.launch.launch import Form, Kind
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.devices.device import Machine
    from engine.launch.dialect import Asked

_CACHE = "/hub"
"""Where the container keeps what it fetches from the Hub."""
_MODELS = "/models"
_RESOURCES = {Vendor.NVIDIA: "nvidia.com/gpu", Vendor.AMD: "amd.com/gpu"}
_AMD_DEVICES = ("/dev/kfd", "/dev/dri")
_FIRST_SGLANG_IMAGE = (0, 5)


@dataclass(frozen=True, slots=True)
class Image:
    """What runs in the container."""

    name: str
    port: int
    cache: str = "HF_HOME"
    """The variable that says where fetched files are kept."""
    before: tuple[str, ...] = ()
    """Words between the image and the flags."""
    after: tuple[str, ...] = ()
    """Words behind the flags."""
    note: str = ""
    is_one_process: bool = False
    """Whether its devices are driven by one process, which shares no memory with others."""

    def shares_memory(self, devices: int) -> bool:
        """Whether ranks talk through the host's shared memory, of which a container has little."""
        return devices > 1 and not self.is_one_process


@dataclass(frozen=True, slots=True)
class Packed:
    """A container of one plan."""

    image: Image
    arguments: tuple[tuple[str, ...], ...]
    environment: dict[str, str]
    vendor: Vendor
    devices: int
    """0 where it computes on the CPU."""
    folder: str
    """Folder with the model's file; empty for one that is fetched from the Hub."""
    uses_all: bool


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
    made = [Form(Kind.DOCKER, _with(said, _docker(packed)))]
    made.append(Form(Kind.COMPOSE, _with(said, _compose(packed, asked.plan.runtime))))
    if packed.vendor in _RESOURCES:
        made.append(Form(Kind.KUBERNETES, _with(said, _kubernetes(packed, asked.plan.runtime))))
    return tuple(made)


def _with(notes: Sequence[str], text: str) -> str:
    return "\n".join([*shell.remarks(notes), text])


def pack(
    asked: Asked,
    model: str,
    groups: Sequence[tuple[str, ...]],
    environment: Mapping[str, str],
) -> Packed | None:
    """The container for a command; None where there is none.

    Args:
        asked: the plan.
        model: what stands for the model in ``groups``.
        groups: the flags of the command, without its program; the model among them.
        environment: variables that are set for it.
    """
    vendors = {slot.device.vendor for slot in asked.machine.slots}
    image = _image(asked, vendors) if len(vendors) == 1 else None
    if image is None:
        return None
    vendor = next(iter(vendors))
    folder = ""
    if asked.path or model.endswith(".gguf"):
        path = PurePath(model)
        folder = str(path.parent) if len(path.parts) > 1 else "."
        groups = [tuple(_inside(word, model, path) for word in group) for group in groups]
    count = 0 if vendor is Vendor.CPU else _count(asked)
    return Packed(
        image, tuple(groups), dict(environment), vendor, count, folder,
        uses_all=count == len(asked.machine.slots),
    )  # fmt: skip


def _inside(word: str, model: str, path: PurePath) -> str:
    return f"{_MODELS}/{path.name}" if word == model else word


def _count(asked: Asked) -> int:
    plan, there = asked.plan, len(asked.machine.slots)
    if plan.runtime == "llama.cpp":
        return there
    return min(plan.ranks * plan.data_parallel_size, there)


def _image(asked: Asked, vendors: set[Vendor]) -> Image | None:
    version = ".".join(map(str, asked.version))
    on_nvidia = vendors == {Vendor.NVIDIA}
    match asked.plan.runtime:
        case "vllm" if on_nvidia:
            return Image(f"vllm/vllm-openai:v{version}", 8000)
        case "sglang" if on_nvidia and asked.version >= _FIRST_SGLANG_IMAGE:
            return Image(
                f"lmsysorg/sglang:v{version}", 30000,
                before=("python3", "-m", "sglang.launch_server"),
                after=("--host", "0.0.0.0", "--port", "30000"),  # noqa: S104 - inside a container
            )  # fmt: skip
        case "llama.cpp":
            return _llama_image(asked.machine)
        case _:
            return None


def _llama_image(machine: Machine) -> Image | None:
    builds = {Vendor.NVIDIA: "server-cuda", Vendor.AMD: "server-rocm", Vendor.CPU: "server"}
    build = builds.get(machine.slots[0].device.vendor)
    if build is None:
        return None
    note = tr("The image is llama.cpp’s newest build; pin one by its tag.")
    return Image(
        f"ghcr.io/ggml-org/llama.cpp:{build}", 8080, "LLAMA_CACHE", note=note, is_one_process=True
    )


def _docker(packed: Packed) -> str:
    options: list[tuple[str, ...]] = [("docker", "run", "--rm")]
    if packed.vendor is Vendor.NVIDIA:
        chosen = ",".join(map(str, range(packed.devices)))
        options.append(("--gpus", "all" if packed.uses_all else f'"device={chosen}"'))
    elif packed.vendor is Vendor.AMD:
        options += [("--device", device) for device in _AMD_DEVICES]
    if packed.image.shares_memory(packed.devices):
        options.append(("--ipc", "host"))
    options.append(("-p", f"{packed.image.port}:{packed.image.port}"))
    options += [("-e", variable) for variable in _said(packed)]
    image = (packed.image.name, *packed.image.before)
    after = [packed.image.after] if packed.image.after else []
    if packed.folder:
        options.append(("-v", f"{_absolute(packed.folder)}:{_MODELS}:ro"))
    else:
        options.append(("-v", f"hugging-face:{_CACHE}"))
    return shell.posix([*options, image, *packed.arguments, *after], {})


def _said(packed: Packed) -> list[str]:
    """Variables as Docker takes them; the token is handed on by its name alone."""
    found = [f"{name}={value}" for name, value in packed.environment.items()]
    return found if packed.folder else [*found, f"{packed.image.cache}={_CACHE}", "HF_TOKEN"]


def _absolute(folder: str) -> str:
    """A folder as Docker tells it from the name of a volume."""
    return folder if PurePath(folder).is_absolute() or folder == "." else f"./{folder}"


def _arguments(packed: Packed) -> list[str]:
    words = [word for group in packed.arguments for word in group]
    return [*packed.image.before, *words, *packed.image.after]


def _compose(packed: Packed, runtime: str) -> str:
    lines = [
        "services:",
        f"  {_label(runtime)}:",
        f"    image: {packed.image.name}",
        "    command:",
    ]
    lines += [f"      - {json.dumps(word)}" for word in _arguments(packed)]
    lines += ["    ports:", f'      - "{packed.image.port}:{packed.image.port}"']
    if variables := _said(packed):
        lines += ["    environment:", *(f"      - {json.dumps(v)}" for v in variables)]
    source = _absolute(packed.folder) if packed.folder else "hugging-face"
    target = f"{_MODELS}:ro" if packed.folder else _CACHE
    lines += ["    volumes:", f"      - {json.dumps(f'{source}:{target}')}"]
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
        lines += ["    devices:", *(f"      - {device}" for device in _AMD_DEVICES)]
    if not packed.folder:
        lines += ["volumes:", "  hugging-face: {}"]
    return "\n".join(lines)


def _kubernetes(packed: Packed, runtime: str) -> str:
    name = _label(runtime)
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
        "    spec:",
        "      containers:",
        f"        - name: {name}",
        f"          image: {packed.image.name}",
    ]
    lines += (
        [f"          command: {json.dumps(packed.image.before)}"] if packed.image.before else []
    )
    words = [word for group in packed.arguments for word in group]
    lines.append("          args:")
    lines += [f"            - {json.dumps(word)}" for word in (*words, *packed.image.after)]
    lines += ["          ports:", f"            - containerPort: {packed.image.port}"]
    lines += [*_variables(packed)]
    resource = _RESOURCES[packed.vendor]
    lines += [
        "          resources:",
        "            limits:",
        f"              {resource}: {packed.devices}",
    ]
    return "\n".join([*lines, *_volumes(packed)])


def _variables(packed: Packed) -> list[str]:
    lines: list[str] = []
    fetched = {} if packed.folder else {packed.image.cache: _CACHE}
    for name, value in (packed.environment | fetched).items():
        lines += [f"            - name: {name}", f"              value: {json.dumps(value)}"]
    if not packed.folder:
        lines += [
            "            - name: HF_TOKEN",
            "              valueFrom:",
            "                secretKeyRef: {name: hugging-face, key: token, optional: true}",
        ]
    return ["          env:", *lines] if lines else []


def _volumes(packed: Packed) -> list[str]:
    """The model's files, and the shared memory by which several ranks talk."""
    mounts = [("models", _MODELS if packed.folder else _CACHE)]
    mounts += [("shared-memory", "/dev/shm")] if packed.image.shares_memory(packed.devices) else []  # noqa: S108 - a mount point
    lines = ["          volumeMounts:"]
    lines += [f"            - {{name: {name}, mountPath: {path}}}" for name, path in mounts]
    lines += ["      volumes:", "        - name: models"]
    claim = "          persistentVolumeClaim: {claimName: models}"
    lines.append(claim if packed.folder else "          emptyDir: {}")
    if packed.image.shares_memory(packed.devices):
        lines += ["        - name: shared-memory", "          emptyDir: {medium: Memory}"]
    return lines


def _label(runtime: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", runtime)
