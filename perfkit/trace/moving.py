"""Rewrites a trace to a lane plan: slices, the flow ends bound to them, and the names of the rows."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from perfkit.trace.document import raw_json, raw_object, with_fields
from perfkit.trace.events import Event, device_args
from perfkit.trace.lanes import Lane, LanePlan, Row

FLOW_PHASES = frozenset({"s", "t", "f"})
_TID_KEY = re.compile(rb'"tid"\s*:\s*(-?\d+)(?=\s*[,}])')
_STREAM_KEY = re.compile(rb'"stream"\s*:\s*(-?\d+)(?=\s*[,}])')
ROW_METADATA = frozenset({"thread_name", "thread_sort_index"})
STREAM_ARG = "stream"
ORIGINAL_STREAM_ARG = "original_stream"
ORIGINAL_TID_ARG = "original_tid"
PLACEMENT_ARGS = frozenset({STREAM_ARG, ORIGINAL_STREAM_ARG, ORIGINAL_TID_ARG})
"""The arguments that compaction may change or add."""


@dataclass(frozen=True, slots=True)
class Moved:
    """The new events; those that did not move keep their text and order."""

    raws: list[msgspec.Raw]
    num_flows_moved: int
    num_flows_unbound: int
    """Flow ends on a device row at a time at which it had no slice; left where they were."""


def move_to_lanes(events: Sequence[Event], raws: Sequence[msgspec.Raw], plan: LanePlan) -> Moved:
    """Every event of the trace after compaction, followed by the names of the lanes."""
    binder = _FlowBinder(events, plan)
    gone = _emptied_rows(events, plan)
    output: list[msgspec.Raw] = []
    moved = unbound = 0
    for index, (event, raw) in enumerate(zip(events, raws, strict=True)):
        lane = plan.lane_of.get(index)
        if lane is not None:
            output.append(_moved_slice(event, raw, lane))
        elif event.ph in FLOW_PHASES and (event.pid, event.tid) in binder.rows:
            target = binder.lane_at(event)
            moved, unbound = moved + (target is not None), unbound + (target is None)
            output.append(raw if target is None else _moved_flow(raw, target.tid))
        elif event.ph == "M" and event.name in ROW_METADATA and (event.pid, event.tid) in gone:
            continue
        else:
            output.append(raw)
    return Moved(output + lane_metadata(plan.lanes), moved, unbound)


def lane_metadata(lanes: Sequence[Lane]) -> list[msgspec.Raw]:
    """Name and order of each lane's row."""
    rows: list[msgspec.Raw] = []
    for lane in lanes:
        place = {"ph": "M", "ts": 0, "pid": lane.pid, "tid": lane.tid}
        rows.append(raw_json({**place, "name": "thread_name", "args": {"name": lane.title}}))
        rows.append(raw_json({**place, "name": "thread_sort_index", "args": {"sort_index": lane.sort_index}}))
    return rows


def _moved_slice(event: Event, raw: msgspec.Raw, lane: Lane) -> msgspec.Raw:
    return _spliced(event, raw, lane) or _reassembled(event, raw, lane)


def _spliced(event: Event, raw: msgspec.Raw, lane: Lane) -> msgspec.Raw | None:
    """The usual case without taking the event apart: integer tid, equal stream argument, flat arguments.

    Quotes inside JSON strings are escaped, so a quoted key followed by a colon can only be a key; each must
    occur exactly once. None when anything is unusual.
    """
    text, args = bytes(raw), bytes(event.args)
    place = text.find(args)
    if type(event.tid) is not int or args.count(b"{") != 1 or text.rfind(args) != place:
        return None
    stream = _STREAM_KEY.search(args)
    if stream is None or _STREAM_KEY.search(args, stream.end()) or int(stream[1]) != event.tid:
        return None
    if ORIGINAL_STREAM_ARG.encode() in args:
        return None
    tid = b'"tid":%d' % lane.tid
    head, num_head = _TID_KEY.subn(tid, text[:place])
    tail, num_tail = _TID_KEY.subn(tid, text[place + len(args) :])
    if num_head + num_tail != 1:
        return None
    both = b'"stream":%d,"original_stream":%d' % (lane.tid, event.tid)
    return msgspec.Raw(head + args[: stream.start()] + both + args[stream.end() :] + tail)


def _moved_flow(raw: msgspec.Raw, tid: int) -> msgspec.Raw:
    text, number = _TID_KEY.subn(b'"tid":%d' % tid, bytes(raw))
    return msgspec.Raw(text) if number == 1 else with_fields(raw, tid=tid)


def _reassembled(event: Event, raw: msgspec.Raw, lane: Lane) -> msgspec.Raw:
    keys = raw_object(raw) or {}
    keys["tid"] = raw_json(lane.tid)
    args = {} if bytes(event.args) == b"null" else raw_object(event.args)
    if args is not None:  # arguments that are a list have no place for the old stream; they stay as they are
        tid = raw_json(event.tid)
        stream = args.get(STREAM_ARG, tid)
        if STREAM_ARG in args:
            args[STREAM_ARG] = keys["tid"]
        args.setdefault(ORIGINAL_STREAM_ARG, stream)
        if bytes(stream) != bytes(tid):
            args.setdefault(ORIGINAL_TID_ARG, tid)
        keys["args"] = raw_json(args)
    return raw_json(keys)


def _emptied_rows(events: Sequence[Event], plan: LanePlan) -> set[Row]:
    left = {(events[i].pid, events[i].tid) for i in plan.lane_of}
    kept = {
        (e.pid, e.tid)
        for i, e in enumerate(events)
        if e.ph != "M" and e.ph not in FLOW_PHASES and i not in plan.lane_of
    }
    return left - kept


class _FlowBinder:
    """Finds the moved slice that a flow end belongs to, by its old place and time."""

    def __init__(self, events: Sequence[Event], plan: LanePlan) -> None:
        self._events = events
        self._plan = plan
        self._members: dict[Row, list[tuple[int, int]]] = defaultdict(list)
        for index in plan.lane_of:
            event = events[index]
            self._members[event.pid, event.tid].append((event.start_ns, index))
        for members in self._members.values():
            members.sort()
        self.rows = self._members.keys()

    def lane_at(self, flow: Event) -> Lane | None:
        """The lane of the slice at the flow's time: one that starts there, else the last one around it.

        Of several slices that start there, the one with the flow's id as correlation is meant.
        """
        time_ns = flow.start_ns
        members = self._members[flow.pid, flow.tid]
        enclosing: int | None = None
        for place in range(bisect_right(members, (time_ns, len(self._events))) - 1, -1, -1):
            start_ns, index = members[place]
            event = self._events[index]
            if start_ns < time_ns and enclosing is not None:
                break
            if start_ns == time_ns and device_args(event).correlation == flow.id:
                return self._plan.lane_of[index]
            if enclosing is None and time_ns <= event.end_ns:
                enclosing = index
        return None if enclosing is None else self._plan.lane_of[enclosing]
