"""Snapshots made fit for a file that may be passed on: whose computer it was can't be told.

Serial numbers and UUIDs become short stand-ins, the same for the same device in every recording,
so that two recordings of one machine still belong together. Command lines stay only where they
say which model a known runtime serves, without folders.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from engine.redaction import redacted
from engine.telemetry.commands import recognise
from engine.telemetry.snapshot import Missing

if TYPE_CHECKING:
    from engine.telemetry.snapshot import DeviceReading, ProcessReading, TelemetrySnapshot

_IDENTITY = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"  # UUID
    r"|(?<![\w.])(?:0x)?[0-9a-f]{16,}(?!\w)"  # AMD's unique_id, containers
    r"|(?<![\w.])\d{12,14}(?!\w)",  # serial numbers of boards
    re.IGNORECASE,
)
_LETTERS = 12
_PATH = re.compile(r"(?<![\w:/\\.])(?:~|\.{1,2}|[A-Za-z]:)?[/\\](?:[^\s/\\=,;]+[/\\])+(?=[^\s/\\])")
"""The folders of an absolute path; a Hub id has none."""


def masked(snapshot: TelemetrySnapshot) -> TelemetrySnapshot:
    """``snapshot`` without names, serial numbers, folders and foreign command lines."""
    return replace(
        snapshot,
        devices=tuple(_device(device) for device in snapshot.devices),
        notes=tuple(map(text, snapshot.notes)),
    )


@lru_cache(maxsize=4096)
def text(words: str) -> str:
    """``words`` without secrets, whose computer it is, and numbers that are one device's alone."""
    return _IDENTITY.sub(_stand_in, redacted(words))


def in_mapping(value: Any) -> Any:
    """All texts of a plain value masked: the machine of a recording's header."""
    if isinstance(value, str):
        return text(value)
    if isinstance(value, dict):
        return {key: in_mapping(one) for key, one in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [in_mapping(one) for one in cast("list[Any]", value)]
    return value


def _stand_in(found: re.Match[str]) -> str:
    plain = found[0].lower().removeprefix("0x")
    return hashlib.sha256(plain.encode()).hexdigest()[:_LETTERS]


def _device(device: DeviceReading) -> DeviceReading:
    held = device.processes
    return replace(
        device,
        uuid=text(device.uuid),
        note=text(device.note),
        processes=held if isinstance(held, Missing) else tuple(map(_process, held)),
    )


def _process(process: ProcessReading) -> ProcessReading:
    return replace(
        process, name=text(process.name), command=_command(process.name, process.command)
    )


@lru_cache(maxsize=4096)
def _command(name: str, command: str) -> str:
    """What is left of a command line: all but folders for a known runtime, nothing else."""
    return text(_PATH.sub("", command)) if recognise(name, command).runtime else ""
