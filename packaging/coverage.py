"""Write ``docs/coverage.md``: how far every model type is understood, and how we know.

    python packaging/coverage.py

Needs the installed transformers for the names of its types, and no torch.
"""

from __future__ import annotations

import difflib
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "coverage.md"

if TYPE_CHECKING:
    from collections.abc import Iterator

HEAD = """\
# What is understood

Every `model_type` that transformers {version} knows, and what we make of it. Written by
`python packaging/coverage.py`; a test keeps it current. The evidence is
`tests/evidence/architectures.jsonl`: parameters on torch's meta device and the bytes of caches
that real forward passes returned, measured by `packaging/data/measure_architectures.py`.

- **exact**: equal to what was measured in every config, to the parameter and to the byte. A config
  is the class's defaults, a small base, or the base with one or several of its fields changed.
- **exact, n marked**: as above, but n configs say something we take for a bound, with the reason.
- **bound**: a limit, marked as one wherever it is shown, with the reason beside it.
- **explained**: too large to run here, or fed by something other than words: the text model has a
  type of its own that was measured, or the rule is read from the class alone.
- **none**: keeps nothing from one token to the next.

"""
NO_DECODER = """
## Types without a decoder

Encoders, detectors and other models that keep no sequence: they are refused, or sized as a bound
where a config names their dimensions.

"""
OTHERS = """
## Types that transformers does not know

Published with code of their own, which is never run: counted by our own rules. The number is that
of bundled models of the type, each held to its published total. Most of the others are held to
published totals by `tests/truth/test_published_*.py`, a few follow what their code says alone.

"""


def page() -> str:
    """The text of the page."""
    import transformers
    from transformers.models.auto.configuration_auto import (
        CONFIG_MAPPING_NAMES,
    )

    from tests.helpers.evidence import rows  # noqa: PLC0415 - after the path is set

    by_type: dict[str, list[dict[str, Any]]] = {}
    for row in rows():
        by_type.setdefault(row["type"], []).append(row)
    entries = {name: _entry(found) for name, found in sorted(by_type.items())}
    lines = [HEAD.format(version=transformers.__version__)]
    lines += _summary(entries)
    lines += ["\n| model_type | parameters | sequence state | evidence |\n", "|---|---|---|---|\n"]
    lines += [f"| {name} | {' | '.join(entry)} |\n" for name, entry in entries.items()]
    rest = sorted(set(CONFIG_MAPPING_NAMES) - set(by_type))
    lines += [NO_DECODER, _wrapped(rest)]
    lines += [OTHERS, *_others(set(CONFIG_MAPPING_NAMES) | set(by_type))]
    return "".join(lines)


def _entry(found: list[dict[str, Any]]) -> tuple[str, str, str]:
    """(parameters, state, evidence) of one type."""
    from tests.helpers.evidence import Grade, cache_grade, parameter_grades  # noqa: PLC0415

    grades = [graded for row in found for graded in parameter_grades(row)]
    counts = Counter(graded.grade for graded in grades)
    base = [g for g in grades if g.what in ("base", "defaults")]
    marked = counts[Grade.DOUBTED] + counts[Grade.REFUSED]
    if counts[Grade.WRONG]:
        parameters = f"WRONG in {counts[Grade.WRONG]}"
    elif not marked:
        parameters = "exact"
    elif all(g.grade is Grade.EXACT for g in base) and base:
        parameters = f"exact, {marked} marked"
    else:
        reason = next(g.reason for g in [*base, *grades] if g.grade is not Grade.EXACT)
        parameters = f"bound: {_cell(reason)}"
    caches = [graded for row in found if (graded := cache_grade(row)) is not None]
    classes = ", ".join(dict.fromkeys(row["class"] for row in found))
    lengths = sorted({int(n) for g in caches for n in _tokens(g.measured)})
    evidence = f"{len(grades)} configs of {classes}"
    if lengths:
        evidence += f"; cache at {', '.join(map(str, lengths))} tokens"
    return parameters, _state(caches) or _unmeasured(found), evidence


def _tokens(measured: object) -> Iterator[str]:
    if isinstance(measured, dict):
        yield from measured


def _state(caches: list[Any]) -> str:
    from tests.helpers.evidence import Grade  # noqa: PLC0415

    if not caches:
        return ""
    wrong = next((g for g in caches if g.grade is Grade.WRONG), None)
    if wrong is not None:
        return "WRONG"
    marked = next((g for g in caches if g.grade is not Grade.EXACT), None)
    if marked is not None:
        return f"bound: {_cell(marked.reason)}"
    return "exact" if any(any(g.measured.values()) for g in caches) else "none"


def _unmeasured(found: list[dict[str, Any]]) -> str:
    """What stands for a cache that was not measured: that of the text model's own type."""
    from engine.architecture.read import specify  # noqa: PLC0415
    from tests.helpers.evidence import configs, rows  # noqa: PLC0415

    config = next(config for row in found for _, config, _ in configs(row))
    text = specify(config).model_type
    measured = any(row["type"] == text and row.get("cache") for row in rows())
    return f"explained: as {text}" if measured else "explained: by the class's source, not run"


def _cell(text: str) -> str:
    return text.replace("|", "/").replace("\n", " ")


def _summary(entries: dict[str, tuple[str, str, str]]) -> Iterator[str]:
    kinds = ("exact", "exact, some marked", "explained", "bound", "none", "WRONG")

    def kind(text: str) -> str:
        if text.startswith("exact, "):
            return kinds[1]
        return next(k for k in kinds if text.startswith(k))

    yield f"| {len(entries)} types with a decoder | parameters | sequence state |\n|---|---|---|\n"
    parameters = Counter(kind(entry[0]) for entry in entries.values())
    states = Counter(kind(entry[1]) for entry in entries.values())
    for name in kinds:
        if parameters[name] or states[name]:
            yield f"| {name} | {parameters[name]} | {states[name]} |\n"


def _others(known: set[str]) -> Iterator[str]:
    from engine.architecture.families.registry import FAMILIES  # noqa: PLC0415
    from engine.source.catalogue import entries  # noqa: PLC0415

    bundled = Counter(entry.model_type for entry in entries())
    yield "| model_type | bundled models |\n|---|---|\n"
    for name in sorted(set(FAMILIES) - known):
        if name.endswith("_draft"):
            continue
        yield f"| {name} | {bundled[name] or '–'} |\n"


def _wrapped(names: list[str]) -> str:
    import textwrap  # noqa: PLC0415

    return textwrap.fill(", ".join(names), 100, break_on_hyphens=False) + "\n"


def main(arguments: list[str]) -> int:
    """Write the page, or with ``--check`` say what on it is no longer so."""
    text = page()
    if arguments != ["--check"]:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    old = PAGE.read_text(encoding="utf-8").splitlines()
    changes = list(difflib.unified_diff(old, text.splitlines(), "docs", "now", n=0, lineterm=""))
    print("\n".join(changes))
    return int(bool(changes))


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    raise SystemExit(main(sys.argv[1:]))
