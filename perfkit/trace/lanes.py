"""Plans the rows of a compacted trace: each device slice gets a lane of its group on its device."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from perfkit.trace.events import Event, Place, device_args
from perfkit.trace.groups import LaneSettings, is_on_device
from perfkit.trace.packing import pack, pack_nested

ANNOTATION_GROUP = "annotations"
GPU_ANNOTATION_CAT = "gpu_user_annotation"
_FIRST_TID = 1000
"""Lane tids start above every stream that a driver hands out, and above all tids of the same process."""

Row = tuple[Place, Place]


@dataclass(frozen=True, slots=True)
class Lane:
    """One row of the compacted trace."""

    pid: Place
    tid: int
    group: str
    number: int
    """From 0 within the group."""
    title: str
    sort_index: int


@dataclass(frozen=True, slots=True)
class LanePlan:
    """Which event goes to which lane; events that are not listed stay where they are."""

    lanes: list[Lane]
    lane_of: dict[int, Lane]
    """By position of the event."""
    original_rows: set[Row]
    """Rows that held measured slices (or synchronisation slices) before."""
    crossing: int
    """Slices that overlap an earlier slice of their original row without lying inside it."""


def plan_lanes(events: Sequence[Event], *, settings: LaneSettings, tolerance_ns: int = 0) -> LanePlan:
    """Packs the device slices of every group, and the GPU annotations with nesting allowed."""
    groups: dict[tuple[Place, str], list[int]] = defaultdict(list)
    for index, event in enumerate(events):
        if is_on_device(event.cat) and event.is_slice:
            collective = device_args(event).collective or ""
            name = settings.group_of(event.name, cat=event.cat, collective=collective)
            groups[event.pid, name].append(index)
        elif event.cat == GPU_ANNOTATION_CAT and event.is_slice:
            groups[event.pid, ANNOTATION_GROUP].append(index)
    lanes: list[Lane] = []
    lane_of: dict[int, Lane] = {}
    free_tid = _first_free_tids(events)
    for pid, group in sorted(groups, key=lambda key: (str(key[0]), _rank(settings, key[1]))):
        members = groups[pid, group]
        rows = _rows(events, members, group, tolerance_ns)
        made = [
            Lane(pid, free_tid[pid] + n, group, n, _title(settings, group, n), len(lanes) + n)
            for n in range(max(rows) + 1)
        ]
        free_tid[pid] += len(made)
        lanes.extend(made)
        lane_of.update((index, made[row]) for index, row in zip(members, rows, strict=True))
    slices = [i for i, lane in lane_of.items() if lane.group != ANNOTATION_GROUP]
    original_rows = {(events[i].pid, events[i].tid) for i in slices}
    return LanePlan(lanes, lane_of, original_rows, count_crossing(events[i] for i in slices))


def count_crossing(slices: Iterable[Event]) -> int:
    """Slices that begin inside an earlier slice of their row and end after it.

    One that crosses is not counted as an obstacle to the next, as in a viewer that drops it.
    """
    rows: dict[Row, list[tuple[int, int]]] = defaultdict(list)
    for event in slices:
        rows[event.pid, event.tid].append((event.start_ns, -event.end_ns))
    crossing = 0
    for members in rows.values():
        opened: list[int] = []
        for start_ns, negative_end_ns in sorted(members):
            while opened and opened[-1] <= start_ns:
                opened.pop()
            if opened and -negative_end_ns > opened[-1]:
                crossing += 1
            else:
                opened.append(-negative_end_ns)
    return crossing


def _rows(events: Sequence[Event], members: list[int], group: str, tolerance_ns: int) -> list[int]:
    starts_ns = [events[i].start_ns for i in members]
    ends_ns = [events[i].end_ns for i in members]
    if group == ANNOTATION_GROUP:
        return pack_nested(starts_ns, ends_ns)
    return pack(starts_ns, ends_ns, tolerance_ns=tolerance_ns)


def _rank(settings: LaneSettings, group: str) -> tuple[int, str]:
    return (-1, "") if group == ANNOTATION_GROUP else settings.rank(group)


def _title(settings: LaneSettings, group: str, number: int) -> str:
    return settings.label(group) if number == 0 else f"{settings.label(group)} {number + 1}"


def _first_free_tids(events: Sequence[Event]) -> dict[Place, int]:
    free: dict[Place, int] = defaultdict(lambda: _FIRST_TID)
    for event in events:
        if isinstance(event.tid, int) and event.tid >= free[event.pid]:
            free[event.pid] = event.tid + 1
    return free
