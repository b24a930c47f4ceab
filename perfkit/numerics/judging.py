"""All tensors of a case, and all cases of a verify run -> one verdict with its reasons."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from perfkit.numerics.rule import ACCEPTABLE_RELATIVE_ERROR, Row, judge_tensor
from perfkit.numerics.tolerances import tolerance_named
from perfkit.numerics.verdicts import Verdict, combine
from perfkit.wire.payloads import CheckedCase, TensorCheck


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseJudgement:
    """One case under one seed."""

    case: str
    seed: int
    verdict: Verdict
    rows: tuple[Row, ...]
    reasons: tuple[str, ...]
    """What speaks against a plain PASS of the case as a whole; reasons of single rows stand in the rows."""
    notes: tuple[str, ...]
    """What a reader should know and that changes no verdict."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Judgement:
    """All cases and seeds that were checked."""

    verdict: Verdict
    cases: tuple[CaseJudgement, ...]


def judge(
    cases: Iterable[CheckedCase],
    *,
    fudge_factor: float,
    atol: float,
    tolerance: str = "",
    acceptable_relative_error: float = ACCEPTABLE_RELATIVE_ERROR,
) -> Judgement:
    """Judges every case; the combined verdict is as bad as the worst.

    Raises:
        UsageError: no tolerance class of that name.
    """
    judged = tuple(
        judge_case(
            case,
            fudge_factor=fudge_factor,
            atol=atol,
            tolerance=tolerance,
            acceptable_relative_error=acceptable_relative_error,
        )
        for case in cases
    )
    return Judgement(verdict=combine(case.verdict for case in judged), cases=judged)


def judge_case(
    case: CheckedCase,
    *,
    fudge_factor: float,
    atol: float,
    tolerance: str = "",
    acceptable_relative_error: float = ACCEPTABLE_RELATIVE_ERROR,
) -> CaseJudgement:
    """Judges one case: its tensors one by one, then what only the whole case can show.

    Raises:
        UsageError: no tolerance class of that name.
    """
    narrow = bool(case.narrow_golden_ops) or case.golden_dtype != "fp64"
    rows = tuple(
        judge_tensor(
            check,
            fudge_factor=fudge_factor,
            atol=atol,
            acceptable_relative_error=acceptable_relative_error,
            tolerance=tolerance_named(tolerance),
            golden_is_narrow=narrow,
        )
        for check in case.tensors
    )
    reasons = _case_reasons(case, rows)
    verdicts = [row.verdict for row in rows] + [Verdict.INCONCLUSIVE for _ in reasons]
    return CaseJudgement(
        case=case.case,
        seed=case.seed,
        verdict=combine(verdicts),
        rows=rows,
        reasons=reasons,
        notes=(*case.notes, *_repeat_notes(case)),
    )


def _case_reasons(case: CheckedCase, rows: tuple[Row, ...]) -> tuple[str, ...]:
    """Each of these makes the case INCONCLUSIVE, whatever its rows say, unless one of them fails."""
    reasons = []
    if case.target_is_reference:
        reasons.append("The target is the reference itself, which proves nothing.")
    if case.narrow_golden_ops:
        listed = ", ".join(case.narrow_golden_ops[:5])
        more = f" and {len(case.narrow_golden_ops) - 5} more" if len(case.narrow_golden_ops) > 5 else ""
        reasons.append(f"The golden run was not fp64 throughout: {listed}{more}.")
    elif case.golden_dtype != "fp64":
        reasons.append(f"The golden run was computed in {case.golden_dtype}, not in fp64.")
    for role, plural in (("output", "outputs"), ("gradient", "gradients")):
        mine = [row for check, row in zip(case.tensors, rows, strict=True) if check.role == role]
        if _needs_evidence(case.tensors, role) and not any(_is_evidence(row) for row in mine):
            reasons.append(f"None of its {len(mine)} {plural} could be compared as numbers.")
    return tuple(reasons)


def _needs_evidence(checks: tuple[TensorCheck, ...], role: str) -> bool:
    """Some output must be compared always, some gradient where there are any."""
    return role == "output" or any(check.role == role for check in checks)


def _is_evidence(row: Row) -> bool:
    return row.compared or row.verdict in (Verdict.FAIL, Verdict.INCONCLUSIVE)


def _repeat_notes(case: CheckedCase) -> tuple[str, ...]:
    if case.repeats_equal is None:
        return ("It was not run twice, so nothing is known about determinism.",)
    if not case.repeats_equal:
        return ("Not deterministic: runs on identical inputs differ in bits; the worst of them was judged.",)
    return ()
