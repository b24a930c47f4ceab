"""Time of CPU ops without the ops they call, so that sums over ops count every nanosecond once."""

from __future__ import annotations

from collections.abc import Iterable

from perfkit.trace.events import Event
from perfkit.trace.nesting import by_thread


def self_times(ops: Iterable[Event]) -> list[tuple[Event, int]]:
    """Each op with its own nanoseconds: its duration less that of the ops nested directly in it.

    On every thread the self times of nested ops add up to the duration of the outermost ones. Ops that
    cross (a clock artefact of a nanosecond or two) are cut where the next one starts.
    """
    times: list[tuple[Event, int]] = []
    for members in by_thread(ops).values():
        times.extend(_self_times_of_thread(members))
    return times


def _self_times_of_thread(members: list[Event]) -> list[tuple[Event, int]]:
    own = [0] * len(members)
    opened: list[tuple[int, int]] = []
    now_ns = 0
    for position, event in enumerate(members):
        now_ns = _close_until(event.start_ns, now_ns, opened, own)
        if opened:
            own[opened[-1][1]] += event.start_ns - now_ns
        now_ns = event.start_ns
        end_ns = min(event.end_ns, opened[-1][0]) if opened else event.end_ns
        opened.append((end_ns, position))
    if opened:
        _close_until(opened[0][0], now_ns, opened, own)
    return list(zip(members, own, strict=True))


def _close_until(time_ns: int, now_ns: int, opened: list[tuple[int, int]], own: list[int]) -> int:
    while opened and opened[-1][0] <= time_ns:
        end_ns, position = opened.pop()
        own[position] += end_ns - now_ns
        now_ns = end_ns
    return now_ns
