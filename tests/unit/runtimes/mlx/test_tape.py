"""Command buffers by hand: when they are committed, and when what they hold is freed."""

from __future__ import annotations

from engine.runtimes.mlx.tape import Tape

MEBI = 2**20


def test_that_inputs_are_freed_when_their_command_buffer_ends_not_when_they_are_last_used():
    tape = Tape(0)
    first = tape.run((), 10 * MEBI)
    second = tape.run((first,), 10 * MEBI, last_use=(first,))
    tape.run((second,), 10 * MEBI, last_use=(second,))
    # 3 × 10 Mi elements of 2 bytes: none of them is freed, since nothing is committed yet.
    assert tape.peak_bytes == tape.live_bytes == 60 * MEBI
    # At the last allocation one was done with and waited.
    assert tape.pending_bytes == 20 * MEBI


def test_that_the_queue_holds_ten_command_buffers_and_the_open_one():
    tape = Tape(0)
    last = tape.run((), 60 * MEBI)
    for _ in range(20):
        last = tape.run((last,), 60 * MEBI, last_use=(last,))
    # More than 50 Mi elements: every operation is a command buffer of its own. The first one
    # frees nothing, the next ones an input each. Ten wait: their inputs and the newest output.
    assert tape.peak_bytes == (10 + 2) * 120 * MEBI


def test_that_elements_count_and_not_bytes():
    narrow, wide = Tape(0, width=2), Tape(0, width=4)
    for tape in (narrow, wide):
        last = tape.run((), 26 * MEBI)
        for _ in range(30):
            last = tape.run((last,), 26 * MEBI, last_use=(last,))
    assert wide.peak_bytes == 2 * narrow.peak_bytes


def test_that_fifty_one_dispatches_are_one_command_buffer():
    tape = Tape(0)
    kept = tape.run((), 1, dispatches=0)
    # 12 command buffers of 51 dispatches are asked for; after the eleventh the first is freed.
    for _ in range(11 * 51 - 1):
        tape.run((), into=kept)
    held = tape.run((), MEBI, dispatches=0)
    before = tape.live_bytes
    tape.drop((held,))
    for _ in range(51 * 11):
        tape.run((), into=kept)
    assert before - tape.live_bytes == 2 * MEBI


def test_that_weights_fill_a_command_buffer_without_being_allocated():
    light, heavy = Tape(0), Tape(0)
    for tape, weights in ((light, 0), (heavy, 25 * MEBI)):
        last = tape.run((), 10 * MEBI)
        for _ in range(40):
            last = tape.run((last,), 10 * MEBI, last_use=(last,), weights=weights)
    assert heavy.peak_bytes < light.peak_bytes


def test_that_an_output_in_the_place_of_an_input_allocates_nothing():
    tape = Tape(7)
    found = tape.run((), 100)
    assert tape.run((found,), into=found) is found
    assert tape.live_bytes == 7 + 200
    assert tape.largest_bytes == 200
