"""A made ``/sys`` and ``/proc`` with graphics cards, as the kernel lays them out."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def write(path: Path, text: str | int) -> None:
    """``text`` as the file ``path``; its folders are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n", encoding="ascii")


def card(  # a card has that many facts
    root: Path,
    number: int = 0,
    *,
    address: str = "0000:03:00.0",
    vendor: str = "0x1002",
    device: str = "0x744c",
    driver: str = "amdgpu",
    status: str = "active",
    display: str = "",
    **files: str | int,
) -> Path:
    """One card under ``/sys/class/drm``; ``files`` are further files of its device."""
    folder = root / f"sys/class/drm/card{number}"
    write(folder / "device/vendor", vendor)
    write(folder / "device/device", device)
    write(folder / "device/uevent", f"DRIVER={driver}\nPCI_SLOT_NAME={address}")
    write(folder / "device/power/runtime_status", status)
    if display:
        write(root / f"sys/class/drm/card{number}-{display}/status", "connected")
    for name, text in files.items():
        write(folder / "device" / name, text)
    return folder / "device"


def on_bus(
    root: Path,
    address: str,
    *,
    vendor: str,
    kind: str = "0x030000",
    device: str = "0x744c",
    status: str = "active",
    control: str = "on",
) -> None:
    """A device of the PCI bus; ``kind`` is its class."""
    folder = root / "sys/bus/pci/devices" / address
    write(folder / "vendor", vendor)
    write(folder / "class", kind)
    write(folder / "device", device)
    write(folder / "power/runtime_status", status)
    write(folder / "power/control", control)


def fdinfo(root: Path, pid: int, fd: int, name: str = "app", **keys: str | int) -> None:
    """An open file of a process on a card; ``drm_client_id`` stands for ``drm-client-id``."""
    folder = root / f"proc/{pid}"
    write(folder / "comm", name)
    (folder / "cmdline").write_bytes(name.encode() + b"\0")
    (folder / "fd").mkdir(exist_ok=True)
    (folder / "fd" / str(fd)).symlink_to("/dev/dri/renderD128")
    listed = {"drm_pdev": "0000:03:00.0", "drm_driver": "amdgpu", **keys}
    lines = [f"{key.replace('_', '-')}:\t{value}" for key, value in listed.items()]
    write(folder / "fdinfo" / str(fd), "\n".join(["pos:\t0", "flags:\t02100002", *lines]))


def meminfo(root: Path, total_kib: int, available_kib: int) -> None:
    """``/proc/meminfo`` with the two lines that matter."""
    write(
        root / "proc/meminfo",
        f"MemTotal:       {total_kib} kB\nMemFree:  1 kB\nMemAvailable:   {available_kib} kB",
    )
