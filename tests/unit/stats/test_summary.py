"""Median, percentile and spread against values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfkit.stats import median, percentile, spread_percent


def test_median_takes_the_middle_of_the_sorted_values() -> None:
    assert median([5.0, 1.0, 3.0]) == 3.0
    assert median([4.0, 1.0, 3.0, 2.0]) == 2.5


def test_percentile_interpolates_between_neighbours() -> None:
    # Position (4 - 1) * 0.25 = 0.75 between 10 and 20.
    assert percentile([40.0, 10.0, 30.0, 20.0], percent=25) == 17.5
    assert percentile([7.0], percent=90) == 7.0


@given(
    st.lists(st.floats(0.1, 1e6), min_size=1, max_size=30),
    st.floats(0, 100),
)
def test_percentile_agrees_with_numpy(values: list[float], percent: float) -> None:
    assert percentile(values, percent=percent) == pytest.approx(float(np.percentile(values, percent)))


def test_spread_is_the_interquartile_range_over_the_median() -> None:
    # p25 = 2, p75 = 4, median 3.
    assert spread_percent([1.0, 2.0, 3.0, 4.0, 5.0]) == pytest.approx(100 * 2 / 3)


@pytest.mark.parametrize("call", [median, spread_percent, lambda v: percentile(v, percent=50)])
def test_no_values_are_refused(call: object) -> None:
    with pytest.raises(ValueError, match="undefined"):
        call([])  # type: ignore[operator]


def test_a_percent_outside_the_scale_is_refused() -> None:
    with pytest.raises(ValueError, match="between 0 and 100"):
        percentile([1.0], percent=101)


def test_a_spread_around_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="median of 0"):
        spread_percent([-1.0, 0.0, 1.0])
