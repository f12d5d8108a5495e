"""What transformers was measured to make of configs, and what we make of the same ones.

Source:
    ``tests/evidence/architectures.jsonl``: small configs of every language-model class of
    transformers 5.24.0 with their parameters on the meta device (torch 2.13.0), single and joint
    changes of them, and the bytes of the caches that a forward pass returned. Measured by
    ``packaging/data/measure_architectures.py``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.architecture.read import specify
from engine.architecture.spec import ArchitectureSpec, AttentionKind, Direction, Subject
from engine.errors import PlimsollError
from engine.runtimes.transformers.cache import attention_bytes, layer_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

EVIDENCE = Path(__file__).resolve().parents[1] / "evidence" / "architectures.jsonl"
SOURCE_TOKENS = 12
"""What an encoder read when the cache was measured."""
_LONG_ENOUGH = 40
"""Tokens from which a bound holds: below, a block or window that is not full costs more."""


class Grade(StrEnum):
    """How an answer of ours stands beside what was measured."""

    EXACT = "exact"
    DOUBTED = "doubted"
    """Right, or on the side it claims, and marked as a bound with its reason."""
    REFUSED = "refused"
    WRONG = "wrong"
    """Neither right nor marked, or on the other side than the mark says."""


@dataclass(frozen=True)
class Graded:
    """One comparison."""

    grade: Grade
    what: str
    """Which config: ``base``, ``defaults``, ``hidden_size=128`` …"""
    ours: object
    measured: object
    reason: str = ""


@cache
def rows() -> tuple[dict[str, Any], ...]:
    """Every measured class, by type and class."""
    lines = EVIDENCE.read_text(encoding="utf-8").splitlines()
    return tuple(json.loads(line) for line in lines)


def configs(row: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], int]]:
    """(which, config, measured parameters) of every config of a row."""
    named = {"model_type": row["type"], "architectures": [row["class"]]}
    base = named | row["base"]
    if row.get("parameters") is not None:
        yield "base", base, row["parameters"]
    if row.get("defaults") is not None:
        yield "defaults", named, row["defaults"]
    for path, value, parameters in row.get("changes", ()):
        yield f"{path}={json.dumps(value)}", changed(base, {path: value}), parameters
    for values, parameters in row.get("joint", ()):
        yield "joint " + ", ".join(values), changed(base, values), parameters


def changed(config: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """``config`` with values set at dotted paths."""
    result = json.loads(json.dumps(config))
    for path, value in values.items():
        *parents, key = path.split(".")
        place = result
        for parent in parents:
            place = place.setdefault(parent, {})
        place[key] = value
    return result


def _spec(config: dict[str, Any]) -> ArchitectureSpec | str:
    try:
        return specify(config)
    except PlimsollError as error:
        return error.message


def parameter_grades(row: dict[str, Any]) -> list[Graded]:
    """Our parameters beside the measured ones, config by config."""
    found: list[Graded] = []
    for what, config, measured in configs(row):
        spec = _spec(config)
        if isinstance(spec, str):
            found.append(Graded(Grade.REFUSED, what, None, measured, spec))
            continue
        side = spec.direction(Subject.WEIGHTS)
        grade = _grade(side, spec.parameters, measured)
        found.append(Graded(grade, what, spec.parameters, measured, _why(spec, Subject.WEIGHTS)))
    return found


def cache_grade(row: dict[str, Any]) -> Graded | None:
    """Our bytes of the cache beside the measured ones; None where none were measured."""
    found = row.get("cache")
    if not found:
        return None
    measured, dtype = found["bytes"], found["dtype"]
    spec = _spec({"model_type": row["type"], "architectures": [row["class"]]} | row["base"])
    if isinstance(spec, str):
        return Graded(Grade.REFUSED, "cache", None, measured, spec)
    ours = {tokens: cache_bytes(spec, int(tokens), dtype) for tokens in measured}
    side = spec.direction(Subject.SEQUENCE_STATE)
    reason = _why(spec, Subject.SEQUENCE_STATE)
    if ours == measured:
        grade = Grade.EXACT if side is None else Grade.DOUBTED
    else:
        grades = {
            _grade(side, ours[tokens], size)
            for tokens, size in measured.items()
            if int(tokens) >= _LONG_ENOUGH
        }
        grade = Grade.WRONG if side is None or Grade.WRONG in grades else Grade.DOUBTED
    return Graded(grade, "cache", ours, measured, reason)


def cache_bytes(spec: ArchitectureSpec, tokens: int, dtype: str = "bfloat16") -> int:
    """What transformers keeps of a sequence of ``tokens``, the encoder's beside it."""
    total = 0
    for layer in spec.layers:
        total += layer_bytes(layer, tokens, dtype)
        cross = layer.cross
        if cross is not None and cross.kind is AttentionKind.CROSS:
            total -= attention_bytes(cross, tokens, dtype)
            total += attention_bytes(replace(cross, window=0), SOURCE_TOKENS, dtype)
    return total


def _grade(side: Direction | None, ours: int, measured: int) -> Grade:
    if side is None:
        return Grade.EXACT if ours == measured else Grade.WRONG
    wrong = (side is Direction.UPPER and ours < measured) or (
        side is Direction.LOWER and ours > measured
    )
    return Grade.WRONG if wrong else Grade.DOUBTED


def _why(spec: ArchitectureSpec, subject: Subject) -> str:
    return next((doubt.reason for doubt in spec.doubts if doubt.subject is subject), "")
