"""When memory ran short: where an episode begins, how far it goes, and where it ends."""

from __future__ import annotations

from dataclasses import replace

from engine.telemetry.snapshot import Missing, Pressure
from engine.telemetry.strain import COMPUTER, Strain, Strains
from tests.helpers.readings import ENGINE, GIB, MIB, card, host, moment


def watched(*spills: int | None, start: int = 0) -> tuple[Strain, ...]:
    """What is kept of a card, once a second, whose work lies in system memory as ``spills``."""
    strains = Strains()
    for second, size in enumerate(spills, start):
        spill = Missing("late") if size is None else size
        strains.take(moment(card(spill_bytes=spill)), second)
    return strains.all


def test_that_a_spill_is_an_episode_with_its_beginning_and_its_most():
    (found,) = watched(0, 100 * MIB, 2 * GIB, 3 * GIB, 2 * GIB)
    assert (found.uuid, found.since_s, found.until_s) == ("GPU-0", 2, 4)
    assert (found.size_bytes, found.worst_bytes) == (2 * GIB, 3 * GIB)
    assert found.is_spill
    assert not found.is_over
    assert found.source == "NVML 580.126.09"


def test_that_an_episode_ends_with_the_last_sample_that_shows_it():
    (found,) = watched(2 * GIB, 2 * GIB, 0, 0)
    assert found.is_over
    assert (found.since_s, found.until_s) == (0, 1)


def test_that_a_late_answer_ends_nothing():
    (found,) = watched(2 * GIB, None, None, 2 * GIB)
    assert (found.since_s, found.until_s, found.is_over) == (0, 3, False)


def test_that_two_times_far_apart_are_two_episodes():
    first, second = watched(2 * GIB, *[0] * 30, GIB)
    assert (first.since_s, first.until_s, first.is_over) == (0, 0, True)
    assert (second.since_s, second.worst_bytes, second.is_over) == (31, GIB, False)


def test_that_nothing_is_said_of_the_time_of_a_gap():
    strains = Strains()
    strains.take(moment(card(spill_bytes=GIB)), 0)
    strains.take(moment(card(spill_bytes=GIB)), 4000, after_gap=True)
    assert [(s.since_s, s.until_s, s.is_over) for s in strains.all] == [
        (0, 0, True),
        (4000, 4000, False),
    ]


def test_that_processes_are_told_largest_first():
    held = (
        replace(ENGINE, spill_bytes=GIB),
        replace(ENGINE, pid=9, name="llama-server", spill_bytes=2 * GIB),
        replace(ENGINE, pid=10, name="idle", spill_bytes=0),
    )
    strains = Strains()
    strains.take(moment(card(spill_bytes=3 * GIB, processes=held)), 0)
    assert strains.all[0].holders == (("llama-server", 2 * GIB), ("VLLM::EngineCor", GIB))


def test_that_scarce_memory_and_pressure_are_one_episode_of_the_computer():
    strains = Strains()
    # Under a twentieth of 64 GiB is 3.2 GiB.
    strains.take(moment(host(available_bytes=4 * GIB, pressure=Pressure.NONE)), 0)
    assert strains.all == ()
    strains.take(moment(host(available_bytes=4 * GIB, pressure=Pressure.SOME)), 1)
    strains.take(moment(host(available_bytes=2 * GIB, pressure=Pressure.CRITICAL)), 2)
    strains.take(moment(host(available_bytes=3 * GIB, pressure=Pressure.NONE)), 3)
    (found,) = strains.all
    assert (found.uuid, found.since_s, found.until_s) == (COMPUTER, 1, 3)
    assert (found.size_bytes, found.worst_bytes) == (3 * GIB, 2 * GIB)
    assert not found.is_spill


def test_that_a_day_of_flapping_stays_bounded():
    strains = Strains()
    for n in range(2000):
        strains.take(moment(card(spill_bytes=GIB)), n * 60)
        strains.take(moment(card(spill_bytes=0)), n * 60 + 1)
    assert len(strains.all) == 500
    assert strains.all[-1].since_s == 1999 * 60
