"""The published JSON Schemas of what is here now: the machine, a sample, a recording."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from engine.contract import machine, runtimes
from engine.contract.shapes import (
    SIZE,
    TEXT,
    TEXTS,
    closed,
    estimate,
    one_of,
    or_missing,
    published,
    said,
)
from engine.telemetry import record
from engine.telemetry.markers import MarkerKind
from engine.telemetry.snapshot import PoolKind, Pressure, Quality

if TYPE_CHECKING:
    from engine.contract.shapes import Schema

_NUMBER: Schema = {"type": "number"}
_MISSING = "A value that could not be read is an object that says why: missing."


def schemas() -> dict[str, Schema]:
    """Every one of them by its file's stem."""
    return {"machine": _machine(), "sample": _sample(), "recording": _recording()}


def _machine() -> Schema:
    body = _with_runtimes(
        closed(
            schema={"const": machine.MACHINE_SCHEMA}, **_machine_facts(), now=closed(**_moment())
        )
    )
    about = f"This machine's devices and one sample: plimsoll machine --json. {_MISSING}"
    return published(machine.MACHINE_SCHEMA, about, body)


def _sample() -> Schema:
    body = _with_runtimes(closed(schema={"const": machine.SAMPLE_SCHEMA}, **_moment()))
    about = f"One line of plimsoll watch --jsonl. {_MISSING}"
    return published(machine.SAMPLE_SCHEMA, about, body)


def _with_runtimes(body: Schema) -> Schema:
    """``body`` that may have the key of ``--runtimes`` as well."""
    about = "the runtimes that are seen; only with --runtimes"
    listed = said(runtimes.schema(), about)
    return body | {"properties": {**cast("Schema", body["properties"]), "runtimes": listed}}


def _recording() -> Schema:
    header = closed(
        schema={"const": record.SCHEMA},
        started=said(_NUMBER, "seconds since 1970, UTC"),
        machine=said(closed(**_machine_facts()), "the machine that was recorded"),
    )
    marker = closed(
        kind=one_of(MarkerKind),
        monotonic_s=said(_NUMBER, "the moment, on the clock of the samples"),
        wall_time_s=said(_NUMBER, "seconds since 1970, UTC"),
        text=said(TEXT, "a person's words, or why a device is lost"),
        uuid=said(TEXT, "the device it is about; empty for all"),
        change_bytes=said({"type": "integer"}, "by how much the device's use changed there, or 0"),
    )
    about = (
        "One line of a recording (JSON Lines): the first is the header, every further one a "
        f"sample or a marker. {_MISSING}"
    )
    lines = [header, closed(**_moment()), closed(marker=marker)]
    return published(record.SCHEMA, about, {"oneOf": lines})


def _machine_facts() -> dict[str, Schema]:
    device = closed(
        name=TEXT,
        uuid=said(TEXT, "the driver's; empty where there is none"),
        vendor=TEXT,
        kind=TEXT,
        label=said(TEXT, "the size on the box"),
        total_bytes=said(SIZE, "what the driver reports"),
        allocatable=said(estimate(), "what programs can get"),
        foreign=said(estimate(), "what others hold"),
        sm_count=said(SIZE, "streaming multiprocessors; 0 where it is not known"),
        compute_capability=said(_NUMBER, "CUDA's; 0 where there is none"),
        ecc=TEXT,
        source=said(TEXT, "where total_bytes comes from"),
    )
    return {
        "name": TEXT,
        "is_here": {"type": "boolean"},
        "devices": said({"type": "array", "items": device}, "in rank order"),
        "host": said(device, "the machine's own RAM"),
    }


def _moment() -> dict[str, Schema]:
    return {
        "monotonic_s": said(_NUMBER, "a clock that never jumps, for intervals"),
        "wall_time_s": said(_NUMBER, "seconds since 1970, UTC"),
        "devices": {"type": "array", "items": _reading()},
        "notes": TEXTS,
    }


def _reading() -> Schema:
    process = closed(
        pid=SIZE,
        name=TEXT,
        used_bytes=or_missing(SIZE),
        file_bytes=said(
            or_missing(SIZE), "resident pages of mapped files: reclaimable, not in used_bytes"
        ),
        spill_bytes=said(or_missing(SIZE), "of its work on the device, what lies in system memory"),
        system_bytes=said(or_missing(SIZE), "of used_bytes, what lies in the system's memory"),
        committed_bytes=said(or_missing(SIZE), "what it was promised, in memory or not"),
        quality=one_of(Quality),
        command=TEXT,
    )
    part = closed(name=TEXT, total_bytes=or_missing(SIZE), used_bytes=or_missing(SIZE))
    return closed(
        uuid=TEXT,
        name=TEXT,
        vendor=TEXT,
        pool=one_of(PoolKind),
        total_bytes=or_missing(SIZE),
        used_bytes=or_missing(SIZE),
        free_bytes=or_missing(SIZE),
        reserved_bytes=said(or_missing(SIZE), "what the driver keeps for itself"),
        ceiling_bytes=said(or_missing(SIZE), "what one process may get when nothing else runs"),
        available_bytes=said(
            or_missing(SIZE), "what a new process could get now, where that is not free_bytes"
        ),
        spill_bytes=said(or_missing(SIZE), "of the device's work, what lies in system memory"),
        parts=said({"type": "array", "items": part}, "the pools behind total_bytes, if several"),
        processes=or_missing({"type": "array", "items": process}),
        source=TEXT,
        age_s=said(_NUMBER, "how old the figures are"),
        pci_address=said(TEXT, "0000:61:00.0; empty where the source doesn't tell"),
        pressure=said(one_of(Pressure), "whether programs wait for memory"),
        note=TEXT,
        sm_count=SIZE,
        compute_capability=_NUMBER,
    )
