"""The stage behind `trace summary`."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfkit.errors import PerfkitError, UsageError
from perfkit.stages.trace_summary import summarise_traces
from tests.support.traces import kernel, write_trace


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
