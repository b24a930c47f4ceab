"""Exact arithmetic on half-open intervals of integer nanoseconds, vectorised."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

Nanoseconds = npt.NDArray[np.int64]


def union(starts: Nanoseconds, ends: Nanoseconds) -> tuple[Nanoseconds, Nanoseconds]:
    """The covered time as disjoint intervals in order; touching ones are joined, empty ones dropped."""
    full = ends > starts
    starts, ends = starts[full], ends[full]
    if not len(starts):
        return starts, ends
    order = np.argsort(starts, kind="stable")
    starts, reach = starts[order], np.maximum.accumulate(ends[order])
    breaks = np.flatnonzero(starts[1:] > reach[:-1])
    first = np.concatenate(([0], breaks + 1))
    last = np.concatenate((breaks, [len(starts) - 1]))
    return starts[first], reach[last]


def covered_ns(starts: Nanoseconds, ends: Nanoseconds) -> int:
    """Nanoseconds that at least one interval covers."""
    merged_starts, merged_ends = union(starts, ends)
    return int((merged_ends - merged_starts).sum())


def covered_by_both_ns(
    starts: Nanoseconds, ends: Nanoseconds, other_starts: Nanoseconds, other_ends: Nanoseconds
) -> int:
    """Nanoseconds that both sets cover: |A| + |B| - |A or B|, exact in integers."""
    either = covered_ns(np.concatenate((starts, other_starts)), np.concatenate((ends, other_ends)))
    return covered_ns(starts, ends) + covered_ns(other_starts, other_ends) - either


def arrays(intervals: Iterable[tuple[int, int]]) -> tuple[Nanoseconds, Nanoseconds]:
    """(start, end) pairs as two arrays."""
    pairs = np.array(list(intervals), dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]
