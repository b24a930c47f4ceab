"""Native Perfetto output, read back with the package's own classes."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace as ProtoTrace
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackEvent

from perfkit.stages.compact import compact_trace
from perfkit.trace.document import read_document
from perfkit.trace.native import HEADER_TRACK
from tests.support.traces import kernel, launch, shared_trace, write_trace


def value(annotation: Any) -> Any:
    kind = annotation.WhichOneof("value")
    if annotation.dict_entries:
        return {entry.name: value(entry) for entry in annotation.dict_entries}
    if annotation.array_values:
        return [value(member) for member in annotation.array_values]
    found = getattr(annotation, kind)
    return json.loads(found) if kind == "legacy_json_value" else found


def read_back(path: Path) -> tuple[list[tuple[Any, ...]], dict[int, Any], dict[int, list[str]]]:
    """Slices as (name, categories, start, duration, arguments, track), track descriptors, flows."""
    trace = ProtoTrace()
    trace.ParseFromString(path.read_bytes())
    tracks: dict[int, Any] = {}
    opened: dict[int, list[Any]] = defaultdict(list)
    slices: list[tuple[Any, ...]] = []
    flows: dict[int, list[str]] = defaultdict(list)
    for packet in trace.packet:
        event = packet.track_event
        if packet.HasField("track_descriptor"):
            tracks[packet.track_descriptor.uuid] = packet.track_descriptor
        elif event.type == TrackEvent.TYPE_SLICE_BEGIN:
            assert not opened[event.track_uuid] or opened[event.track_uuid][-1].timestamp <= packet.timestamp
            opened[event.track_uuid].append(packet)
            for ident in (*event.flow_ids, *event.terminating_flow_ids):
                flows[ident].append(event.name)
        elif event.type == TrackEvent.TYPE_SLICE_END:
            begin = opened[event.track_uuid].pop()
            args = {a.name: value(a) for a in begin.track_event.debug_annotations}
            slices.append(
                (
                    begin.track_event.name,
                    list(begin.track_event.categories),
                    begin.timestamp,
                    packet.timestamp - begin.timestamp,
                    json.dumps(args, sort_keys=True),
                    event.track_uuid,
                )
            )
    assert not any(opened.values())
    return slices, tracks, flows


def expected(path: Path) -> list[tuple[Any, ...]]:
    return [
        (
            e.name,
            [e.cat] if e.cat else [],
            e.start_ns,
            e.dur_ns,
            json.dumps(json.loads(bytes(e.args or b"{}")) or {}, sort_keys=True),
        )
        for e in read_document(path).events
        if e.is_slice
    ]


def flow(phase: str, ident: int, ts: float, pid: int, tid: int) -> dict[str, Any]:
    return {"ph": phase, "id": ident, "pid": pid, "tid": tid, "ts": ts, "cat": "ac2g", "name": "ac2g"}


def test_tracks_slices_arguments_and_flows(tmp_path: Path) -> None:
    args = {
        "i": 5,
        "f": 0.5,
        "b": True,
        "n": None,
        "s": "x",
        "l": [1, [2], {}],
        "d": {"k": [1]},
        "big": 2**70,
    }
    events = [
        launch(1, 1),
        kernel("a", 100, 10, stream=7) | {"args": args},
        kernel("b", 105, 10, stream=7),
        kernel("inside", 106, 2, stream=7),
        kernel("zero", 130, 0, stream=7),
        flow("s", 1, 1, 10, 1),
        flow("f", 1, 100, 0, 7),
        flow("f", 1, 105, 0, 7),
        flow("f", 9, 106, 0, 7),
        {"ph": "M", "name": "thread_name", "pid": 0, "tid": 7, "args": {"name": "stream 7"}},
        {"ph": "M", "name": "thread_sort_index", "pid": 0, "tid": 7, "args": {"sort_index": 3}},
        {"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "python3"}},
        {"ph": "M", "name": "process_labels", "pid": 0, "args": {"labels": "GPU 0"}},
        {"ph": "C", "name": "count", "pid": 0, "ts": 1, "args": {"x": 1}},
    ]
    path = write_trace(tmp_path, events, note="n")
    out = tmp_path / "t.pftrace"
    report = compact_trace(path, out=out, form="perfetto", tolerance_ns=10**9)
    assert any("'C'" in warning for warning in report.warnings)
    slices, tracks, flows = read_back(out)
    original = [row[:4] for row in expected(path)]
    assert sorted(row[:4] for row in slices) == sorted(original)
    by_name = {row[0]: row for row in slices}
    found = json.loads(by_name["a"][4])
    assert {name: found[name] for name in args} == args
    names = {uuid: track.name for uuid, track in tracks.items()}
    assert names[by_name["a"][5]] == "compute"
    assert names[tracks[by_name["a"][5]].parent_uuid] == "python3 0 (GPU 0)"
    assert by_name["a"][5] != by_name["b"][5]  # they cross
    assert sorted(flows.values()) == [["cudaLaunchKernel", "a"], ["cudaLaunchKernel", "b"]]
    assert HEADER_TRACK in names.values()


@pytest.mark.parametrize(
    "name", ["h200/cudagraph_branches", "h200/pp/rank0_trace", "public/hta/critical_path_alexnet"]
)
def test_every_slice_of_a_real_trace(name: str, tmp_path: Path) -> None:
    path = shared_trace(name)
    compact_trace(path, out=tmp_path / "x.json", force=True)
    compact_trace(path, out=tmp_path / "x.pftrace", form="perfetto", force=True)
    slices, tracks, _ = read_back(tmp_path / "x.pftrace")
    assert sorted(row[:5] for row in slices) == sorted(expected(tmp_path / "x.json"))
    assert {row[5] for row in slices} <= set(tracks)
