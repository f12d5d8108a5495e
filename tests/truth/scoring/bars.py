"""The bars that the answers have to clear, each computed from the scores."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING

from tests.truth.scoring.crossed import held_out
from tests.truth.scoring.tables import percent, percentile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.truth.scoring.scores import Score

GIB = 2**30
MIB = 2**20
FROM_KNOWN = {
    "kv_blocks from a known pool",
    "kv_tokens from a known pool",
    "max_concurrency from a known pool",
    "longest",
}
_FILES = {"llama.cpp", "ollama", "ik_llama.cpp"}
_OF_RUNS = {"model buffers", "cache and state buffers", "compute buffers", "output buffers"}
"""Figures of llama.cpp's own measured runs, which are many and have no device beneath."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar, and where the answers stand."""

    name: str
    limit: str
    reached: str
    count: int
    is_met: bool | None
    """None where nothing is scored yet."""
    held_out: str = ""
    """What is reached where fits have not seen the model families that they are scored on."""

    @property
    def key(self) -> str:
        """What names the bar in the baseline."""
        return f"bar · {self.name} · {self.limit}"


def all_bars(scores: Sequence[Score]) -> list[Bar]:
    """Every bar, reached with the fits as they are, and held out."""
    pairs = zip(bars(scores), bars(held_out(scores)), strict=True)
    return [replace(bar, held_out=held.reached) for bar, held in pairs]


def bars(scores: Sequence[Score]) -> list[Bar]:
    """Every bar, in the order of the table."""
    return [
        bar for group in (_weights, _pools, _activations, _files, _others) for bar in group(scores)
    ]


def _weights(scores: Sequence[Score]) -> Iterator[Bar]:
    weights = [s for s in scores if s.figure == "weights"]
    for trait, p95 in (("16-bit", 0.015), ("quantised", 0.03)):
        found = [s for s in weights if trait in s.traits]
        yield _bar(
            f"weights per rank, {trait}",
            f"median ≤ 0.3 %, p95 ≤ {percent(p95, 1)}",
            found,
            _median_and_p95,
            lambda errors, p95=p95: median(errors) <= 0.003 and percentile(errors, 0.95) <= p95,
        )


def _pools(scores: Sequence[Score]) -> Iterator[Bar]:
    known = [s for s in scores if s.figure in FROM_KNOWN and s.runtime == "vllm"]
    yield _runs(
        "vLLM blocks, tokens, concurrency from a known pool", "exact", known, 0.95, _is_exact
    )
    for figure, name in (("kv_pool", "pool"), ("concurrency from scratch", "concurrency")):
        found = [s for s in scores if s.figure == figure and s.runtime == "vllm"]
        dense = [s for s in found if "dense" in s.traits]
        rows = [s for s in dense if "row" in s.traits]
        yield _share(f"vLLM {name} from scratch, dense rows", "within 1 %", rows, 1.0, 0.01)
        yield _share(f"vLLM {name} from scratch, dense, any log", "within 1 %", dense, 0.95, 0.01)
        yield _bar(
            f"vLLM {name} from scratch, all rows",
            "p95 ≤ 3 %",
            found,
            _median_and_p95,
            lambda errors: percentile(errors, 0.95) <= 0.03,
        )
    sglang = [s for s in scores if s.figure == "kv_pool" and s.runtime == "sglang"]
    yield _bar(
        "SGLang pool",
        "p95 ≤ 3 %",
        sglang,
        _median_and_p95,
        lambda errors: percentile(errors, 0.95) <= 0.03,
    )


def _activations(scores: Sequence[Score]) -> Iterator[Bar]:
    found = [s for s in scores if s.figure == "activations"]
    off = sorted(s.off / GIB for s in found)
    if not off:
        yield Bar("activations", "median ≤ 0.05 GiB, p95 ≤ 0.3 GiB", "–", 0, None)
        return
    middle, high = median(off), percentile(off, 0.95)
    yield Bar(
        "activations",
        "median ≤ 0.05 GiB, p95 ≤ 0.3 GiB",
        f"median {middle:.3f} GiB, p95 {high:.2f} GiB",
        len(off),
        middle <= 0.05 and high <= 0.3,
    )


