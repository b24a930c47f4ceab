"""Before and after of one subject: the rows that a headline, a results block or a story is told from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perfkit.report.model import Change, ComparisonRow, Findings, MatrixRow, ProviderRow
from perfkit.report.ranking import best_subject, headline_rows
from perfkit.stats import ProcessInterval


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One case in one launch state: the baseline's number and the subject's, both measured."""

    case: str
    launch: str
    base: ComparisonRow
    after: ComparisonRow

    @property
    def times(self) -> tuple[ProcessInterval, ProcessInterval]:
        """(before, after)."""
        assert self.base.time is not None
        assert self.after.time is not None
        return self.base.time, self.after.time

    @property
    def label(self) -> str:
        """`4k`, or `4k CUDA graphs`."""
        return self.case if self.launch == "launch" else f"{self.case} CUDA graphs"


def best_change(findings: Findings) -> Change | None:
    """The change to propose: verified, proven faster somewhere and slower nowhere; None where none is."""
    subject = best_subject(findings.comparison.rows, among=[c.subject for c in findings.changes])
    return next((c for c in findings.changes if c.subject == subject), None)


def pairs(findings: Findings, subject: str) -> list[Pair]:
    """Every case as launched, then replayed from CUDA graphs, in the order of the rows."""
    rows, baseline = findings.comparison.rows, findings.comparison.baseline
    found: list[Pair] = []
    for base in headline_rows(rows):
        if base.subject == baseline:
            found += [p for launch in ("launch", "graph") if (p := _pair(rows, base, subject, launch))]
    return found


def launched(of: Sequence[Pair]) -> list[Pair]:
    """The pairs as a user launches the step, without graph replays."""
    return [pair for pair in of if pair.launch == "launch"]


def main_pair(of: Sequence[Pair]) -> Pair:
    """The case that the text tells of: the one with the longest step, as launched.

    Raises:
        ValueError: no case has both numbers.
    """
    return max(launched(of), key=lambda pair: pair.times[0].median)


def matrix_row(findings: Findings, *, case: str, subject: str) -> MatrixRow | None:
    """The profile's row of that subject as launched."""
    return next(
        (r for r in findings.matrix if (r.case, r.subject, r.launch) == (case, subject, "launch")), None
    )


def provider_row(findings: Findings, like: ComparisonRow) -> ProviderRow | None:
    """The profile's row of a kernel provider in the states of `like`; variants are named by their label."""
    return next(
        (
            r
            for r in findings.providers
            if (r.case, r.provider, r.direction, r.launch, r.cache)
            == (like.case, like.subject, like.direction, like.launch, like.cache)
        ),
        None,
    )


def _pair(rows: Sequence[ComparisonRow], base: ComparisonRow, subject: str, launch: str) -> Pair | None:
    sides = [
        next(
            (
                r
                for r in rows
                if (r.case, r.direction, r.cache, r.kind)
                == (base.case, base.direction, base.cache, base.kind)
                and (r.subject, r.launch) == (name, launch)
                and r.time is not None
            ),
            None,
        )
        for name in (base.subject, subject)
    ]
    before, after = sides
    if before is None or after is None:
        return None
    return Pair(case=base.case, launch=launch, base=before, after=after)
