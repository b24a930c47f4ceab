"""The t interval over processes, against tables and by coverage."""

from __future__ import annotations

import math
import random

import pytest

from perfkit.stats import process_interval


def test_three_processes_match_the_t_table() -> None:
    # Logs are -0.1, 0, 0.1: mean 0, s = 0.1, t(0.975, 2) = 4.3027, half = 4.3027 * 0.1 / sqrt(3) = 0.24841.
    interval = process_interval([math.exp(-0.1), 1.0, math.exp(0.1)])
    assert interval.median == 1.0
    assert interval.low == pytest.approx(math.exp(-0.24841), abs=1e-5)
    assert interval.high == pytest.approx(math.exp(0.24841), abs=1e-5)
    assert interval.num_processes == 3
    assert not interval.indicative


def test_order_of_the_processes_is_kept_and_the_median_is_theirs() -> None:
    interval = process_interval([30.0, 10.0, 20.0])
    assert interval.values == (30.0, 10.0, 20.0)
    assert (interval.minimum, interval.median, interval.maximum) == (10.0, 20.0, 30.0)


def test_one_process_has_no_interval() -> None:
    interval = process_interval([12.0])
    assert interval.low is None
    assert interval.high is None
    assert interval.half_width is None
    assert interval.indicative


def test_two_processes_have_a_wide_interval_and_are_indicative() -> None:
    # Logs 0 and 0.2: mean 0.1, s = 0.141421, t(0.975, 1) = 12.7062, half = 1.27062.
    interval = process_interval([1.0, math.exp(0.2)])
    assert interval.low == pytest.approx(math.exp(0.1 - 1.27062), rel=1e-5)
    assert interval.high == pytest.approx(math.exp(0.1 + 1.27062), rel=1e-5)
    assert interval.indicative


def test_equal_processes_have_an_interval_of_no_width() -> None:
    interval = process_interval([5.0, 5.0, 5.0])
    assert interval.low == pytest.approx(5.0)
    assert interval.half_width == pytest.approx(0.0)


def test_a_higher_confidence_is_wider() -> None:
    narrow = process_interval([1.0, 1.1, 1.2], confidence=0.9)
    wide = process_interval([1.0, 1.1, 1.2], confidence=0.99)
    assert narrow.half_width is not None
    assert wide.half_width is not None
    assert narrow.half_width < wide.half_width


def test_the_interval_covers_the_true_median_as_often_as_it_says() -> None:
    generator = random.Random(7)
    num_covered = 0
    for _ in range(400):
        interval = process_interval([100 * math.exp(generator.gauss(0, 0.05)) for _ in range(4)])
        assert interval.low is not None
        assert interval.high is not None
        num_covered += interval.low <= 100 <= interval.high
    # 95% of 400 is 380 with a standard deviation of 4.4.
    assert 362 <= num_covered <= 398


@pytest.mark.parametrize("values", [[], [1.0, 0.0], [1.0, -2.0], [math.nan], [math.inf]])
def test_what_is_no_measurement_is_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match=r"process gave|positive and finite"):
        process_interval(values)
