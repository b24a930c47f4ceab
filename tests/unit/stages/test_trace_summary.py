"""The stage behind `trace summary`."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfkit.errors import PerfkitError, UsageError
from perfkit.stages.trace_doctor import examine_trace
from perfkit.stages.trace_summary import summarise_traces
from tests.support.traces import all_shared_traces, kernel, shared_trace, write_trace


def test_one_section_per_trace_and_warnings_for_what_is_not_known(tmp_path: Path) -> None:
    path = write_trace(tmp_path, [kernel("my_kernel", 0, 10), kernel("nvjet_sm90", 20, 20)])
    empty = write_trace(tmp_path, [], name="empty.json")
    report = summarise_traces([path, empty])
    assert ("idle", "0.010", "25.000") in report.tables[0].rows
    assert [t.num_measured_slices for t in report.document["traces"]] == [2, 0]
    assert any("1 slices (0.010 ms) are of no known family" in w for w in report.warnings)
    assert any("nothing to summarise" in w for w in report.warnings)


def test_groups_are_configurable(tmp_path: Path) -> None:
    path = write_trace(tmp_path, [kernel("my_kernel", 0, 10), kernel("nvjet_sm90", 20, 20)])
    lanes = tmp_path / "lanes.toml"
    lanes.write_text('[[rules]]\ngroup = "mine"\nkernel = "^my_"\n')
    (summary,) = summarise_traces([path], lanes=lanes).document["traces"]
    assert {g.name for g in summary.devices[0].groups} == {"mine", "compute"}


@pytest.mark.parametrize(
    "text", ["rules = 5", "unknown = 1", '[[rules]]\ngroup="a"\nkernel="("', "annotation_pattern = 'x'", "="]
)
def test_wrong_lane_settings_are_a_usage_error(tmp_path: Path, text: str) -> None:
    lanes = tmp_path / "lanes.toml"
    lanes.write_text(text)
    with pytest.raises(UsageError, match="Cannot use the lane settings"):
        summarise_traces([], lanes=lanes)


def test_a_damaged_trace_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text('{"traceEvents": [{]}')
    with pytest.raises(PerfkitError, match="damaged"):
        summarise_traces([path])


@pytest.mark.parametrize("name", all_shared_traces())
def test_summary_and_doctor_run_over_every_real_trace(name: str) -> None:
    path = shared_trace(name)
    (summary,) = summarise_traces([path]).document["traces"]
    assert all(d.busy_ns + d.idle_ns == d.window_ns for d in summary.devices)
    assert examine_trace(path).document["loadable"]


def test_ranks_of_one_run_show_who_was_late() -> None:
    paths = [shared_trace(f"public/param/dlrm8/worker{rank}") for rank in range(8)]
    rows = summarise_traces(paths).document["collectives"]
    assert [row.late_rank for row in rows if row.group == "send_recv"] == [7, 7, 7, 7, 5]
    assert max(row.end_spread_ns for row in rows) <= 10_000
    assert max(row.waiting_ns for row in rows) == pytest.approx(7_624_000, abs=10_000)


def test_traces_of_one_rank_are_not_compared(tmp_path: Path) -> None:
    info = {"distributedInfo": {"rank": 0}}
    paths = [write_trace(tmp_path, [kernel("k", 0, 1)], name=f"{n}.json", **info) for n in range(2)]
    assert any("one rank" in warning for warning in summarise_traces(paths).warnings)
