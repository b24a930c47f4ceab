"""Diffs: pairing across renames, fusion and vendors; judging against the spread between steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from perfkit.stages.trace_diff import diff_traces
from perfkit.trace.diff import TraceDiff, pattern_of
from tests.support.traces import annotation, kernel, launch, shared_trace, write_trace


def trace_of(folder: Path, name: str, steps: list[dict[str, float]]) -> Path:
    events: list[dict[str, Any]] = []
    for number, durations in enumerate(steps):
        start = 1000 * number
        events += [annotation(f"ProfilerStep#{number}", start, 1000), launch(number, start + 1)]
        for place, (kernel_name, duration) in enumerate(durations.items()):
            events.append(kernel(kernel_name, start + 100 * place, duration, correlation=number))
    return write_trace(folder, events, name=name)


def compare(folder: Path, a: list[dict[str, float]], b: list[dict[str, float]]) -> TraceDiff:
    report = diff_traces(trace_of(folder, "a.json", a), trace_of(folder, "b.json", b))
    found = report.document["diff"]
    assert isinstance(found, TraceDiff)
    return found


def test_kernels_are_paired_by_name_then_pattern_then_family(tmp_path: Path) -> None:
    a = {"same": 5.0, "triton_poi_fused_mul_silu_5": 7.0, "nvjet_sm90_x": 9.0, "only_a": 2.0}
    b = {"same": 5.0, "triton_poi_fused_mul_silu_2": 7.0, "Cijk_Alik_Bljk": 8.0, "only_b": 3.0}
    found = compare(tmp_path, [a, a], [b, b])
    rows = {row.name: (row.match, row.a_ns, row.b_ns) for row in found.rows}
    assert rows == {
        "same": ("name", 5000, 5000),
        "triton_poi_fused_mul_silu": ("pattern", 7000, 7000),
        "gemm": ("family", 9000, 8000),
        "only_a": ("only in A", 2000, 0),
        "only_b": ("only in B", 0, 3000),
    }
    assert sum(row.difference_ns for row in found.rows) == found.total.difference_ns == 0


def test_differences_are_judged_against_the_spread_between_steps(tmp_path: Path) -> None:
    a = [{"k": 99.0, "s": 1.0}, {"k": 10.0, "s": 1.0}, {"k": 12.0, "s": 1.0}]  # the first step is warm-up
    b = [{"k": 99.0, "s": 2.0}, {"k": 12.5, "s": 2.0}, {"k": 12.5, "s": 2.0}]
    found = compare(tmp_path, a, b)
    assert (found.a_steps, found.b_steps) == (2, 2)
    rows = {row.name: (row.spread_ns, row.verdict) for row in found.rows}
    assert rows == {"k": (2000, "within spread"), "s": (0, "slower")}
    assert compare(tmp_path, b, a).rows[1].verdict == "faster"


def test_one_step_is_not_judged(tmp_path: Path) -> None:
    report = diff_traces(
        trace_of(tmp_path, "a.json", [{"k": 1.0}]), trace_of(tmp_path, "b.json", [{"k": 9.0}])
    )
    assert report.document["diff"].rows[0].verdict == "not judged"
    assert "not judged" in report.warnings[0]


def test_traces_without_device_slices(tmp_path: Path) -> None:
    found = compare(tmp_path, [{}, {}], [{"k": 1.0}, {"k": 1.0}])
    assert [row.match for row in found.rows] == ["only in B"]


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("triton_red_fused_add_mean_12", "triton_red_fused_add_mean"),
        ("triton_poi_fused_0", "triton_poi_fused"),
        ("nvjet_sm90_tst_128x256_64x4_2x1_v_bz_coopA_NTN", "nvjet_sm90_tst_#_#_#_v_bz_coopA_NTN"),
        ("void at::native::reduce_kernel<512, 1, X<float>>(X)", "void at::native::reduce_kernel"),
    ],
)
def test_pattern(name: str, pattern: str) -> None:
    assert pattern_of(name) == pattern


def test_eager_against_compiled_blocks() -> None:
    report = diff_traces(shared_trace("h200/eager_2layer"), shared_trace("h200/blockcompile_2layer"))
    found = report.document["diff"]
    assert found.total.verdict == "faster"
    assert sum(row.b_calls for row in found.rows) == found.total.b_calls == 116
    assert sum(row.a_calls for row in found.rows) == found.total.a_calls == 230


def test_a_trace_equals_itself() -> None:
    path = shared_trace("public/hta/trace_diff_control")
    found = diff_traces(path, path).document["diff"]
    assert {row.match for row in found.rows} == {"name"}
    assert {row.verdict for row in found.rows} == {"within spread"}
