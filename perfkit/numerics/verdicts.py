"""The four verdicts, and how several become one."""

from __future__ import annotations

import enum
from collections.abc import Iterable


class Verdict(enum.StrEnum):
    """What the evidence says; only the first two unlock a benchmark."""

    PASS = "PASS"
    LIMITED = "PASS WITH LIMITATIONS"
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"

    @property
    def unlocks(self) -> bool:
        """Whether times of what was checked may be shown."""
        return self in (Verdict.PASS, Verdict.LIMITED)


def combine(verdicts: Iterable[Verdict]) -> Verdict:
    """Any FAIL, else any INCONCLUSIVE, else any limitation, else PASS. No verdict at all proves nothing."""
    given = set(verdicts)
    for verdict in (Verdict.FAIL, Verdict.INCONCLUSIVE, Verdict.LIMITED, Verdict.PASS):
        if verdict in given:
            return verdict
    return Verdict.INCONCLUSIVE
