"""Pipeline arrows: within a rank, across ranks, and what is left without a partner."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from perfkit.errors import UsageError
from perfkit.stages.compact import compact_trace
from perfkit.trace.pipeline import ARROW_CAT, MARKER_CAT
from tests.support.traces import annotation, kernel, launch, shared_trace, write_trace

SEND_RECV = "ncclDevKernel_SendRecv(x)"
ALL_GATHER = "ncclDevKernel_AllGather_RING_LL(x)"


class Rank:
    """Builds one rank: each action is an annotation whose window launches the given kernels."""

    def __init__(self, *, first_step: int = 0) -> None:
        self.events: list[dict[str, Any]] = []
        self._time = 0
        self._step = first_step

    def step(self, *actions: tuple[Any, ...]) -> Rank:
        """(annotation, kernel name or "", start, duration) each, in one profiler step."""
        begin = self._time
        for name, kernel_name, start, duration in actions:
            self.events.append(annotation(f"PP:{name}", self._time + 1, 5))
            if kernel_name:
                correlation = len(self.events)
                self.events.append(launch(correlation, self._time + 2))
                stream = 17 if kernel_name == SEND_RECV else 7
                self.events.append(
                    kernel(kernel_name, start, duration, correlation=correlation, stream=stream)
                )
            self._time += 10
        self.events.append(annotation(f"ProfilerStep#{self._step}", begin, self._time - begin))
        self._step += 1
        return self

    def write(self, folder: Path, rank: int) -> Path:
        return write_trace(folder, self.events, name=f"rank{rank}_trace.json", distributedInfo={"rank": rank})


def arrows(path: Path) -> list[tuple[str, str, str]]:
    """(arrow, slice at its start, slice at its end)."""
    events = json.loads(path.read_text())["traceEvents"]
    at = {(e["pid"], e["tid"], e["ts"]): e["name"] for e in events if e["ph"] == "X" and "cat" in e}
    ends = {
        e["id"]: at[e["pid"], e["tid"], e["ts"]] for e in events if e["ph"] == "f" and e["cat"] == ARROW_CAT
    }
    return [
        (e["name"], at[e["pid"], e["tid"], e["ts"]], ends[e["id"]])
        for e in events
        if e["ph"] == "s" and e["cat"] == ARROW_CAT
    ]


def test_arrows_within_a_rank(tmp_path: Path) -> None:
    rank = Rank().step(
        ("1UNSHARD", ALL_GATHER, 90, 5),
        ("1RECV_F0", SEND_RECV, 100, 10),
        ("1F0", "forward", 120, 10),
        ("1SEND_F0", SEND_RECV, 140, 10),
        ("1RECV_B0", SEND_RECV, 160, 10),
        ("1I0", "", 0, 0),
        ("1W0", "weight", 180, 10),
        ("1SEND_B0", SEND_RECV, 200, 10),
        ("(1F0;1B0)OVERLAP_F_B", "overlapped", 300, 1),
    )
    out = tmp_path / "out.json"
    summary = compact_trace(rank.write(tmp_path, 0), out=out, force=True).document
    assert sorted(arrows(out)) == [
        ("compute_to_send", "forward", SEND_RECV),
        ("compute_to_send", "weight", SEND_RECV),
        ("recv_to_compute", SEND_RECV, "forward"),
        ("recv_to_compute", SEND_RECV, "weight"),
        ("unshard_to_compute", ALL_GATHER, "forward"),
    ]
    assert summary["pp_local_arrows"] == {"recv_to_compute": 2, "compute_to_send": 2, "unshard_to_compute": 1}
    assert summary["pp_send_recv_unmatched"] is None


def test_sends_reach_the_ends_of_their_receives(tmp_path: Path) -> None:
    Rank().step(("0F0", "forward", 50, 40), ("0SEND_F0", SEND_RECV, 100, 20)).write(tmp_path, 0)
    Rank().step(("1RECV_F0", SEND_RECV, 60, 75.5), ("1F0", "next", 140, 10)).write(tmp_path, 1)
    report = compact_trace(tmp_path, merge_pp_ranks=True, out=tmp_path / "m.json", force=True)
    assert ("received F0 of stage 0", SEND_RECV, "received F0 of stage 0") in arrows(tmp_path / "m.json")
    summary = report.document
    assert (summary["pp_send_recv_matched"], summary["pp_send_recv_unmatched"]) == (1, 0)
    assert (summary["pp_receives_posted_early"], summary["pp_causality_violations"]) == (1, 0)
    events = json.loads((tmp_path / "m.json").read_text())["traceEvents"]
    (marker,) = (e for e in events if e.get("cat") == MARKER_CAT)
    assert marker["ts"] == 135.5
    assert list(summary["clock_skew_bounds_us"].values()) == [15.5]


def test_captures_that_began_a_step_apart_are_matched_by_step(tmp_path: Path) -> None:
    send, receive = ("0SEND_F0", SEND_RECV), ("1RECV_F0", SEND_RECV)
    Rank(first_step=3).step((*send, 100, 20)).step((*send, 300, 20)).write(tmp_path, 0)
    Rank(first_step=4).step((*receive, 305, 20)).step((*receive, 505, 20)).write(tmp_path, 1)
    report = compact_trace(tmp_path, merge_pp_ranks=True, out=tmp_path / "m.json")
    assert (report.document["pp_send_recv_matched"], report.document["pp_send_recv_unmatched"]) == (1, 2)
    assert any("no partner" in warning for warning in report.warnings)
    assert report.document["clock_skew_bounds_us"] != {}


def test_no_annotations_means_no_arrows(tmp_path: Path) -> None:
    path = write_trace(tmp_path, [kernel("k", 0, 1)], name="rank0_trace.json")
    summary = compact_trace(tmp_path, merge_pp_ranks=True).document
    assert (tmp_path / "pp_traces_merged_compacted.json.gz").exists()
    assert (summary["pp_annotations"], summary["pp_send_recv_unmatched"]) == (0, 0)
    assert any("global rank" in warning for warning in summary["warnings"])
    path.rename(tmp_path / "other.json")
    with pytest.raises(UsageError, match="Nothing to merge"):
        compact_trace(tmp_path, merge_pp_ranks=True, out=tmp_path / "x.json")


def test_an_own_annotation_scheme(tmp_path: Path) -> None:
    events = [annotation("fwd/1/0", 0, 5), launch(1, 1), kernel("k", 50, 5, correlation=1)]
    events += [annotation("take/1/0", 10, 5), launch(2, 11), kernel(SEND_RECV, 20, 5, correlation=2)]
    lanes = tmp_path / "lanes.toml"
    lanes.write_text(
        "annotation_pattern = '^(?P<op>fwd|take)/(?P<stage>\\d+)/(?P<microbatch>\\d+)$'\n"
        "operations = { fwd = 'F', take = 'RECV_F' }\n"
    )
    out = tmp_path / "out.json"
    compact_trace(write_trace(tmp_path, events), out=out, lanes=lanes)
    assert arrows(out) == [("recv_to_compute", SEND_RECV, "k")]


def test_every_message_of_a_real_pipeline(tmp_path: Path) -> None:
    folder = shared_trace("h200/pp/rank0_trace").parent
    summary = compact_trace(folder, merge_pp_ranks=True, out=tmp_path / "m.json", force=True).document
    assert (summary["pp_send_recv_matched"], summary["pp_send_recv_unmatched"]) == (96, 0)
    assert (summary["pp_receives_posted_early"], summary["pp_causality_violations"]) == (54, 0)
    assert sorted(summary["clock_skew_bounds_us"].values()) == [12.744, 13.608]
    assert summary["pp_local_arrows"] == {
        "recv_to_compute": 96,
        "compute_to_send": 96,
        "unshard_to_compute": 0,
    }
    assert summary["measured_slices"] == 1600 + 384 + 1778 + 16 + 400
    assert len(arrows(tmp_path / "m.json")) == 3 * 96
