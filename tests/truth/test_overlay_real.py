"""A real llama-server on this computer's CPU: its phases, and each peak against the plan."""

from __future__ import annotations

import importlib.util
import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from engine.architecture.read import read
from engine.budget.model import Region
from engine.cancel import CancelToken
from engine.contract.learn import lesson_of, lesson_of_watched
from engine.deployment.spec import Deployment
from engine.devices.device import Device, DeviceKind, Machine, Slot, Vendor
from engine.evidence import Basis, exactly
from engine.formats.mix_rules import MixFacts
from engine.formats.mixes import mix_types
from engine.overlay import words
from engine.overlay.checklist import checklist
from engine.overlay.seen import Seen
from engine.overlay.steps import Evidence, Status
from engine.runtimes.llama_cpp import LlamaCpp
from engine.seen.load_driver import Ended, Load, LoadDriver
from engine.source import files
from engine.telemetry.address import Address
from engine.telemetry.snapshot import Missing
from engine.units import GIB, MIB
from tests.helpers import synthetic_gguf
from tests.helpers.logs import explained
from tests.helpers.synthetic_gguf import Dense
from tests.helpers.watching import Watching

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from engine.budget.model import Budget
    from engine.lessons import Lesson
    from engine.overlay.overlay import Overlay, RankOverlay

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(
        importlib.util.find_spec("xllamacpp") is None
        or importlib.util.find_spec("gguf") is None
        or sys.platform != "linux",
        reason="needs xllamacpp (a llama.cpp wheel) and gguf, on Linux",
    ),
]
SMALL = Dense("llama", 4, 768, 3072, 12, 12, 64, 32000, 32768)
"""Quick on one core, with a cache much larger than its weights: 12 KiB a token."""
_TOKENS = 32768
_ALL_HELD = (Seen.PREFILL, Seen.DECODE, Seen.SUSTAINED)
_SLOTS = 2


def _plan(path: Path) -> Budget:
    model = read(files.read(path, CancelToken()))
    nothing = exactly(0, Basis.SETTING, "the process alone is compared")
    capacity = exactly(64 * GIB, Basis.SETTING, "not what this test is about")
    device = Device("host", Vendor.CPU, DeviceKind.HOST, "", 64 * GIB, capacity)
    host = Slot(device, nothing, "host")
    deployment = Deployment(
        runtime="llama.cpp", n_ctx=_TOKENS, n_parallel=_SLOTS, cache_type_k="f16",
        cache_type_v="f16", cache_ram_bytes=0,
    )  # fmt: skip
    return LlamaCpp().plan(model, deployment, Machine("here", (host,), host, is_here=True))


def _only(overlay: Overlay) -> RankOverlay:
    (rank,) = overlay.ranks
    return rank


def test_that_a_real_server_shows_its_phases_and_stays_within_their_predictions(
    tmp_path: Path,
) -> None:
    from tests.helpers.llama_server import serving

    facts = MixFacts(SMALL.architecture, SMALL.layers, SMALL.heads, SMALL.kv_heads)
    types = mix_types("Q4_K_M", SMALL.tensors(), facts)
    # No other server of this computer is taken for this one.
    path = tmp_path / f"watched-{os.getpid()}.gguf"
    synthetic_gguf.write(SMALL, types, path, speaks=True)
    budget = _plan(path)
    with Watching(budget) as watching:
        watching.until(lambda seen: _only(seen).run.phase is Seen.BEFORE)
        with serving(path, tmp_path, "-c", str(_TOKENS), "-np", str(_SLOTS)) as (_pid, port):
            watching.port = port
            loaded = watching.until(lambda seen: _only(seen).run.is_loaded)
            load = Load(prompt_tokens=200, output_tokens=24, requests=6, concurrency=_SLOTS)
            driven = LoadDriver(Address("127.0.0.1", port), path.stem, load).run(CancelToken())
            busy = watching.until(lambda seen: _only(seen).run.phase is Seen.IDLE)
        ended = watching.until(lambda seen: _only(seen).run.phase is Seen.AFTER)
    assert driven.ended is Ended.ALL_SENT, driven
    run = _only(ended).run
    for error in _only(ended).errors:
        sys.stdout.write(f"{words.peak_sentence(error, run.every_s)}\n")
    found = [span.phase for span in run.spans]
    assert found[:2] == [Seen.BEFORE, Seen.LOAD]
    assert {Seen.PREFILL, Seen.DECODE, Seen.IDLE} <= set(found)
    assert found[-1] is Seen.AFTER
    assert run.most_running == _SLOTS
    assert isinstance(run.left_bytes, int)
    for when in (loaded, busy):
        rank = _only(when)
        assert rank.residue is not None
        assert not isinstance(rank.held, Missing)
        assert rank.held.file_bytes
        assert not rank.residue.is_unexplained
    assert {error.phase for error in _only(ended).errors} == {Seen.LOAD, Seen.PREFILL, Seen.DECODE}
    for error in _only(ended).errors:
        assert abs(error.error_bytes) < 64 * MIB, error
    _check_the_checklist(budget, busy, load.prompt_tokens)
    _check_that_the_next_plan_follows(budget, ended)


