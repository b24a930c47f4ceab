"""Writes a trace as native Perfetto protobuf: named and ordered tracks, slices with arguments, flows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackDescriptor, TrackEvent
from perfetto.trace_builder.proto_builder import StreamingTraceProtoBuilder

from perfkit.trace.events import Event, Place
from perfkit.trace.lanes import Row
from perfkit.trace.nesting import by_thread, innermost
from perfkit.trace.output import replacing
from perfkit.trace.packing import pack_nested

_SEQUENCE = 1
_CLEARED = 1
"""SEQ_INCREMENTAL_STATE_CLEARED: nothing before this packet is needed to read the sequence."""
_INT64 = range(-(2**63), 2**63)
HEADER_TRACK = "trace header"


@dataclass(slots=True)
class _Names:
    """What the metadata events say about processes and rows."""

    process: dict[Place, str] = field(default_factory=dict)
    label: dict[Place, str] = field(default_factory=dict)
    process_order: dict[Place, int] = field(default_factory=dict)
    row: dict[Row, str] = field(default_factory=dict)
    row_order: dict[Row, int] = field(default_factory=dict)


def write_native(out: Path, *, header: Mapping[str, msgspec.Raw], events: Sequence[Event]) -> dict[str, int]:
    """Writes the file and returns how many events of each phase it could not represent.

    Times are the trace's own nanoseconds. Slices that cross on one row go to a second track of the same
    name, because begin and end events of one track must nest. A flow with several ends becomes several.

    Raises:
        PerfkitError: it cannot be written.
    """
    with replacing(out) as file:
        writer = _Writer(StreamingTraceProtoBuilder(file), _read_names(events))
        writer.write_header(header)
        writer.write_slices(events)
        for event in events:
            if event.ph in ("i", "I") and event.ts is not None:
                writer.write_instant(event)
    skipped: dict[str, int] = defaultdict(int)
    for event in events:
        if event.ph not in ("X", "i", "I", "M", "s", "t", "f") or (event.ph == "X" and event.ts is None):
            skipped[event.ph] += 1
    return dict(skipped)


class _Writer:
    def __init__(self, builder: Any, names: _Names) -> None:
        self._builder = builder
        self._names = names
        self._tracks: dict[tuple[Place, Place, int], int] = {}
        self._processes: dict[Place, int] = {}
        self._num_uuids = 0
        self._first = True

    def write_header(self, header: Mapping[str, msgspec.Raw]) -> None:
        """The top-level keys of the trace, as arguments of one instant on a track of its own."""
        uuid = self._describe(HEADER_TRACK, parent=0, order=-1)
        packet = self._packet(0)
        packet.track_event.type = TrackEvent.TYPE_INSTANT
        packet.track_event.track_uuid = uuid
        packet.track_event.name = HEADER_TRACK
        _annotate(packet.track_event, {name: _plain(value) for name, value in header.items()})
        self._builder.write_packet(packet)

    def write_slices(self, events: Sequence[Event]) -> None:
        """Begin and end of every slice, row by row, so that each track reads as a well-formed nesting."""
        slices = [event for event in events if event.is_slice]
        leaving, arriving = _flows(events, slices)
        for (pid, tid), members in by_thread(slices).items():
            lanes = pack_nested([e.start_ns for e in members], [e.end_ns for e in members])
            for lane in range(max(lanes) + 1):
                track = self._track(pid, tid, lane)
                own = [event for event, number in zip(members, lanes, strict=True) if number == lane]
                self._write_track(track, own, leaving, arriving)

    def write_instant(self, event: Event) -> None:
        """A mark without duration."""
        packet = self._packet(event.start_ns)
        packet.track_event.type = TrackEvent.TYPE_INSTANT
        self._fill(packet.track_event, event, self._track(event.pid, event.tid, 0))
        self._builder.write_packet(packet)

    def _write_track(
        self,
        track: int,
        members: list[Event],
        leaving: Mapping[int, list[int]],
        arriving: Mapping[int, list[int]],
    ) -> None:
        for time_ns, event in _begins_and_ends(members):
            packet = self._packet(time_ns)
            if event is None:
                packet.track_event.type = TrackEvent.TYPE_SLICE_END
                packet.track_event.track_uuid = track
            else:
                packet.track_event.type = TrackEvent.TYPE_SLICE_BEGIN
                self._fill(packet.track_event, event, track)
                packet.track_event.flow_ids.extend(leaving.get(id(event), ()))
                packet.track_event.terminating_flow_ids.extend(arriving.get(id(event), ()))
            self._builder.write_packet(packet)

    def _fill(self, target: Any, event: Event, track: int) -> None:
        target.track_uuid = track
        target.name = event.name
        if event.cat:
            target.categories.append(event.cat)
        args = _plain(event.args) if event.args else None
        if args is not None:
            _annotate(target, args if isinstance(args, dict) else {"args": args})

    def _packet(self, time_ns: int) -> Any:
        packet = self._builder.create_packet()
        packet.timestamp = max(time_ns, 0)
        packet.trusted_packet_sequence_id = _SEQUENCE
        if self._first:
            packet.sequence_flags = _CLEARED
            self._first = False
        return packet

    def _track(self, pid: Place, tid: Place, lane: int) -> int:
        if (pid, tid, lane) not in self._tracks:
            name = self._names.row.get((pid, tid), f"thread {tid}")
            parent = self._process(pid)
            order = self._names.row_order.get((pid, tid), 0)
            self._tracks[pid, tid, lane] = self._describe(name, parent=parent, order=order)
        return self._tracks[pid, tid, lane]

    def _process(self, pid: Place) -> int:
        if pid not in self._processes:
            label = self._names.label.get(pid, "")
            parts = [self._names.process.get(pid, "process"), str(pid), f"({label})" if label else ""]
            order = self._names.process_order.get(pid, 0)
            name = " ".join(filter(None, parts))
            self._processes[pid] = self._describe(name, parent=0, order=order)
        return self._processes[pid]

    def _describe(self, name: str, *, parent: int, order: int) -> int:
        self._num_uuids += 1
        packet = self._builder.create_packet()
        packet.trusted_packet_sequence_id = _SEQUENCE
        descriptor = packet.track_descriptor
        descriptor.uuid = self._num_uuids
        descriptor.name = name
        descriptor.sibling_order_rank = max(min(order, 2**31 - 1), -(2**31))
        descriptor.child_ordering = TrackDescriptor.EXPLICIT
        if parent:
            descriptor.parent_uuid = parent
        self._builder.write_packet(packet)
        return self._num_uuids


def _begins_and_ends(members: Sequence[Event]) -> Iterator[tuple[int, Event | None]]:
    """Times in an order in which begin and end nest; an end is None. Members come outermost first."""
    opened: list[int] = []
    for event in members:
        while opened and opened[-1] <= event.start_ns:
            yield opened.pop(), None
        yield event.start_ns, event
        opened.append(event.end_ns)
    while opened:
        yield opened.pop(), None


def _flows(
    events: Sequence[Event], slices: Sequence[Event]
) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
    """Flow ids that leave and reach each slice (by identity): one id for each start with each of its ends."""
    ends = [event for event in events if event.ph in ("s", "f") and event.ts is not None]
    bound = innermost(slices, ends, lambda event: event)
    starts: dict[tuple[Any, str, str], Event] = {}
    for position, flow in enumerate(ends):
        if flow.ph == "s" and position in bound:
            starts[flow.id, flow.cat, flow.name] = bound[position]
    leaving: dict[int, list[int]] = defaultdict(list)
    arriving: dict[int, list[int]] = defaultdict(list)
    number = 0
    for position, flow in enumerate(ends):
        source = starts.get((flow.id, flow.cat, flow.name))
        if flow.ph == "f" and source is not None and position in bound:
            number += 1
            leaving[id(source)].append(number)
            arriving[id(bound[position])].append(number)
    return leaving, arriving


def _read_names(events: Sequence[Event]) -> _Names:
    names = _Names()
    for event in events:
        if event.ph != "M" or not event.args:
            continue
        args = _plain(event.args)
        if not isinstance(args, dict):
            continue
        row, order = (event.pid, event.tid), args.get("sort_index")
        if event.name == "thread_name":
            names.row[row] = str(args.get("name", ""))
        elif event.name == "process_name":
            names.process[event.pid] = str(args.get("name", ""))
        elif event.name == "process_labels":
            names.label[event.pid] = str(args.get("labels", ""))
        elif event.name == "thread_sort_index" and isinstance(order, int):
            names.row_order[row] = order
        elif event.name == "process_sort_index" and isinstance(order, int):
            names.process_order[event.pid] = order
    return names


def _annotate(target: Any, args: Mapping[str, Any]) -> None:
    for name, value in args.items():
        annotation = target.debug_annotations.add()
        annotation.name = name
        _set_value(annotation, value)


def _set_value(annotation: Any, value: Any) -> None:
    if isinstance(value, bool):
        annotation.bool_value = value
    elif isinstance(value, int) and value in _INT64:
        annotation.int_value = value
    elif isinstance(value, float):
        annotation.double_value = value
    elif isinstance(value, str):
        annotation.string_value = value
    elif isinstance(value, dict) and value:
        for name, member in value.items():
            entry = annotation.dict_entries.add()
            entry.name = name
            _set_value(entry, member)
    elif isinstance(value, list) and value:
        for member in value:
            _set_value(annotation.array_values.add(), member)
    else:  # null, empty containers and integers beyond 64 bits have no protobuf value of their own
        annotation.legacy_json_value = msgspec.json.encode(value).decode()


def _plain(raw: msgspec.Raw) -> Any:
    """The value, or its text where it is legal JSON that cannot be represented, such as 1e999."""
    try:
        return msgspec.json.decode(raw)
    except msgspec.DecodeError:
        return bytes(raw).decode()
