"""Order statistics of the samples of one process."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence


def median(values: Sequence[float]) -> float:
    """Middle value; the mean of the two middle values for an even count.

    Raises:
        ValueError: no values.
    """
    if not values:
        raise ValueError("the median of no values is undefined")
    return statistics.median(values)


def percentile(values: Sequence[float], *, percent: float) -> float:
    """Linearly interpolated percentile: definition 7 of Hyndman and Fan (1996), numpy's default.

    Args:
        percent: 0 to 100.

    Raises:
        ValueError: no values, or a percent outside 0 to 100.
    """
    if not values:
        raise ValueError("a percentile of no values is undefined")
    if not 0 <= percent <= 100:
        raise ValueError(f"percent must lie between 0 and 100, not {percent}")
    ordered = sorted(values)
    position = (len(ordered) - 1) * percent / 100
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def spread_percent(values: Sequence[float]) -> float:
    """(p75 - p25) / median, in percent: the interquartile range, relative to the median.

    Raises:
        ValueError: no values, or a median of 0.
    """
    middle = median(values)
    if middle == 0:
        raise ValueError("a relative spread around a median of 0 is undefined")
    return 100 * (percentile(values, percent=75) - percentile(values, percent=25)) / middle
