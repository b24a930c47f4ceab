"""Paired ratios by round, and the exact sign-flip p."""

from __future__ import annotations

import math

import pytest
from scipy.stats import ttest_rel

from perfkit.stats import paired_ratio


def test_equal_ratios_in_every_round_give_that_ratio_without_width() -> None:
    paired = paired_ratio({0: 10.0, 1: 20.0, 2: 40.0}, {0: 5.0, 1: 10.0, 2: 20.0})
    assert paired.ratio == pytest.approx(0.5)
    assert paired.low == pytest.approx(0.5)
    assert paired.smaller
    assert not paired.larger


def test_the_interval_is_the_paired_t_interval_on_logs() -> None:
    base = {0: 10.0, 1: 11.0, 2: 10.5, 3: 12.0}
    other = {0: 10.4, 1: 11.1, 2: 11.0, 3: 12.9}
    expected = ttest_rel(
        [math.log(other[r]) for r in range(4)], [math.log(base[r]) for r in range(4)]
    ).confidence_interval(0.95)
    paired = paired_ratio(base, other)
    assert paired.low == pytest.approx(math.exp(expected.low))
    assert paired.high == pytest.approx(math.exp(expected.high))


def test_drift_shared_by_both_sides_of_a_round_cancels() -> None:
    base = {r: 10.0 * 1.3**r for r in range(3)}
    other = {r: 9.0 * 1.3**r for r in range(3)}
    paired = paired_ratio(base, other)
    assert paired.high == pytest.approx(0.9)
    assert paired.half_width == pytest.approx(0.0, abs=1e-12)


def test_rounds_that_only_one_side_has_are_counted_and_left_out() -> None:
    paired = paired_ratio({0: 10.0, 1: 10.0, 5: 99.0}, {0: 20.0, 1: 20.0, 7: 1.0})
    assert paired.ratio == pytest.approx(2.0)
    assert (paired.num_pairs, paired.num_unpaired) == (2, 2)
    assert paired.indicative


def test_one_pair_has_a_ratio_but_no_interval_and_proves_nothing() -> None:
    paired = paired_ratio({0: 10.0}, {0: 5.0})
    assert paired.ratio == pytest.approx(0.5)
    assert paired.low is None
    assert not paired.smaller
    assert not paired.larger


def test_sign_flip_p_of_six_like_differences_is_the_smallest_possible() -> None:
    base = dict.fromkeys(range(6), 10.0)
    other = {r: 11.0 + 0.01 * r for r in range(6)}
    assert paired_ratio(base, other).sign_flip_p == pytest.approx(2 / 2**6)


def test_sign_flip_p_counts_assignments() -> None:
    # Differences 1, 2, 3, 4, 5, -6 in log units: the sum is 9, of a total of 21, so a sign assignment
    # is at least as far out when its flipped subset sums to 6 or less: 14 subsets on each side.
    num_subsets = sum(sum(n for i, n in enumerate(range(1, 7)) if mask >> i & 1) <= 6 for mask in range(64))
    assert num_subsets == 14
    base = dict.fromkeys(range(6), 1.0)
    other = {r: math.exp(d) for r, d in enumerate([1, 2, 3, 4, 5, -6])}
    assert paired_ratio(base, other).sign_flip_p == pytest.approx(2 * 14 / 64)


def test_five_pairs_can_never_fire_so_no_p_is_given() -> None:
    assert paired_ratio(dict.fromkeys(range(5), 1.0), dict.fromkeys(range(5), 2.0)).sign_flip_p is None


def test_no_common_round_is_refused() -> None:
    with pytest.raises(ValueError, match="no round in common"):
        paired_ratio({0: 1.0}, {1: 1.0})
