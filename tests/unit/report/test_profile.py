"""profile.md's judgements: host-bound rows, holes, candidates below 1%, bottleneck classes."""

from __future__ import annotations

import dataclasses

import pytest

from perfkit.report.bottleneck import classify_bottleneck
from perfkit.report.candidates_md import NUM_SHOWN, candidate_notes, candidate_table
from perfkit.report.kernels_md import kernel_sections
from perfkit.report.profile_md import is_host_bound, profile_md
from perfkit.report.providers_md import bottleneck_table
from perfkit.stats import process_interval
from tests.support import report_data as data


@pytest.mark.parametrize(
    ("wall_us", "kernel_us", "expected"), [(121.0, 100.0, True), (119.0, 100.0, False), (90.0, 100.0, False)]
)
def test_host_bound_is_wall_above_a_fifth_over_kernel_time(
    wall_us: float, kernel_us: float, expected: bool
) -> None:
    row = dataclasses.replace(
        data.matrix()[0], wall=process_interval([wall_us]), kernel=process_interval([kernel_us])
    )
    assert is_host_bound(row) is expected
    assert not is_host_bound(dataclasses.replace(row, launch="graph"))
    assert not is_host_bound(dataclasses.replace(row, kernel=None))


def test_a_cpu_has_no_host_bound_rows_and_no_kernels() -> None:
    text = profile_md(dataclasses.replace(data.profile(), conditions=data.CPU))
    assert "host-bound" not in text
    assert "## Op time by family, 4k" in text
    assert "op time is the time inside top-level ops" in text


def test_holes_are_printed_with_their_reason() -> None:
    text = profile_md(data.profile())
    assert "- 16k regions graph: not capturable: a replay with changed inputs gave other outputs" in text


def test_an_empty_profile_is_still_a_document() -> None:
    text = profile_md(dataclasses.replace(data.profile(), matrix=(), families=(), kernels=(), candidates=(),
                                          closures=(), peaks=(), notes=()))  # fmt: skip
    assert text.count("#") == 1
    assert "NVIDIA H200 (cuda:0)" in text


def test_a_step_without_attention_kernels_says_nothing_about_attention() -> None:
    rows = tuple(dataclasses.replace(row, attention_kernels=()) for row in data.matrix())
    assert "## Attention" not in profile_md(dataclasses.replace(data.profile(), matrix=rows))
    some = (dataclasses.replace(rows[0], attention_kernels=("flash",)), *rows[1:])
    text = profile_md(dataclasses.replace(data.profile(), matrix=some))
    assert "- 4k eager: `flash`" in text
    assert "none found by name" in text


def test_what_the_top_kernels_leave_is_one_line() -> None:
    rows = data.kernel_rows()[1][:2]
    (section,) = kernel_sections(rows)
    # 30% and 15% of 20.04 ms are shown, so 55% are left.
    assert "all others" in section.table
    assert "11.0 ms" in section.table
    assert "55.0%" in section.table


def test_candidates_below_one_percent_are_summed_up() -> None:
    candidates = data.candidates(data.pieces())
    small = [c for c in candidates if not c.worthwhile]
    assert f"{len(small)} more candidates below 1% of the step" in " ".join(candidate_notes(candidates))
    assert len(candidate_table(candidates).splitlines()) == 2 + len(candidates) - len(small)


def test_more_candidates_than_fit_are_counted() -> None:
    many = tuple(dataclasses.replace(c, worthwhile=True) for c in data.candidates(data.pieces()))
    assert len(candidate_table(many).splitlines()) == 2 + NUM_SHOWN
    assert f"{len(many) - NUM_SHOWN} further candidates in candidates.csv." in candidate_notes(many)


def test_a_class_without_evidence_is_not_printed() -> None:
    rows = tuple(dataclasses.replace(row, evidence=()) for row in data.provider_rows())
    assert bottleneck_table(rows) == ""


@pytest.mark.parametrize(
    ("memory", "compute", "name"),
    [
        (0.8, 0.1, "memory-bound"),
        (0.1, 0.8, "compute-bound"),
        (0.8, 0.5, "memory-bound (weakly)"),
        (0.7, 0.7, "balanced, near the ceiling"),
        (0.5, 0.4, "balanced"),
        (0.5, 0.1, "memory-bound (below the ceiling)"),
        (0.2, 0.1, "latency-bound"),
    ],
)
def test_classes(memory: float, compute: float, name: str) -> None:
    found = classify_bottleneck(
        time_us=500.0, bandwidth_share=memory, flops_share=compute, launch_floor_us=2.0
    )
    assert found is not None
    assert found.name == name
    assert len(found.evidence) == 2


def test_a_tiny_kernel_is_launch_bound_and_shows_its_floor() -> None:
    found = classify_bottleneck(time_us=5.0, bandwidth_share=0.9, flops_share=None, launch_floor_us=2.0)
    assert found is not None
    assert found.name == "launch-bound"
    assert "launch floor of 2.00 us" in found.evidence[0]


def test_a_working_set_in_the_cache_is_said() -> None:
    found = classify_bottleneck(
        time_us=50.0, bandwidth_share=0.9, flops_share=None, working_set_bytes=2**20, cache_bytes=2**25
    )
    assert found is not None
    assert "fits into the cache" in found.evidence[-1]


def test_without_any_share_there_is_no_class() -> None:
    assert classify_bottleneck(time_us=5.0, bandwidth_share=None, flops_share=None) is None
