"""A machine that isn't there: eight GPUs on which a model is loaded, serves and is unloaded.

The same second always gives the same figures, so that a picture, a test and a demonstration can be
repeated. Nothing of this computer is read.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from engine.telemetry.snapshot import SIMULATOR, DeviceReading, PoolKind, Pressure, ProcessReading
from engine.units import GIB, MIB

if TYPE_CHECKING:
    from collections.abc import Callable

DEVICES: Final = 8
PROCESSES: Final = 40
"""On each device."""
CYCLE_S: Final = 300.0
TOTAL_BYTES: Final = 81_559 * MIB
RESERVED_BYTES: Final = 551 * MIB
_HOST_BYTES = 512 * GIB
_CONTEXT_BYTES = 480 * MIB
_WEIGHTS_BYTES = 38 * GIB
_POOL_BYTES = 22 * GIB
_PREFILL_BYTES = 3 * GIB
_OTHER_BYTES = 96 * MIB
_FIRST_PID = 5_000_001
"""Above what any system gives, so that no number is a process of this computer."""
_NAME = "Simulated H100 80GB"

# Seconds of a cycle: before, load, prefill, decode, sustained, idle, unloaded.
_LOAD, _PREFILL, _DECODE, _SUSTAINED, _IDLE, _UNLOAD = 20.0, 60.0, 80.0, 140.0, 240.0, 280.0


class SimulatedAdapter:
    """Devices with processes, and the computer that they are in."""

    name = SIMULATOR

    def __init__(
        self,
        devices: int = DEVICES,
        processes: int = PROCESSES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin before the load.

        Args:
            devices: how many GPUs.
            processes: how many on each; the first is the model's worker.
            clock: tells seconds.
        """
        self._clock = clock
        self._began_s = clock()
        self._others = tuple(
            tuple(
                ProcessReading(
                    _FIRST_PID + device * processes + number,
                    f"program-{number}",
                    _OTHER_BYTES + number * MIB,
                    f"program-{number} --device {device}",
                )
                for number in range(1, processes)
            )
            for device in range(devices)
        )
        self._pids = tuple(_FIRST_PID + device * processes for device in range(devices))

    def sample(self) -> tuple[DeviceReading, ...]:
        """Every device now, the computer last."""
        at_s = (self._clock() - self._began_s) % CYCLE_S
        held = model_bytes(at_s)
        return (*(self._card(index, held, at_s) for index in range(len(self._pids))), _host(held))

    def close(self) -> None:
        """Nothing is held."""

    def _card(self, index: int, held: int, at_s: float) -> DeviceReading:
        # Made anew, as a driver's answers are.
        processes = tuple(replace(process) for process in self._others[index])
        if held:
            worker = ProcessReading(
                self._pids[index], f"VLLM::Worker_TP{index}", held, "VLLM::Worker"
            )
            processes = (worker, *processes)
        # The last of its processes breathes, so that no two samples need be the same.
        breath = int(at_s * 10) % 10 * MIB
        used = breath + sum(p.used_bytes for p in processes if isinstance(p.used_bytes, int))
        return DeviceReading(
            uuid=f"SIM-{index}",
            name=_NAME,
            pool=PoolKind.VRAM,
            total_bytes=TOTAL_BYTES,
            used_bytes=used,
            free_bytes=TOTAL_BYTES - RESERVED_BYTES - used,
            reserved_bytes=RESERVED_BYTES,
            processes=processes,
            source=SIMULATOR,
            ceiling_bytes=TOTAL_BYTES - RESERVED_BYTES,
            vendor="NVIDIA",
            sm_count=132,
            compute_capability=9.0,
        )


def model_bytes(at_s: float) -> int:
    """What the model's worker holds at a second of the cycle; 0 while it doesn't run."""
    if not _LOAD <= at_s < _UNLOAD:
        return 0
    if at_s < _PREFILL:
        return _CONTEXT_BYTES + round(_WEIGHTS_BYTES * (at_s - _LOAD) / (_PREFILL - _LOAD))
    held = _CONTEXT_BYTES + _WEIGHTS_BYTES
    if at_s < _DECODE:
        return held + _PREFILL_BYTES
    filled = min((at_s - _DECODE) / (_SUSTAINED - _DECODE), 1.0)
    return held + round(_POOL_BYTES * (filled if at_s < _IDLE else 1.0))


def _host(held: int) -> DeviceReading:
    used = 24 * GIB + held // 16
    return DeviceReading(
        uuid="host",
        name="Computer",
        pool=PoolKind.HOST,
        total_bytes=_HOST_BYTES,
        used_bytes=used,
        free_bytes=_HOST_BYTES - used,
        reserved_bytes=0,
        processes=(
            ProcessReading(_FIRST_PID - 1, "vllm", used // 2, "vllm serve simulated/model"),
        ),
        source=SIMULATOR,
        pressure=Pressure.NONE,
    )
