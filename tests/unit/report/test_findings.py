"""findings.md: fixed order, what counts as rejected, what the data itself says was not tested."""

from __future__ import annotations

import dataclasses

from perfkit.report.findings_md import (
    findings_md,
    not_tested_lines,
    rejected_lines,
    verdict_line,
    where_lines,
)
from perfkit.report.model import Rejected
from perfkit.report.pairs import best_change, main_pair, pairs
from tests.support import report_data as data


def test_the_parts_stand_in_their_order() -> None:
    text = findings_md(data.findings())
    parts = (
        "# llama3-block",
        "```text",
        "Rejected:",
        "Compile limits hit:",
        "Not tested:",
        "Pattern feedback:",
    )
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


def test_compile_limits_are_left_out_when_there_are_none() -> None:
    assert "Compile limits" not in findings_md(data.findings(compile_limits=()))


def test_the_text_is_told_from_the_longest_case() -> None:
    assert main_pair(pairs(data.findings(), "block")).case == "16k"


def test_graph_rows_need_both_sides() -> None:
    labels = [pair.label for pair in pairs(data.findings(), "regions")]
    assert labels == ["4k", "4k CUDA graphs", "16k"]


def test_a_stated_rejection_is_not_repeated() -> None:
    found = data.findings()
    assert sum(line.startswith("regions") for line in rejected_lines(found, best_change(found))) == 2
    stated = dataclasses.replace(
        found, rejected=(Rejected(idea="regions: cut\nthe glue", number="", why="verify: FAIL"),)
    )
    assert rejected_lines(stated, best_change(stated)) == ["regions: cut the glue: verify: FAIL"]


def test_a_slower_subject_is_rejected_with_both_numbers() -> None:
    comparison = data.comparison(regions_verdict="PASS")
    slow = tuple(
        data.comparison_row("4k", "regions", 21000.0, 20040.0)
        if (r.case, r.subject) == ("4k", "regions")
        else r
        for r in comparison.rows
        if r.launch == "launch"
    )
    found = data.findings(comparison=dataclasses.replace(comparison, rows=slow))
    (line,) = [x for x in rejected_lines(found, best_change(found)) if x.startswith("regions, 4k")]
    assert "->" in line
    assert line.endswith("slower")


def test_one_process_is_undecided_and_not_rejected() -> None:
    found = data.findings(comparison=data.comparison(num=1, regions_verdict="PASS"), rejected=())
    assert rejected_lines(found, best_change(found)) == []
    assert "whether block is faster at 4k: one process shows no spread" in not_tested_lines(found)


def test_what_fails_verification_is_no_open_question() -> None:
    found = data.findings(comparison=data.comparison(num=1, regions_verdict="FAIL"))
    lines = not_tested_lines(found)
    assert "whether block is faster at 4k: one process shows no spread" in lines
    assert not any(line.startswith("whether regions") for line in lines)


def test_a_cpu_says_that_no_gpu_was_tested() -> None:
    lines = not_tested_lines(data.findings(conditions=data.CPU))
    assert "any GPU: all numbers are of this CPU" in lines
    assert "any GPU: all numbers are of this CPU" not in not_tested_lines(data.findings())


def test_what_is_not_verified_counts_as_not_tested() -> None:
    found = data.findings(comparison=data.comparison(regions_verdict="not verified"))
    assert "correctness of regions: not verified" in not_tested_lines(found)


def test_few_processes_are_blamed_when_nothing_is_proven() -> None:
    assert "run with --replicates 3" in verdict_line(data.findings(comparison=data.comparison(num=1)), None)
    assert "--replicates" not in verdict_line(data.findings(), None)


def test_where_the_time_goes_adds_up_to_the_closure() -> None:
    lines = where_lines(data.findings())
    assert lines[0].startswith("4k: 20.0 ms of kernels, 0.0% unattributed")
    assert any(line.startswith("  37 pieces of glue: 2.59 ms, floor 775 us") for line in lines)


def test_findings_without_any_row_are_still_a_document() -> None:
    bare = data.findings(
        comparison=dataclasses.replace(data.comparison(), rows=()),
        matrix=(),
        pieces=(),
        candidates=(),
        closures=(),
    )
    assert "no measured rows" in findings_md(bare)
