"""Merging ranks: own ids and pids, one clock, skew from the ends of collectives."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from perfkit.errors import PerfkitError, UsageError
from perfkit.stages.trace_merge import merge_traces
from perfkit.trace import read_trace
from tests.support.traces import SHARED_TRACES, kernel, launch, shared_trace, write_trace

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)"


def rank_events(shift: float, starts: list[float]) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "python3"}},
        {"ph": "M", "name": "process_labels", "pid": 0, "args": {"labels": "GPU 0"}},
        {"ph": "M", "name": "process_name", "pid": 15, "args": {"name": "unused"}},
        {"ph": "M", "name": "thread_name", "pid": 0, "tid": 7, "args": {"name": "stream 7"}},
        launch(1, 5 + shift),
        {"ph": "s", "id": 1, "pid": 10, "tid": 1, "ts": 5 + shift, "cat": "ac2g", "name": "ac2g"},
    ]
    for number, start in enumerate(starts):
        end = 100 * (number + 1)
        events.append(kernel(ALL_REDUCE, start + shift, end - start, correlation=1))
    return events


def two_ranks(folder: Path, *, bases: tuple[int, int] | None = None) -> list[Path]:
    paths = []
    for rank, (shift, starts) in enumerate(((0.0, [50.0, 120.5]), (40.25, [20.0, 190.0]))):
        header: dict[str, Any] = {"distributedInfo": {"rank": rank, "world_size": 2}}
        if bases:
            header["baseTimeNanoseconds"] = bases[rank]
        paths.append(write_trace(folder, rank_events(shift, starts), name=f"rank{rank}_trace.json", **header))
    return paths


def test_skew_waiting_and_the_late_rank(tmp_path: Path) -> None:
    report = merge_traces(two_ranks(tmp_path)[::-1], out=tmp_path / "m.json")
    document = report.document
    assert [(r.rank, r.skew_ns) for r in document["ranks"]] == [(0, 0), (1, 40_250)]
    assert document["skew_residual_ns"] == 0
    rows = [(r.waiting_ns, r.transfer_ns, r.late_rank) for r in document["collectives"]]
    assert rows == [(30_000, 50_000, 0), (69_500, 10_000, 1)]
    ends = sorted(e.end_ns for e in read_trace(tmp_path / "m.json").measured())
    assert ends == [100_000, 100_000, 200_000, 200_000]


def test_no_skew_leaves_the_clocks(tmp_path: Path) -> None:
    paths = two_ranks(tmp_path, bases=(5_000, 2_000))
    document = merge_traces(paths, out=tmp_path / "m.json", skew=False).document
    assert [(r.base_shift_ns, r.skew_ns) for r in document["ranks"]] == [(3_000, 0), (0, 0)]
    merged = read_trace(tmp_path / "m.json")
    assert merged.base_time_ns == 2_000
    assert sorted(e.start_ns for e in merged.measured()) == [53_000, 60_250, 123_500, 230_250]


def test_ids_and_pids_are_isolated(tmp_path: Path) -> None:
    merge_traces(two_ranks(tmp_path), out=tmp_path / "m.json")
    events = json.loads((tmp_path / "m.json").read_text())["traceEvents"]
    owners: dict[int, set[str]] = {}
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    for event in events:
        if event["ph"] == "M":
            continue
        ident = event.get("id", event.get("args", {}).get("correlation"))
        owners.setdefault(ident, set()).add(names[event["pid"]].partition(":")[0])
    assert sorted(map(sorted, owners.values())) == [["rank 0"], ["rank 1"]]
    assert sorted(names.values()) == [
        "rank 0: 10",
        "rank 0: python3 0",
        "rank 1: 10",
        "rank 1: python3 0",
    ]


def test_refusals(tmp_path: Path) -> None:
    paths = two_ranks(tmp_path)
    out = tmp_path / "m.json"
    with pytest.raises(UsageError, match="Nothing to merge"):
        merge_traces([], out=out)
    with pytest.raises(UsageError, match="rank 0 as well"):
        merge_traces([paths[0], paths[0]], out=out)
    other = write_trace(tmp_path, [], name="rank5_trace.json", distributedInfo={"rank": 1})
    with pytest.raises(PerfkitError, match="Its name says 5"):
        merge_traces([other], out=out)
    based = write_trace(tmp_path, [], name="rank7_trace.json", baseTimeNanoseconds=1)
    with pytest.raises(PerfkitError, match="no baseTimeNanoseconds"):
        merge_traces([paths[0], based], out=out)
    nameless = write_trace(tmp_path, [], name="x.json")
    with pytest.raises(UsageError, match="Cannot tell the rank"):
        merge_traces([nameless], out=out)
    assert not out.exists()


def test_pipeline_groups_set_the_order(tmp_path: Path) -> None:
    info = {"pg_config": [{"pg_name": "3", "pg_desc": "mesh_pp", "ranks": [1, 0]}]}
    paths = [
        write_trace(
            tmp_path, [kernel("k", 0, 1)], name=f"rank{r}_trace.json", distributedInfo={"rank": r} | info
        )
        for r in range(2)
    ]
    document = merge_traces(paths, out=tmp_path / "m.json").document
    assert (document["rank_order"], document["rank_order_source"]) == ([1, 0], "process group mesh_pp")


def test_injected_offsets_of_eight_ranks_are_recovered(tmp_path: Path) -> None:
    shared_trace("public/param/dlrm8/worker0")
    injected_us = [0, 50_000, -50_000, 1_234, -7, 33_333, -20_001, 400]
    paths = []
    for rank, offset_us in enumerate(injected_us):
        source = SHARED_TRACES / "public" / "param" / "dlrm8" / f"worker{rank}.json.gz"
        document = json.loads(gzip.decompress(source.read_bytes()))
        for event in document["traceEvents"]:
            event["ts"] += offset_us
        paths.append(tmp_path / f"worker{rank}.json")
        paths[-1].write_text(json.dumps(document))
    answer = merge_traces(paths, out=tmp_path / "m.json.gz").document
    for row, offset_us in zip(answer["ranks"], injected_us, strict=True):
        assert abs(row.skew_ns / 1000 - offset_us) <= 10
    late = {(r.group, r.number): r.late_rank for r in answer["collectives"]}
    assert [late["send_recv", n] for n in range(5)] == [7, 7, 7, 7, 5]
    assert [late["all_reduce", n] for n in range(3)] == [7, 5, 4]


def test_fsdp_ranks_merge_with_every_slice(tmp_path: Path) -> None:
    paths = [shared_trace(f"h200/fsdp/rank{r}_trace") for r in range(2)]
    document = merge_traces(paths, out=tmp_path / "m.json").document
    before = [e for path in paths for e in read_trace(path).events if e.is_measured]
    merged = read_trace(tmp_path / "m.json")
    after = [e for e in merged.events if e.is_measured]
    assert sorted((e.name, e.dur_ns) for e in before) == sorted((e.name, e.dur_ns) for e in after)
    assert document["skew_from_collectives"] > 10
    assert len({e.pid for e in after}) == 2
