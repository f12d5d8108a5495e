"""Ceilings, spill and the alert: when it speaks, and when it keeps silent."""

from __future__ import annotations

from dataclasses import replace

from engine.telemetry.pressure import CeilingAlert, ceiling_bytes, scarce_bytes, spilled_bytes
from engine.telemetry.snapshot import Missing, PoolKind
from tests.helpers.readings import GIB, MIB, RESERVED, TOTAL, card, host, moment


def told(alert: CeilingAlert, *shares: float | None, start: int = 0) -> list[int]:
    """The seconds at which the alert spoke while a card of 100 GiB held ``shares`` per cent."""
    base = card(total_bytes=100 * GIB, reserved_bytes=0)
    found = []
    for second, share in enumerate(shares, start):
        used = Missing("late") if share is None else round(share * GIB)
        if alert.look(moment(replace(base, used_bytes=used), second=second)):
            found.append(second)
    return found


def test_that_the_ceiling_is_what_a_process_may_get():
    assert ceiling_bytes(card()) == TOTAL - RESERVED
    assert ceiling_bytes(card(ceiling_bytes=20 * GIB)) == 20 * GIB
    assert ceiling_bytes(card(reserved_bytes=Missing("not told"))) == TOTAL
    assert ceiling_bytes(card(total_bytes=Missing("lost"))) is None


def test_that_a_carve_out_is_never_taken_for_the_ceiling():
    apu = card(pool=PoolKind.CARVE_OUT, total_bytes=512 * MIB, used_bytes=500 * MIB)
    assert ceiling_bytes(apu) is None
    assert CeilingAlert(90, 0).look(moment(apu)) == ()
    assert ceiling_bytes(replace(apu, ceiling_bytes=120 * GIB)) == 120 * GIB


def test_that_it_must_hold_and_is_told_once_an_episode():
    alert = CeilingAlert(95, 3)
    assert told(alert, 90, 96, 96, 96, 96, 96, 96) == [4]
    # A dip that is not well below is the same episode.
    assert told(alert, 94, 94, 96, 96, 96, 96, 96, start=10) == []
    assert told(alert, 91, 96, 96, 96, 96, 96, start=30) == [34]


def test_that_a_short_peak_is_no_alert():
    assert told(CeilingAlert(95, 3), 96, 96, 90, 96, 96, 90, 96, 96) == []


def test_that_so_much_left_counts_only_on_a_device_that_can_have_it_left():
    # A card of 100 GiB with 8 left is at 92; one of 100 GiB never has 128 left.
    assert told(CeilingAlert(95, 0, 8 * GIB), 91, 92) == [1]
    assert told(CeilingAlert(95, 0, 128 * GIB), 10, 50, 94, 95) == [3]


def test_that_what_cannot_be_read_begins_and_ends_nothing():
    alert = CeilingAlert(95, 3)
    assert told(alert, 96, 96, None, 96, 96, 96, 96) == [6]
    assert told(alert, None, None, 96, 96, 96, 96, 96, start=10) == []


def test_that_a_little_spill_and_an_untold_one_are_nothing():
    assert spilled_bytes(card()) is None
    assert spilled_bytes(card(spill_bytes=255 * MIB)) is None
    assert spilled_bytes(card(spill_bytes=2 * GIB)) == 2 * GIB


def test_that_scarce_memory_is_told_by_what_can_still_be_had():
    assert scarce_bytes(moment(host())) is None
    assert scarce_bytes(moment(host(free_bytes=3 * GIB))) == 3 * GIB  # of 64
    assert scarce_bytes(moment(host(free_bytes=GIB, available_bytes=20 * GIB))) is None
    assert scarce_bytes(moment(host(free_bytes=Missing("x"), available_bytes=Missing("x")))) is None
    assert scarce_bytes(moment(card())) is None
