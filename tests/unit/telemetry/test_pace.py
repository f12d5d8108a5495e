"""How often is asked, and a source that is slow or stumbles, beside the others."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from engine.errors import TelemetryError
from engine.telemetry.adapters.apple import AppleAdapter
from engine.telemetry.adapters.prometheus import PrometheusAdapter
from engine.telemetry.adapters.windows import WindowsAdapter
from engine.telemetry.lane import Lane
from engine.telemetry.pace import Pace
from engine.telemetry.power import Power, on_battery
from engine.telemetry.probe import LiveSampler
from engine.telemetry.snapshot import Missing, ProcessReading
from tests.helpers.readings import card, host, moment

if TYPE_CHECKING:
    from pathlib import Path

    from engine.telemetry.snapshot import DeviceReading

MIB, GIB = 2**20, 2**30


class Clock:
    """A clock that a test moves by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Source:
    """A source that answers as its script says, one entry a question; the last one holds."""

    name = "made-up"

    def __init__(
        self, *script: tuple[DeviceReading, ...] | Exception, every_s: float = 0.0
    ) -> None:
        self._script = list(script)
        self.every_s = every_s
        self.asked = 0

    def sample(self) -> tuple[DeviceReading, ...]:
        self.asked += 1
        answer = self._script.pop(0) if len(self._script) > 1 else self._script[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        pass


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def pace(clock: Clock) -> Pace:
    return Pace(lambda: False, clock)


def test_that_a_load_makes_the_pace_fast_for_twenty_seconds(pace: Pace, clock: Clock):
    pace.take(moment(card(used_bytes=GIB)))
    assert pace.interval_s == 1.0
    pace.take(moment(card(used_bytes=GIB + 255 * MIB)))
    assert pace.interval_s == 1.0
    pace.take(moment(card(used_bytes=2 * GIB)))
    assert pace.interval_s == 0.2
    clock.now = 19.9
    assert pace.interval_s == 0.2
    clock.now = 20.1
    assert pace.interval_s == 1.0


def test_that_an_unload_and_a_device_that_was_lost_in_between_count_too(pace: Pace):
    pace.take(moment(card(used_bytes=20 * GIB)))
    pace.take(moment(card(used_bytes=Missing("gone"), free_bytes=Missing("gone"))))
    assert pace.interval_s == 1.0
    pace.take(moment(card(used_bytes=GIB)))
    assert pace.interval_s == 0.2


def test_that_of_the_host_only_runtimes_count(pace: Pace):
    def ram(server: int, browser: int) -> DeviceReading:
        rows = (
            ProcessReading(7, "llama-server", MIB, "llama-server -m a.gguf", server),
            ProcessReading(8, "firefox", browser, "firefox", 0),
        )
        return host(processes=rows, used_bytes=browser)

    pace.take(moment(ram(GIB, GIB)))
    pace.take(moment(ram(GIB, 9 * GIB)))
    assert pace.interval_s == 1.0
    pace.take(moment(ram(2 * GIB, 9 * GIB)))
    assert pace.interval_s == 0.2


def test_that_on_a_battery_and_unseen_everything_waits_longer(clock: Clock):
    pace = Pace(lambda: True, clock)
    assert (pace.factor, pace.interval_s) == (5.0, 5.0)
    pace.is_seen = False
    assert pace.interval_s == 30.0


def supply(root: Path, name: str, **fields: str) -> None:
    folder = root / "sys/class/power_supply" / name
    folder.mkdir(parents=True, exist_ok=True)
    for field, text in fields.items():
        (folder / field).write_text(f"{text}\n")


def test_that_a_battery_counts_when_it_discharges_without_mains(tmp_path: Path):
    assert not on_battery(tmp_path)
    supply(tmp_path, "BAT0", type="Battery", status="Discharging")
    assert on_battery(tmp_path)
    supply(tmp_path, "AC", type="Mains", online="1")
    assert not on_battery(tmp_path)
    supply(tmp_path, "AC", type="Mains", online="0")
    assert on_battery(tmp_path)
    supply(tmp_path, "BAT0", type="Battery", status="Full")
    assert not on_battery(tmp_path)


def test_that_a_mouse_s_battery_is_not_the_computer_s(tmp_path: Path):
    supply(tmp_path, "hid", type="Battery", status="Discharging", scope="Device")
    assert not on_battery(tmp_path)


@pytest.mark.skipif("sys.platform != 'linux'", reason="reads sysfs")
def test_that_the_supply_is_looked_at_twice_a_minute(tmp_path: Path, clock: Clock):
    power = Power(tmp_path, clock)
    assert not power.is_battery()
    supply(tmp_path, "BAT0", type="Battery", status="Discharging")
    clock.now = 29.0
    assert not power.is_battery()
    clock.now = 30.0
    assert power.is_battery()


def test_that_a_costly_source_is_asked_as_seldom_as_it_says(clock: Clock):
    source = Source((card(),), every_s=5.0)
    lane = Lane(source, 5, 5, clock)
    ages = []
    for second in range(11):
        clock.now = float(second)
        lane.ask()
        readings, failure = lane.answer()
        assert failure == ""
        ages.append(readings[0].age_s)
    lane.close()
    assert source.asked == 3
    assert ages == [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0]


def test_that_on_a_battery_it_is_left_alone_longer(clock: Clock):
    source = Source((card(),), every_s=2.0)
    lane = Lane(source, 5, 5, clock)
    for second in range(11):
        clock.now = float(second)
        lane.ask(5.0)
        lane.answer()
    lane.close()
    assert source.asked == 2


def test_that_a_source_that_fails_stays_failed_until_it_is_asked_again(clock: Clock):
    source = Source((card(),), TelemetryError("It is off."), (card(),), every_s=5.0)
    lane = Lane(source, 5, 5, clock)
    said = []
    for second in (0, 5, 7, 10):
        clock.now = float(second)
        lane.ask()
        readings, failure = lane.answer()
        said.append((failure, isinstance(readings[0].used_bytes, Missing)))
    lane.close()
    assert said == [("", False), ("It is off.", True), ("It is off.", True), ("", False)]


def test_that_a_source_far_away_holds_what_it_said_while_its_answer_is_on_the_way(clock: Clock):
    on_its_way = threading.Event()

    class Far(Source):
        patience_s = 6.0

        def sample(self) -> tuple[DeviceReading, ...]:
            if self.asked:
                on_its_way.wait(30)
            return super().sample()

    # The second answer never comes in time: a snapshot waits for none of it.
    lane = Lane(Far((card(),), every_s=5.0), 0.0, 10, clock)
    said = []
    for second in (0, 5, 10.9, 11):
        clock.now = float(second)
        lane.ask()
        ((reading,), failure) = lane.answer()
        said.append((reading.age_s, isinstance(reading.used_bytes, int), bool(failure)))
    on_its_way.set()
    lane.close()
    assert said == [(0, True, False), (5, True, False), (10.9, True, False), (0, False, True)]


def test_that_a_binding_that_stumbles_costs_one_sample_and_not_the_lane():
    broken = Source((card(),), ValueError("NULL pointer \x1b[2J"), (card(),))
    sampler = LiveSampler((broken, Source((host(),))), 10, 10)
    good, bad, again = (sampler.sample() for _ in range(3))
    sampler.close()
    assert good.notes == again.notes == ()
    assert bad.notes == ("made-up cannot be read now: ValueError: NULL pointer \\x1b[2J.",)
    assert isinstance(bad.devices[0].used_bytes, Missing)
    assert bad.devices[1].used_bytes == host().used_bytes
    assert again.devices[0].used_bytes == card().used_bytes


def test_that_a_sampler_waits_for_the_next_as_long_as_nothing_new_can_come(clock: Clock):
    slow, fast = Source((card(),), every_s=5.0), Source((host(),))
    alone = LiveSampler((slow,), 10, 10, clock)
    both = LiveSampler((slow, fast), 10, 10, clock)
    assert (alone.interval_s, both.interval_s) == (5.0, 1.0)
    alone.close()
    both.close()


def test_that_a_fast_pace_asks_no_costly_source_oftener_than_once_a_second():
    assert WindowsAdapter.every_s == AppleAdapter.every_s == 1.0
    assert PrometheusAdapter.every_s == 5.0
