"""The interval of a positive quantity of which each fresh process gave one number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from perfkit.stats.summary import median

MIN_CONFIRMED = 3
"""Fewer processes than this give an indication, not a confirmed number: with two, nothing tells a
disturbed process from a good one, and the t quantile (12.7 at 95%) makes any interval useless."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessInterval:
    """One number per process, its median, and a confidence interval where there is one."""

    values: tuple[float, ...]
    """In the order given; one per process."""
    median: float
    low: float | None
    high: float | None
    """Both None for a single process: one number says nothing about how processes differ."""
    confidence: float

    @property
    def num_processes(self) -> int:
        """How many processes stand behind the median."""
        return len(self.values)

    @property
    def minimum(self) -> float:
        """Smallest of the processes."""
        return min(self.values)

    @property
    def maximum(self) -> float:
        """Largest of the processes."""
        return max(self.values)

    @property
    def indicative(self) -> bool:
        """True where too few processes stand behind the number to call it confirmed."""
        return self.num_processes < MIN_CONFIRMED

    @property
    def half_width(self) -> float | None:
        """Half the length of the interval: what limits the digits worth printing."""
        if self.low is None or self.high is None:
            return None
        return (self.high - self.low) / 2


def process_interval(values: Sequence[float], *, confidence: float = 0.95) -> ProcessInterval:
    """Median of the processes with Student's t interval on the log values.

    The interval is exp(mean(x) +/- t(n - 1) * s / sqrt(n)) with x = log(value): the one-sample t
    interval (Student 1908) on the scale on which times are closer to symmetric, so that it is never
    negative. For log-normal values it covers the median of the processes.

    Args:
        values: one positive number per process, any unit.

    Raises:
        ValueError: no values, or one that is not positive and finite.
    """
    logs = checked_logs(values)
    low, high = t_interval(logs, confidence=confidence)
    return ProcessInterval(
        values=tuple(values),
        median=median(values),
        low=None if low is None else math.exp(low),
        high=None if high is None else math.exp(high),
        confidence=confidence,
    )


def checked_logs(values: Sequence[float]) -> list[float]:
    """Natural logarithms.

    Raises:
        ValueError: no values, or one that is not positive and finite.
    """
    if not values:
        raise ValueError("no process gave a number")
    for value in values:
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"a measured value must be positive and finite, not {value}")
    return [math.log(value) for value in values]


def t_interval(values: Sequence[float], *, confidence: float) -> tuple[float | None, float | None]:
    """mean +/- t((1 + confidence) / 2, n - 1) * s / sqrt(n); (None, None) for fewer than two values."""
    if len(values) < 2:
        return None, None
    from scipy import stats

    n = len(values)
    mean = math.fsum(values) / n
    variance = math.fsum((v - mean) ** 2 for v in values) / (n - 1)
    half = float(stats.t.ppf((1 + confidence) / 2, n - 1)) * math.sqrt(variance / n)
    return mean - half, mean + half
