"""Exact arithmetic on half-open intervals of integer nanoseconds."""

from __future__ import annotations

from collections.abc import Iterable

Interval = tuple[int, int]
"""(start, end) in nanoseconds; end >= start."""


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """The covered time as disjoint intervals in order; touching ones are joined, empty ones dropped."""
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if end <= start:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def covered_ns(intervals: Iterable[Interval]) -> int:
    """Nanoseconds that at least one interval covers."""
    return sum(end - start for start, end in union(intervals))
