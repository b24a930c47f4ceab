"""What fails verification is listed but never ranked, and only what is proven faster is proposed."""

from __future__ import annotations

import dataclasses

import pytest

from perfkit.report.comparison_md import comparison_md
from perfkit.report.model import Comparison, ComparisonRow
from perfkit.report.ranking import best_subject, headline_rows, ranked_rows
from perfkit.report.words import conclusion
from tests.support.report_data import GPU, comparison, comparison_row


def rows_of(*subjects: ComparisonRow) -> tuple[ComparisonRow, ...]:
    return (comparison_row("4k", "eager", 20000.0, None), *subjects)


def test_the_fastest_row_that_failed_verification_has_no_rank() -> None:
    rows = rows_of(
        comparison_row("4k", "wrong", 5000.0, 20000.0, verdict="FAIL"),
        comparison_row("4k", "block", 16000.0, 20000.0),
    )
    ranks = {r.row.subject: r.rank for r in ranked_rows(rows)}
    assert ranks == {"block": 1, "eager": 2, "wrong": None}
    text = comparison_md(Comparison(conditions=GPU, baseline="eager", rows=rows))
    assert "block against eager" in text
    assert "wrong against eager" not in text


@pytest.mark.parametrize("verdict", ["FAIL", "INCONCLUSIVE", "not verified"])
def test_only_a_passed_verification_ranks(verdict: str) -> None:
    rows = rows_of(comparison_row("4k", "block", 16000.0, 20000.0, verdict=verdict))
    assert [r.rank for r in ranked_rows(rows)] == [1, None]
    assert best_subject(rows, among=["block"]) is None


def test_states_are_never_mixed_in_one_ranking() -> None:
    rows = rows_of(comparison_row("4k", "eager", 9000.0, None, launch="graph"))
    assert [r.rank for r in ranked_rows(rows)] == [1, 1]


def test_a_row_without_a_number_is_listed_with_its_fates() -> None:
    broken = comparison_row("4k", "block", 1.0, None, verdict="PASS", fates={"died": 2, "timed_out": 1})
    broken = dataclasses.replace(broken, time=None)
    text = comparison_md(Comparison(conditions=GPU, baseline="eager", rows=rows_of(broken)))
    assert "4k block launch warm full: no number (2 died, 1 timed_out)" in text


def test_the_headline_is_wall_time_as_launched_of_the_whole_step() -> None:
    full = comparison_row("4k", "eager", 100.0, None, cache="cold")
    rows = [
        dataclasses.replace(full, direction="forward"),
        dataclasses.replace(full, kind="kernel"),
        dataclasses.replace(full, launch="graph"),
        dataclasses.replace(full, cache="warm"),
        full,
    ]
    assert headline_rows(rows) == [full]


def test_the_lowest_mean_ratio_wins() -> None:
    rows = (
        *rows_of(
            comparison_row("4k", "block", 16000.0, 20000.0), comparison_row("4k", "regions", 17000.0, 20000.0)
        ),
    )
    assert best_subject(rows, among=["regions", "block"]) == "block"
    assert best_subject(rows, among=["regions"]) == "regions"
    assert best_subject(rows, among=[]) is None


def test_faster_in_one_case_and_slower_in_another_is_not_proposed() -> None:
    rows = (
        *rows_of(comparison_row("4k", "block", 12000.0, 20000.0)),
        comparison_row("16k", "eager", 80000.0, None),
        comparison_row("16k", "block", 90000.0, 80000.0),
    )
    assert best_subject(rows, among=["block"]) is None


def test_one_process_proves_nothing() -> None:
    rows = (
        comparison_row("4k", "eager", 20000.0, None, num=1),
        comparison_row("4k", "block", 5000.0, 20000.0, num=1),
    )
    assert best_subject(rows, among=["block"]) is None
    assert conclusion(rows[1]) == "open: 1 process"


def test_a_case_without_a_number_blocks_the_proposal() -> None:
    broken = dataclasses.replace(comparison_row("16k", "block", 1.0, None, verdict="PASS"), time=None)
    rows = (*rows_of(comparison_row("4k", "block", 12000.0, 20000.0)), broken)
    assert best_subject(rows, among=["block"]) is None


def test_conclusions_follow_the_interval() -> None:
    assert conclusion(comparison_row("4k", "eager", 1.0, None)) == "baseline"
    assert conclusion(comparison_row("4k", "a", 50.0, 100.0)) == "faster"
    assert conclusion(comparison_row("4k", "a", 200.0, 100.0)) == "slower"
    assert conclusion(comparison_row("4k", "a", 100.05, 100.0)) == "no difference shown"
    assert conclusion(comparison_row("4k", "a", 50.0, 100.0, num=2)) == "faster (indicative)"


def test_quick_runs_say_so() -> None:
    made = comparison()
    quick = dataclasses.replace(made, conditions=dataclasses.replace(GPU, quick=True))
    assert "QUICK RUN" in comparison_md(quick)
    assert "QUICK RUN" not in comparison_md(made)
