"""Puts intervals into as few rows as the rules of a timeline allow; exact, in integer nanoseconds."""

from __future__ import annotations

import heapq
from collections.abc import Sequence


def pack(starts_ns: Sequence[int], ends_ns: Sequence[int], *, tolerance_ns: int = 0) -> list[int]:
    """Row of each interval: the lowest-numbered row that is free when it starts.

    With a tolerance a row counts as free that many nanoseconds before its last interval ends. Zero-length
    intervals at one instant share a row: they cannot overlap.
    """
    rows = [0] * len(starts_ns)
    free: list[int] = []
    busy: list[tuple[int, int]] = []
    num_rows = 0
    for index in sorted(range(len(starts_ns)), key=lambda i: (starts_ns[i], ends_ns[i])):
        while busy and busy[0][0] - tolerance_ns <= starts_ns[index]:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            row = heapq.heappop(free)
        else:
            row, num_rows = num_rows, num_rows + 1
        rows[index] = row
        heapq.heappush(busy, (ends_ns[index], row))
    return rows


def pack_nested(starts_ns: Sequence[int], ends_ns: Sequence[int]) -> list[int]:
    """The same, where an interval may also lie entirely inside another one of its row."""
    rows = [0] * len(starts_ns)
    open_ends: list[list[int]] = []
    for index in sorted(range(len(starts_ns)), key=lambda i: (starts_ns[i], -ends_ns[i])):
        for ends in open_ends:
            while ends and ends[-1] <= starts_ns[index]:
                ends.pop()
        fits = (row for row, ends in enumerate(open_ends) if not ends or ends_ns[index] <= ends[-1])
        rows[index] = next(fits, len(open_ends))
        if rows[index] == len(open_ends):
            open_ends.append([])
        open_ends[rows[index]].append(ends_ns[index])
    return rows
