"""What macOS and Windows say of their GPUs, fit to pass on and to be asked again."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from engine.errors import TelemetryError
from engine.telemetry.adapters import apple, macos, windows, windows_facts
from engine.telemetry.snapshot import Missing, ProcessReading

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engine.telemetry.raw import Masks
    from engine.telemetry.snapshot import DeviceReading

APPLE: Final = "Apple"
WINDOWS: Final = "Windows"
_PID: Final = re.compile(r"pid_(\d+)(?=_)")


def of_apple(
    masks: Masks, asked: apple.Sources | None = None
) -> tuple[dict[str, Any], tuple[DeviceReading, ...]]:
    """What macOS's commands, Metal and the kernel say, and the GPU that they tell of.

    Args:
        masks: stand-ins for processes.
        asked: what is asked; the system where there is none.
    """
    real = asked or apple.system()
    heard: dict[str, Any] = {"footprints": {}}

    def run(command: tuple[str, ...]) -> str:
        text = real.run(command)
        heard[_named(command)] = _of_command(command, text, masks)
        return text

    def working_set() -> int | None:
        heard["working set"] = real.working_set()
        return heard["working set"]

    def footprint(pid: int) -> int | None:
        size = real.footprint(pid)
        heard["footprints"][str(masks.pid(pid))] = size
        return size

    devices = apple.AppleAdapter(
        apple.Sources(run, working_set, footprint, real.command_of)
    ).sample()
    return ({APPLE: heard} if devices else {}), devices


def apple_again(heard: Mapping[str, Any]) -> apple.Sources:
    """What answers as the report says."""

    def footprint(pid: int) -> int | None:
        return heard["footprints"].get(str(pid))

    return apple.Sources(
        lambda command: heard.get(_named(command), ""),
        lambda: heard.get("working set"),
        footprint,
        lambda _: (),
    )


def _named(command: tuple[str, ...]) -> str:
    name = command[0].rsplit("/", 1)[-1]
    return f"{name} clients" if command == apple.CLIENTS else name


def _of_command(command: tuple[str, ...], text: str, masks: Masks) -> str:
    """The lines that are read; ``ioreg`` prints much more, serial numbers among it."""
    if command == apple.CLIENTS:
        rows = (
            masks.of(ProcessReading(pid, name, 0)) for pid, name in apple.clients_of(text).items()
        )
        return "\n".join(f'"IOUserClientCreator" = "pid {row.pid}, {row.name}"' for row in rows)
    if command == apple.GPU:
        sizes = ",".join(f'"{key}"={size}' for key, size in apple.statistics_of(text).items())
        return f'"PerformanceStatistics" = {{{sizes}}}' if sizes else ""
    if command == macos.SYSCTL:
        stated = macos.pairs(text)
        return "\n".join(f"{key}: {stated[key]}" for key in macos.SYSCTL[1:] if key in stated)
    return text


def of_windows(
    masks: Masks, opened: Callable[[], windows.Door] | None = None
) -> tuple[dict[str, Any], tuple[DeviceReading, ...], str]:
    """What DXGI and the counters say, the adapters that they tell of, and why there are none.

    Args:
        masks: stand-ins for processes.
        opened: opens what is asked; Windows itself where there is none.
    """
    try:
        door = (opened or windows.open_door)()
    except TelemetryError as error:
        return {}, (), error.message
    try:
        graphics, counted = door.graphics(), door.counted()
    except TelemetryError as error:
        return {}, (), error.message
    finally:
        door.close()
    devices = windows.readings(counted, graphics, windows.names())

    def masked(instance: str) -> str:
        return _PID.sub(lambda found: f"pid_{masks.pid(int(found[1]))}", instance)

    heard = {
        "graphics": [asdict(one) for one in graphics],
        "adapters": {name: dict(rows) for name, rows in counted.adapters.items()},
        "processes": {
            name: {masked(instance): size for instance, size in rows.items() if size}
            for name, rows in counted.processes.items()
        },
    }
    return {WINDOWS: heard}, devices, ""


class WindowsAgain:
    """A door behind which a report answers."""

    def __init__(self, heard: Mapping[str, Any]) -> None:
        self._heard = heard

    def graphics(self) -> tuple[windows_facts.Graphics, ...]:
        """The report's adapters."""
        return tuple(_graphics(one) for one in self._heard["graphics"])

    def counted(self) -> windows_facts.Counted:
        """The report's counters."""
        return windows_facts.Counted(self._heard["adapters"], self._heard["processes"])

    def close(self) -> None:
        """Nothing is held."""


def _graphics(one: dict[str, Any]) -> windows_facts.Graphics:
    told = one["dedicated_bytes"]
    size = told if isinstance(told, int) else Missing(told["reason"])
    rest = {key: value for key, value in one.items() if key != "dedicated_bytes"}
    return windows_facts.Graphics(dedicated_bytes=size, **rest)
