"""A start in a container: its image, its arguments and its devices.

Over several nodes each has a container of its own, with its share of the devices and the host's
network, since the ranks meet on ports that nobody knows beforehand.

Source:
    docs.vllm.ai deployment/docker; SGLang ``docs/get-started/install.mdx``; llama.cpp
    ``docs/docker.md``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING

from engine.devices.device import Vendor
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.devices.device import Machine
    from engine.launch.dialect import Asked

CACHE = "/hub"
"""Where the container keeps what it fetches from the Hub."""
MODELS = "/models"
AMD_DEVICES = ("/dev/kfd", "/dev/dri")
_FIRST_SGLANG_IMAGE = (0, 5)
_NAMES_ITSELF = (0, 13)
"""The first vLLM seen whose image runs ``vllm serve``, which warns of ``--model``."""


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
    on_its_hosts_network: bool = False
    """Whether it is one of several nodes, whose ranks meet on ports of their own choice."""

    @property
    def words(self) -> list[str]:
        """All that stands behind the image."""
        words = [word for group in self.arguments for word in group]
        return [*self.image.before, *words, *self.image.after]

    @property
    def variables(self) -> list[str]:
        """Variables as Docker takes them; the token is handed on by its name alone."""
        found = [f"{name}={value}" for name, value in self.environment.items()]
        return found if self.folder else [*found, f"{self.image.cache}={CACHE}", "HF_TOKEN"]

    @property
    def volume(self) -> str:
        """What is mounted, as Docker takes it: a folder told from the name of a volume."""
        if not self.folder:
            return f"hugging-face:{CACHE}"
        is_plain = PurePath(self.folder).is_absolute() or self.folder == "."
        return f"{self.folder if is_plain else f'./{self.folder}'}:{MODELS}:ro"

    def with_words(self, *groups: tuple[str, ...]) -> Packed:
        """The same with further arguments."""
        return replace(self, arguments=(*self.arguments, *groups))

    def on_each(self, devices: int, *, uses_all: bool) -> Packed:
        """Its share of a plan on one of several nodes."""
        return replace(self, devices=devices, uses_all=uses_all, on_its_hosts_network=True)


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
        groups: the flags of the command, without its program.
        environment: variables that are set for it.
    """
    vendors = {slot.device.vendor for slot in asked.machine.slots}
    image = _image(asked, vendors) if len(vendors) == 1 else None
    if image is None:
        return None
    vendor = next(iter(vendors))
    folder = ""
    if asked.plan.runtime == "vllm":
        named = (model,) if asked.version >= _NAMES_ITSELF else ("--model", model)
        groups = [named, *groups]
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
    return f"{MODELS}/{path.name}" if word == model else word


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