def _check_the_checklist(budget: Budget, busy: Overlay, prompt_tokens: int) -> None:
    """Its steps fill themselves from the run; what was not reached is said to be open."""
    found = checklist(budget, 0, Evidence(overlay=busy, longest_prompt=prompt_tokens))
    for step in found.steps:
        sys.stdout.write(f"{step.number} {step.answer.status.value}: {step.answer.words}\n")
    weights, prefill, cache, kept, headroom = (step.answer for step in found.steps)
    assert weights.status is cache.status is kept.status is Status.KNOWN
    assert weights.estimate is not None
    assert weights.estimate.basis is Basis.MEASURED
    # One short prompt is not the longest that the plan has to bear.
    assert prefill.status is Status.MODELLED
    assert f"{prompt_tokens} of " in prefill.words
    assert headroom.status is Status.OPEN
    assert all(set(step.per_rank) == {0} for step in found.steps)


def _check_that_the_next_plan_follows(budget: Budget, ended: Overlay) -> None:
    """What was watched is learned: the same plan then expects what was held, to a MiB."""
    peak = max(p.own_bytes for phase, p in _only(ended).run.peaks.items() if phase in _ALL_HELD)
    release = budget.deployment.runtime_version or ""
    lesson = lesson_of_watched(budget, ended, release, 0.0)
    machine = replace(budget.machine, lessons=(lesson,))
    again = LlamaCpp().plan(budget.model, budget.deployment, machine)
    before, after = (sum(_own(b)) for b in (budget, again))
    sys.stdout.write(f"expected {before / MIB:.0f} MiB, held {peak / MIB:.0f}, ")
    sys.stdout.write(f"expected after it {after / MIB:.0f}\n")
    assert abs(after - peak) <= MIB
    bases = {entry.estimate.basis for entry in again.ranks[0].regions.values()}
    assert Basis.LEARNED in bases


def _own(budget: Budget) -> Iterator[int]:
    for region, entry in budget.ranks[0].regions.items():
        if region not in {Region.FOREIGN, Region.HEADROOM}:
            yield entry.estimate.likely_bytes


def test_that_a_second_start_of_a_real_server_follows_the_first_by_its_log(tmp_path: Path) -> None:
    from tests.helpers.llama_server import serving

    facts = MixFacts(SMALL.architecture, SMALL.layers, SMALL.heads, SMALL.kv_heads)
    path = tmp_path / f"logged-{os.getpid()}.gguf"
    synthetic_gguf.write(SMALL, mix_types("Q4_K_M", SMALL.tensors(), facts), path, speaks=True)
    options = ("-c", "8192", "-np", str(_SLOTS), "-lv", "4")
    here = _plan(path).machine
    lessons: list[Lesson] = []
    for number in range(2):
        log = tmp_path / f"{number}.log"
        with serving(path, tmp_path, *options, log=log):
            pass
        # The wheel's build has no number of its own.
        run = explained(log.read_text(), model=str(path), runtime_version="b11549")
        assert run.cause is None
        assert run.reading.settings["n_ctx"] == 8192
        lessons.append(lesson_of(run, here, log.name, 0.0))
    kv_cache = lessons[0].ranks[0]["kv_cache"].size_bytes
    # 4 layers of 12 heads of 64, K and V in f16: 12 KiB a token.
    assert kv_cache == 8192 * 12 * 1024
    assert lessons[0].key == lessons[1].key
    model = read(files.read(path, CancelToken()))
    plan = Deployment(runtime="llama.cpp", runtime_version="b11549", n_ctx=8192, n_parallel=_SLOTS)
    taught = LlamaCpp().plan(model, plan, replace(here, lessons=tuple(lessons)))
    sources = [entry.estimate.source for entry in taught.ranks[0].regions.values()]
    assert any(source.startswith("2 runs of this plan on this machine") for source in sources)
