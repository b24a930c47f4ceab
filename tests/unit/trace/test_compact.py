"""Compaction: nothing measured changes, rows get a meaning, flows follow."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from perfkit.errors import PerfkitError, UsageError
from perfkit.stages.compact import compact_trace
from perfkit.trace.document import read_document
from perfkit.trace.lanes import Row
from perfkit.trace.pipeline import ARROW_CAT, MARKER_CAT
from perfkit.trace.validate import require_disjoint, require_unchanged
from tests.support.traces import all_shared_traces, annotation, kernel, launch, op, shared_trace, write_trace


def flow(phase: str, ident: int, ts: float, *, pid: int, tid: int) -> dict[str, Any]:
    return {
        "ph": phase,
        "id": ident,
        "pid": pid,
        "tid": tid,
        "ts": ts,
        "cat": "ac2g",
        "name": "ac2g",
        "bp": "e",
    }


def row_name(tid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": "thread_name", "pid": 0, "tid": tid, "ts": 0, "args": {"name": name}}


def branches() -> list[dict[str, Any]]:
    """Four streams, of which two are enough."""
    return [
        op("aten::mm", 0, 5),
        launch(1, 1),
        flow("s", 1, 1, pid=10, tid=1),
        kernel("a", 100, 10, correlation=1, stream=7),
        flow("f", 1, 100, pid=0, tid=7),
        kernel("b", 105, 10, correlation=1, stream=8),
        flow("f", 1, 105, pid=0, tid=8),
        kernel("c", 120, 10, correlation=1, stream=9),
        flow("f", 1, 120, pid=0, tid=9),
        kernel("d", 140.0005, 1.25, stream=11),
        {
            "ph": "X",
            "cat": "gpu_user_annotation",
            "name": "n",
            "pid": 0,
            "tid": 9,
            "ts": 119.999,
            "dur": 10.002,
        },
        {"ph": "C", "name": "counter", "pid": 0, "tid": 8, "ts": 3, "args": {"v": 1}},
        {"ph": "i", "name": "mark", "pid": "", "tid": "", "ts": 4, "s": "g"},
        row_name(7, "stream 7 "),
        row_name(8, "stream 8 "),
    ]


def compacted(path: Path, out: Path, **options: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    report = compact_trace(path, out=out, **options)
    data = out.read_bytes()
    return report.document, json.loads(gzip.decompress(data) if out.suffix == ".gz" else data)["traceEvents"]


def test_rows_become_lanes_and_nothing_measured_changes(tmp_path: Path) -> None:
    path = write_trace(tmp_path, branches(), traceName="x")
    summary, events = compacted(path, tmp_path / "out.json")
    assert (summary["original_streams"], summary["compacted_lanes"]) == (4, 2)
    assert summary["lanes_by_group"] == {"compute": 2}
    kernels = {e["name"]: e for e in events if e.get("cat") == "kernel"}
    assert {n: (e["ts"], e["dur"], e["pid"]) for n, e in kernels.items()} == {
        "a": (100, 10, 0),
        "b": (105, 10, 0),
        "c": (120, 10, 0),
        "d": (140.0005, 1.25, 0),
    }
    assert kernels["a"]["tid"] == kernels["c"]["tid"] == kernels["d"]["tid"] != kernels["b"]["tid"]
    assert kernels["c"]["args"] == {
        "device": 0,
        "stream": kernels["c"]["tid"],
        "correlation": 1,
        "original_stream": 9,
    }
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert names[0, kernels["a"]["tid"]] == "compute"
    assert names[0, kernels["b"]["tid"]] == "compute 2"
    assert (0, 7) not in names
    assert names[0, 8] == "stream 8 "  # a counter still lives there


def test_flow_ends_follow_their_slices(tmp_path: Path) -> None:
    _, events = compacted(write_trace(tmp_path, branches()), tmp_path / "out.json")
    place = {e["ts"]: e["tid"] for e in events if e.get("cat") == "kernel"}
    assert {e["ts"]: e["tid"] for e in events if e["ph"] == "f"} == {ts: place[ts] for ts in (100, 105, 120)}
    assert [(e["pid"], e["tid"]) for e in events if e["ph"] == "s"] == [(10, 1)]


def test_everything_else_keeps_its_text(tmp_path: Path) -> None:
    path = write_trace(tmp_path, branches())
    _, events = compacted(path, tmp_path / "out.json")
    for event in branches():
        if event["ph"] in "CiX" and event.get("cat") not in ("kernel", "gpu_user_annotation"):
            assert event in events


def test_rows_are_kept_when_packing_would_make_more(tmp_path: Path) -> None:
    events = [kernel("a", 0, 1), kernel("Memset (Device)", 5, 1, cat="gpu_memset")]
    path = write_trace(tmp_path, events)
    summary, written = compacted(path, tmp_path / "out.json")
    assert (summary["packed"], summary["compacted_lanes"]) == (False, 1)
    assert written == events
    summary, _ = compacted(path, tmp_path / "forced.json", force=True)
    assert (summary["packed"], summary["compacted_lanes"]) == (True, 2)


def test_crossing_slices_of_one_stream_get_rows_of_their_own(tmp_path: Path) -> None:
    path = write_trace(tmp_path, [kernel("a", 0, 1), kernel("b", 0.968, 1)])
    summary, events = compacted(path, tmp_path / "out.json")
    assert (summary["compacted_lanes"], summary["overlapping_slices"]) == (2, 1)
    assert len({e["tid"] for e in events if e.get("cat") == "kernel"}) == 2
    summary, events = compacted(path, tmp_path / "joined.json", tolerance_ns=64)
    assert (summary["compacted_lanes"], summary["max_overlap_ns_tolerated"]) == (1, 32)


def test_the_2021_schema_keeps_its_names_in_arguments(tmp_path: Path) -> None:
    old = {"ph": "X", "cat": "Kernel", "pid": 0, "ts": 1682725898237042.123, "dur": 5}
    path = tmp_path / "old.json"
    text = json.dumps(
        [{**old, "name": "a", "tid": "stream 7", "args": {"stream": 7}}, {**old, "name": "b", "tid": "x"}]
    )
    path.write_text(text.replace("1682725898237042.0", "1682725898237042.123").replace(".25,", ".123,"))
    before = read_document(path).events
    compact_trace(path, out=tmp_path / "out.json", force=True)
    after = read_document(tmp_path / "out.json").events
    assert [e.start_ns for e in after if e.is_slice] == [e.start_ns for e in before]
    first, second = (json.loads(bytes(e.args)) for e in after if e.is_slice)
    assert (first["original_stream"], first["original_tid"]) == (7, "stream 7")
    assert second == {"original_stream": "x"}


def test_outputs_are_never_destroyed(tmp_path: Path) -> None:
    path = write_trace(tmp_path, branches())
    data = path.read_bytes()
    assert compact_trace(path).files == (tmp_path / "trace_compacted.json.gz",)
    with pytest.raises(UsageError, match="exists"):
        compact_trace(path)
    with pytest.raises(UsageError, match="input"):
        compact_trace(path, out=path, overwrite=True)
    with pytest.raises(UsageError, match="does not exist"):
        compact_trace(path, out=tmp_path / "no" / "x.json")
    compact_trace(path, overwrite=True)
    assert path.read_bytes() == data
    assert sorted(p.name for p in tmp_path.iterdir()) == ["trace.json", "trace_compacted.json.gz"]


@pytest.mark.parametrize(
    "change", [{"dur": 9}, {"name": "z"}, {"pid": 1}, {"ts": 100.001}, {"args": {"device": 1, "stream": 7}}]
)
def test_the_check_notices_any_change(tmp_path: Path, change: dict[str, Any]) -> None:
    document = read_document(write_trace(tmp_path, [kernel("a", 100, 10)]))
    changed = msgspec.Raw(json.dumps(kernel("a", 100, 10) | change).encode())
    with pytest.raises(PerfkitError, match="nothing was written"):
        require_unchanged(document, [changed])
    with pytest.raises(PerfkitError, match="1 slices went in and 0 came out"):
        require_unchanged(document, [])


def test_the_check_notices_overlap(tmp_path: Path) -> None:
    document = read_document(
        write_trace(tmp_path, [kernel("a", 0, 1), kernel("b", 0.5, 0.1), kernel("c", 0.9, 1)])
    )
    rows: set[Row] = {(0, 7)}
    with pytest.raises(PerfkitError, match="overlap by 100 ns"):
        require_disjoint(document.path, document.events, rows, tolerance_ns=0)
    assert require_disjoint(document.path, document.events, rows, tolerance_ns=100) == 100


@pytest.mark.parametrize("name", all_shared_traces())
def test_every_real_trace(name: str, tmp_path: Path) -> None:
    path = shared_trace(name)
    before = read_document(path).events
    compact_trace(path, out=tmp_path / "out.json", force=True)
    after = read_document(tmp_path / "out.json").events

    def measured(events: list[Any]) -> list[Any]:
        return sorted((e.name, str(e.pid), e.start_ns, e.dur_ns) for e in events if e.is_measured)

    assert measured(before) == measured(after)
    drawn = {ARROW_CAT, MARKER_CAT}
    assert sum(e.ph != "M" for e in before) == sum(e.ph != "M" and e.cat not in drawn for e in after)


@pytest.mark.parametrize(
    ("name", "streams", "lanes"),
    [
        ("cudagraph_branches", 32, {"compute": 7}),
        ("cudagraph_whole", 1, {"compute": 2, "memcpy": 1, "memset": 1}),
        ("graphed_callables24", 3, {"compute": 2, "memcpy": 1, "memset": 1}),
        ("pp/rank1_trace", 2, {"compute": 1, "send_recv": 1, "memcpy": 1, "memset": 1}),
    ],
)
def test_known_lane_counts(name: str, streams: int, lanes: dict[str, int], tmp_path: Path) -> None:
    summary = compact_trace(shared_trace(f"h200/{name}"), out=tmp_path / "x.json", force=True).document
    assert (summary["original_streams"], summary["lanes_by_group"]) == (streams, lanes)


def test_overlaps_of_a_b200_stay_visible(tmp_path: Path) -> None:
    summary = compact_trace(
        shared_trace("public/tracelens/b200_eager_overlaps"), out=tmp_path / "x.json"
    ).document
    assert (summary["packed"], summary["overlapping_slices"]) == (True, 38)
    events = read_document(tmp_path / "x.json").events
    assert sum(e.cat == "kernel" for e in events) == 768


def test_annotations_are_counted(tmp_path: Path) -> None:
    gpu = {"ph": "X", "cat": "gpu_user_annotation", "name": "both", "pid": 0, "tid": 7, "ts": 1, "dur": 1}
    events = [annotation("both", 0, 1), annotation("cpu", 2, 1), gpu, kernel("a", 1, 1)]
    summary = compact_trace(write_trace(tmp_path, events), out=tmp_path / "x.json").document
    assert (summary["annotations_kept"], summary["annotations_cpu_only"]) == (1, 1)
