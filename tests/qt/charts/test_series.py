"""Samples are kept in a ring and thinned to what a pixel can show; gaps stay gaps."""

from __future__ import annotations

import numpy as np

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


def test_that_missing_values_and_pauses_split_the_line() -> None:
    times = np.array([0.0, 1, 2, 3, 10, 11, 12])
    values = np.array([1.0, 1, np.nan, 1, 1, 1, 1])
    assert runs(times, values) == [(0, 2), (3, 4), (4, 7)]


def test_that_an_irregular_sample_is_no_gap() -> None:
    times = np.array([0.0, 1.0, 2.9, 4.0])
    assert runs(times, np.ones(4)) == [(0, 4)]


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
