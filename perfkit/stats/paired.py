"""How much slower or faster one side is than another, from processes that ran side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from perfkit.stats.intervals import MIN_CONFIRMED, checked_logs, t_interval

MIN_SIGN_FLIP_PAIRS = 6
"""The smallest two-sided p of n pairs is 2 / 2^n: only from 6 pairs on can it fall below 0.05."""

_MAX_SIGN_FLIP_PAIRS = 16
"""2^16 flips take well under a second; above that the t interval is good enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedRatio:
    """other / base: below 1 means that `other` is smaller, which for a time is faster."""

    ratio: float
    low: float | None
    high: float | None
    """Interval of the ratio; None for a single pair."""
    num_pairs: int
    num_unpaired: int
    """Rounds in which only one side has a number; they do not enter the ratio."""
    sign_flip_p: float | None
    """Exact two-sided p; None where the number of pairs does not allow a useful one."""
    confidence: float

    @property
    def indicative(self) -> bool:
        """True where too few pairs stand behind the ratio to call it confirmed."""
        return self.num_pairs < MIN_CONFIRMED

    @property
    def half_width(self) -> float | None:
        """Half the length of the interval: what limits the digits worth printing."""
        if self.low is None or self.high is None:
            return None
        return (self.high - self.low) / 2

    @property
    def smaller(self) -> bool:
        """The whole interval lies below 1."""
        return self.high is not None and self.high < 1

    @property
    def larger(self) -> bool:
        """The whole interval lies above 1."""
        return self.low is not None and self.low > 1


def paired_ratio(
    base: Mapping[int, float], other: Mapping[int, float], *, confidence: float = 0.95
) -> PairedRatio:
    """Ratio of `other` to `base` by round, on log values.

    With d_i = log(other_i) - log(base_i) over the rounds that both sides have, the ratio is
    exp(mean d) and its interval exp(mean d +/- t(n - 1) * s_d / sqrt(n)): the paired t interval
    (Student 1908) on logs. The p value is the exact sign-flip (randomisation) test of Fisher (1935).

    Args:
        base: round -> that round's process number, positive.
        other: the same for the side that is compared.

    Raises:
        ValueError: no common round, or a value that is not positive and finite.
    """
    rounds = sorted(base.keys() & other.keys())
    if not rounds:
        raise ValueError("the two sides have no round in common")
    base_logs = checked_logs([base[r] for r in rounds])
    other_logs = checked_logs([other[r] for r in rounds])
    differences = [o - b for o, b in zip(other_logs, base_logs, strict=True)]
    low, high = t_interval(differences, confidence=confidence)
    return PairedRatio(
        ratio=math.exp(math.fsum(differences) / len(differences)),
        low=None if low is None else math.exp(low),
        high=None if high is None else math.exp(high),
        num_pairs=len(rounds),
        num_unpaired=len(base.keys() ^ other.keys()),
        sign_flip_p=_sign_flip_p(differences),
        confidence=confidence,
    )


def _sign_flip_p(differences: list[float]) -> float | None:
    """Share of the 2^n sign assignments whose mean is at least as far from 0 as the one seen."""
    if not MIN_SIGN_FLIP_PAIRS <= len(differences) <= _MAX_SIGN_FLIP_PAIRS:
        return None
    import numpy as np
    from scipy import stats

    outcome = stats.permutation_test(
        (np.asarray(differences),), np.mean, permutation_type="samples", n_resamples=np.inf, vectorized=True
    )
    return float(outcome.pvalue)