def _files(scores: Sequence[Score]) -> Iterator[Bar]:
    exact = ("model buffers", "cache and state buffers", "output buffers")
    for figure in exact:
        found = [s for s in scores if s.figure == figure]
        yield _share(f"llama.cpp {figure}", "exact", found, 1.0, 0.0)
    compute = [s for s in scores if s.figure == "compute buffers"]
    yield _runs("llama.cpp compute buffers of a run", "2 % or 8 MiB", compute, 0.98, _is_near)


def _others(scores: Sequence[Score]) -> Iterator[Bar]:
    card = [s for s in scores if s.figure == "card" and "device" not in s.traits]
    yield _bar(
        "whole card against nvidia-smi",
        "p95 ≤ 3 %",
        card,
        _median_and_p95,
        lambda errors: percentile(errors, 0.95) <= 0.03,
    )
    end = [s for s in scores if s.figure == "end" and "16-bit" in s.traits]
    yield _share("Transformers, end of generation, bf16", "within 1 %", end, 0.9, 0.01)
    load = [s for s in scores if s.figure == "load"]
    yield _share("Transformers, after loading", "within 2 %", load, 0.95, 0.02)
    printed = [s for s in scores if s.figure.startswith("printed ") and s.runtime in _FILES]
    yield _share("llama.cpp on real devices, buffers", "exact", printed, 0.95, 0.0)
    devices = [s for s in scores if "device" in s.traits and s.figure == "card"]
    inside = sum(s.is_inside for s in devices)
    yield _shared("llama.cpp on real devices, totals", "inside", inside, len(devices), 0.95)
    peaks = [s for s in scores if s.runtime == "mlx" and s.figure == "peak"]
    yield _bar(
        "MLX peaks",
        "median ≤ 3 %, p95 ≤ 15 %",
        peaks,
        _median_and_p95,
        lambda errors: median(errors) <= 0.03 and percentile(errors, 0.95) <= 0.15,
    )
    inside = sum(s.is_inside for s in peaks)
    yield _shared("MLX peaks", "inside", inside, len(peaks), 0.9)
    regions = [s for s in scores if s.is_region]
    logged = [s for s in regions if s.figure not in _OF_RUNS]
    for name, found in (("all regions", regions), ("all regions of logs", logged)):
        inside = sum(s.is_inside for s in found)
        yield _shared(name, "inside", inside, len(found), 0.95)
        width = median(s.width for s in found) if found else None
        yield Bar(
            f"{name}, median width of the range",
            "< 10 %",
            percent(width, 1),
            len(found),
            None if width is None else width < 0.1,
        )


def _is_exact(score: Score) -> bool:
    return score.error == 0


def _is_near(score: Score) -> bool:
    """Of a compute buffer."""
    return score.off <= max(8 * MIB, 0.02 * score.wanted)


def _median_and_p95(errors: list[float]) -> str:
    return f"median {percent(median(errors))}, p95 {percent(percentile(errors, 0.95))}"


def _bar(
    name: str,
    limit: str,
    found: Sequence[Score],
    said: Callable[[list[float]], str],
    is_met: Callable[[list[float]], bool],
) -> Bar:
    errors = sorted(score.error for score in found)
    if not errors:
        return Bar(name, limit, "–", 0, None)
    return Bar(name, limit, said(errors), len(errors), is_met(errors))


def _share(name: str, what: str, found: Sequence[Score], share: float, limit: float) -> Bar:
    return _shared(name, what, sum(s.error <= limit for s in found), len(found), share)


def _runs(
    name: str, what: str, found: Sequence[Score], share: float, holds: Callable[[Score], bool]
) -> Bar:
    """The share of records all of whose figures ``holds``."""
    records: dict[str, bool] = {}
    for score in found:
        records[score.record] = records.get(score.record, True) and holds(score)
    return _shared(name, what, sum(records.values()), len(records), share)


def _shared(name: str, what: str, good: int, count: int, share: float) -> Bar:
    wanted = f"{what}: {'all' if share == 1 else f'≥ {percent(share, 0)}'}"
    if not count:
        return Bar(name, wanted, "–", 0, None)
    reached = f"{good:,} of {count:,} ({percent(good / count, 1)})"
    return Bar(name, wanted, reached, count, good / count >= share)
