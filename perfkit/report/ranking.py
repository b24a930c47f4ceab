"""Which rows are compared with each other, in which order, and which of them may be ranked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from perfkit.report.model import ComparisonRow

RANKED_VERDICTS = ("PASS", "PASS WITH LIMITATIONS", "reference")
"""Only what is known to compute the right thing has a place in a ranking of speed."""

_DIRECTIONS = ("full", "forward", "backward")
_LAUNCHES = ("launch", "graph")
_CACHES = ("cold", "warm")
_KINDS = ("wall", "kernel")


@dataclass(frozen=True, slots=True)
class Ranked:
    """A row and its place within its group; None for a row that is listed but not ranked."""

    row: ComparisonRow
    rank: int | None


def may_rank(row: ComparisonRow) -> bool:
    """Whether the row has a number and passed verification (or is the reference)."""
    return row.time is not None and row.verdict in RANKED_VERDICTS


def state_key(row: ComparisonRow) -> tuple[int, int, int, int]:
    """Sorts groups: full before forward, launch before graph, wall before kernel."""
    return (
        _KINDS.index(row.kind),
        _DIRECTIONS.index(row.direction),
        _LAUNCHES.index(row.launch),
        _CACHES.index(row.cache),
    )


def ranked_rows(rows: Sequence[ComparisonRow]) -> list[Ranked]:
    """The rows of one case: group by group, fastest first within each, unranked ones at the group's end."""
    ranked: list[Ranked] = []
    for key in sorted({state_key(row) for row in rows}):
        group = [row for row in rows if state_key(row) == key]
        good = sorted((row for row in group if may_rank(row)), key=_median)
        ranked += [Ranked(row, place) for place, row in enumerate(good, start=1)]
        ranked += [Ranked(row, None) for row in group if not may_rank(row)]
    return ranked


def headline_rows(rows: Sequence[ComparisonRow]) -> list[ComparisonRow]:
    """Per case, the rows that answer "is it faster": wall time of the whole step as a user launches it.

    Where a case has several directions or cache states, the first of full, forward, backward and of
    cold, warm that its rows have.
    """
    chosen: list[ComparisonRow] = []
    for case in dict.fromkeys(row.case for row in rows):
        of_case = [row for row in rows if row.case == case and row.launch == "launch"]
        if of_case:
            first = min(state_key(row) for row in of_case)
            chosen += [row for row in of_case if state_key(row) == first]
    return chosen


def best_subject(rows: Sequence[ComparisonRow], *, among: Sequence[str]) -> str | None:
    """The subject that a change should be proposed for, or None where nothing is proven faster.

    It must be verified, proven faster (whole interval of the ratio below 1) in at least one case of the
    headline rows, and proven slower in none; among several, the lowest geometric mean of its ratios wins.
    """
    headline = headline_rows(rows)
    means: dict[str, float] = {}
    for subject in among:
        own = [row for row in headline if row.subject == subject]
        ratios = [row.ratio for row in own if row.ratio is not None and may_rank(row)]
        if len(ratios) < len(own) or not any(r.smaller for r in ratios) or any(r.larger for r in ratios):
            continue
        means[subject] = math.exp(math.fsum(math.log(r.ratio) for r in ratios) / len(ratios))
    return min(means, key=lambda subject: means[subject]) if means else None


def _median(row: ComparisonRow) -> float:
    return math.inf if row.time is None else row.time.median
