"""Samples are kept in a ring and thinned to what a pixel can show; gaps stay gaps."""

from __future__ import annotations

import tracemalloc

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gui.kit.charts.past import BUCKET_S
from gui.kit.charts.series import Sample, Series, envelope, runs


def test_that_the_ring_forgets_the_oldest() -> None:
    series = Series(capacity=3)
    for second in range(5):
        series.append(Sample(second, second * 10))
    assert series.values[0].tolist() == [2.0, 3.0, 4.0]
    assert series.values[1].tolist() == [20.0, 30.0, 40.0]
    assert series.newest == Sample(4.0, 40)


def test_that_a_missing_value_is_kept_as_missing_and_never_as_nought() -> None:
    series = Series.of([Sample(0, 10), Sample(1, None)])
    assert np.isnan(series.values[1][1])
    assert series.newest == Sample(1.0, None)


def test_that_a_window_begins_one_sample_earlier_so_that_the_line_enters() -> None:
    series = Series.of(Sample(second, second) for second in range(10))
    assert series.window(3.5, 6.0)[0].tolist() == [3.0, 4.0, 5.0, 6.0]


def test_that_the_nearest_sample_to_a_moment_is_found() -> None:
    series = Series.of(Sample(second, second) for second in range(10))
    assert series.nearest(3.4) == Sample(3.0, 3)
    assert series.nearest(99.0) == Sample(9.0, 9)
    assert Series().nearest(1.0) is None


def cut(series: Series) -> list[tuple[float, float]]:
    """From where to where the line runs."""
    values = series.window(-1e9, 1e9)
    return [(values[0][a], values[0][b - 1]) for a, b in runs(values[1])]


def test_that_missing_values_and_pauses_split_the_line() -> None:
    times, values = (0, 1, 2, 3, 10, 11, 12), (1, 1, None, 1, 1, 1, 1)
    series = Series.of(Sample(t, v) for t, v in zip(times, values, strict=True))
    assert cut(series) == [(0, 1), (3, 3), (10, 12)]


def test_that_an_irregular_sample_is_no_gap() -> None:
    assert cut(Series.of(Sample(t, 1) for t in (0.0, 1.0, 2.9, 4.0))) == [(0, 4)]


def test_that_a_slower_pace_is_a_gap_only_until_it_is_usual() -> None:
    # A laptop leaves its socket: every second, then every five.
    times = [*range(20), *range(24, 124, 5)]
    runs_of = cut(Series.of(Sample(t, 1) for t in times))
    assert runs_of[0] == (0, 19)
    assert runs_of[-1][1] == 119
    assert len(runs_of) <= 6
    # From the start every five seconds is no gap at all.
    assert cut(Series.of(Sample(t, 1) for t in range(0, 100, 5))) == [(0, 95)]


def test_that_a_gap_that_is_known_splits_whatever_the_clock_says() -> None:
    series = Series()
    series.append(Sample(1.0, 5))
    series.append(Sample(1.1, 5), after_gap=True)
    assert cut(series) == [(1.0, 1.0), (1.1, 1.1)]
    assert series.nearest(1.05) == Sample(1.05, None)


def test_that_thinning_keeps_every_peak_and_every_dip() -> None:
    places = np.linspace(0, 9.999, 10_000)
    values = np.full(10_000, 5.0)
    values[1234], values[7777] = 99.0, -3.0
    x, y = envelope(places, values)
    assert x.size <= 20
    assert y.max() == 99.0
    assert y.min() == -3.0
    assert x[int(y.argmax())] == 1.0
    assert x[int(y.argmin())] == 7.0


def test_that_few_samples_are_left_as_they_are() -> None:
    places, values = np.array([0.0, 10.5, 20.7]), np.array([1.0, 2.0, 3.0])
    x, y = envelope(places, values)
    assert x.tolist() == places.tolist()
    assert y.tolist() == values.tolist()


def raw_extremes(
    samples: list[tuple[float, int | None]], start: float, end: float
) -> tuple[int, int] | None:
    """By the plain rule: least and greatest of what was sampled in between."""
    inside = [v for t, v in samples if start <= t < end and v is not None]
    return (min(inside), max(inside)) if inside else None


def kept_extremes(series: Series, start: float, end: float) -> tuple[int, int] | None:
    values = series.window(start, end)
    inside = (values[0] >= start) & (values[0] < end) & ~np.isnan(values[1])
    found = values[1][inside]
    return (int(found.min()), int(found.max())) if found.size else None


COURSES = st.lists(
    st.tuples(
        st.floats(0.05, 4.0),
        st.one_of(st.none(), st.integers(0, 2**47)),
    ),
    min_size=1,
    max_size=400,
)


@given(COURSES, st.integers(5, 60), st.integers(0, 60), st.integers(1, 60))
def test_that_no_peak_and_no_dip_is_lost_wherever_one_looks(course, capacity, first, length):
    """Between edges of buckets exactly; full rate exactly everywhere."""
    series, samples, now = Series(capacity), [], 0.0
    for interval, used in course:
        now += interval
        samples.append((now, used))
        series.append(Sample(now, used))
    start, end = first * BUCKET_S, (first + length) * BUCKET_S
    assert kept_extremes(series, start, end) == raw_extremes(samples, start, end)
    assert kept_extremes(series, -1.0, now + 1) == raw_extremes(samples, -1.0, now + 1)
    newest = float(series.values[0, 0])
    for at in (newest, newest + 0.7, newest + 13.1):
        assert kept_extremes(series, at, now + 1) == raw_extremes(samples, at, now + 1)
    times = series.window(-1.0, now + 1)[0]
    assert (np.diff(times) >= 0).all()


def test_that_plan_and_kv_cache_keep_their_own_peaks() -> None:
    series = Series(capacity=4)
    for n in range(400):
        series.append(Sample(n / 10, 100, n if n == 57 else 1, 9 if n == 123 else n % 3))
    old = series.window(0.0, 35.0)
    assert np.nanmax(old[2]) == 57
    assert np.nanmax(old[3]) == 9
    series.forget_plan()
    assert np.isnan(series.window(0.0, 41.0)[2]).all()


def test_that_a_day_is_kept_whole_in_memory_that_does_not_grow() -> None:
    pace, hour = 2, 7200
    series, peaks = Series(hour), {3_600, 100_001, 172_000}
    tracemalloc.start()
    for n in range(86_400 * pace):
        series.append(Sample(n / pace, 10**11 if n in peaks else 10**9 + n % 7))
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert grown < 200_000
    values = series.window(0, 86_400)
    assert set(values[0][values[1] == 10**11]) == {n / pace for n in peaks}
    assert series.start_s is not None
    assert series.start_s < 10
    assert series.values.shape[1] == hour  # and the last hour at full rate
    assert series.nearest(1800.0) == Sample(1800.0, 10**11)
