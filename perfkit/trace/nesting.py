"""Which named range encloses what, per thread: one sort and one sweep."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from perfkit.trace.events import Event, Place

T = TypeVar("T")
Thread = tuple[Place, Place]


def by_thread(events: Iterable[Event]) -> dict[Thread, list[Event]]:
    """Events of each (pid, tid), outermost first: by start, then by descending duration."""
    threads: dict[Thread, list[Event]] = defaultdict(list)
    for event in events:
        threads[event.pid, event.tid].append(event)
    for members in threads.values():
        members.sort(key=lambda e: (e.start_ns, -e.dur_ns))
    return dict(threads)


def innermost(ranges: Iterable[Event], calls: Iterable[Event], value: Callable[[Event], T]) -> dict[int, T]:
    """For each call, `value` of the innermost range of its thread in which it starts.

    The result is keyed by the position of the call in `calls`; a call outside all ranges has no entry.
    Ranges that cross instead of nesting are tolerated: the one that began last wins.
    """
    threads = by_thread(ranges)
    waiting: dict[Thread, list[tuple[int, int]]] = defaultdict(list)
    for position, call in enumerate(calls):
        waiting[call.pid, call.tid].append((call.start_ns, position))
    found: dict[int, T] = {}
    for thread, points in waiting.items():
        points.sort()
        _sweep(threads.get(thread, []), points, value, found)
    return found


def _sweep(
    ranges: Sequence[Event],
    points: Sequence[tuple[int, int]],
    value: Callable[[Event], T],
    found: dict[int, T],
) -> None:
    opened: list[tuple[int, Event]] = []
    next_range = 0
    for time_ns, position in points:
        while next_range < len(ranges) and ranges[next_range].start_ns <= time_ns:
            opened.append((ranges[next_range].end_ns, ranges[next_range]))
            next_range += 1
        while opened and opened[-1][0] <= time_ns:
            opened.pop()
        if opened:
            found[position] = value(opened[-1][1])
