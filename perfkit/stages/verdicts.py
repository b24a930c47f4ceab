"""From the slots of verify to verdicts per subject; pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from perfkit.numerics import CaseJudgement, Row, Verdict, combine, judge
from perfkit.report.model import Correctness
from perfkit.report.model import Verdict as VerdictText
from perfkit.wire.payloads import TensorCheck, Verified
from perfkit.wire.results import SlotRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectJudgement:
    """Everything that verify found for one subject."""

    label: str
    verdict: Verdict
    reason: str
    """Why it is not a plain PASS; "" when it is."""
    cases: tuple[CaseJudgement, ...]
    checks: tuple[tuple[TensorCheck, Row], ...]
    unanswered: tuple[str, ...]
    """Cases whose slot ended without an answer, with the reason."""
    ran: str
    """What executed, as the harness says: `triton interpreter`, `compiled (2 graphs)`."""


def judged_subjects(records: Iterable[SlotRecord]) -> tuple[SubjectJudgement, ...]:
    """One judgement per subject, over all its cases and seeds, in the order of the records."""
    by_label: dict[str, list[SlotRecord]] = {}
    for record in records:
        if record.stage == "verify":
            by_label.setdefault(record.spec.subject.label, []).append(record)
    return tuple(_judge_subject(label, group) for label, group in by_label.items())


def verdicts_of(records: Iterable[SlotRecord]) -> dict[tuple[str, str], tuple[VerdictText, str]]:
    """The verdict of each subject, for tables that must not rank what failed."""
    return {(s.label, ""): (_text(s.verdict), s.reason) for s in judged_subjects(records)}


def correctness_of(records: Iterable[SlotRecord]) -> tuple[Correctness, ...]:
    """The terms of a PR's correctness line, one entry per subject."""
    records = tuple(records)
    dtypes = {r.spec.subject.label: r.spec.dtype for r in records}
    return tuple(_correctness(s, dtype=dtypes[s.label]) for s in judged_subjects(records))


def _judge_subject(label: str, records: list[SlotRecord]) -> SubjectJudgement:
    cases: list[CaseJudgement] = []
    checks: list[tuple[TensorCheck, Row]] = []
    unanswered, ran = [], ""
    for record in records:
        payload = record.result.payload
        if record.result.fate != "ok" or not isinstance(payload, Verified):
            case = record.spec.case.name if record.spec.case else ""
            unanswered.append(f"{case}: {record.result.fate.replace('_', ' ')}, {record.result.reason}")
            continue
        ran = payload.subject_ran
        measure = record.spec.measure
        judgement = judge(
            payload.cases,
            fudge_factor=measure.fudge_factor,
            atol=measure.atol,
            tolerance=record.spec.tolerance,
        )
        cases += judgement.cases
        for checked, judged in zip(payload.cases, judgement.cases, strict=True):
            checks += zip(checked.tensors, judged.rows, strict=True)
    verdicts = [case.verdict for case in cases] + [Verdict.INCONCLUSIVE for _ in unanswered]
    verdict = combine(verdicts)
    return SubjectJudgement(
        label=label,
        verdict=verdict,
        reason=_reason(verdict, cases, unanswered),
        cases=tuple(cases),
        checks=tuple(checks),
        unanswered=tuple(unanswered),
        ran=ran,
    )


def _reason(verdict: Verdict, cases: list[CaseJudgement], unanswered: list[str]) -> str:
    """The first reason of the worst kind: what a reader needs to know next."""
    if verdict is Verdict.PASS:
        return ""
    for case in cases:
        if case.verdict is not verdict:
            continue
        rows = [f"{row.tensor} on {case.case}: {row.reason}" for row in case.rows if row.verdict is verdict]
        if rows or case.reasons:
            return (rows or list(case.reasons))[0]
    return unanswered[0] if unanswered else ""


def _text(verdict: Verdict) -> VerdictText:
    texts: dict[Verdict, VerdictText] = {
        Verdict.PASS: "PASS",
        Verdict.LIMITED: "PASS WITH LIMITATIONS",
        Verdict.FAIL: "FAIL",
        Verdict.INCONCLUSIVE: "INCONCLUSIVE",
    }
    return texts[verdict]


def _correctness(subject: SubjectJudgement, *, dtype: str) -> Correctness:
    with_numbers = [check for check, _ in subject.checks if check.rel_l2_target is not None]
    worst = max(with_numbers, key=lambda check: check.rel_l2_target or 0.0, default=None)
    names = {(check.role, check.name) for check, _ in subject.checks}
    return Correctness(
        subject=subject.label,
        verdict=_text(subject.verdict),
        dtype=dtype,
        num_outputs=sum(role == "output" for role, _ in names),
        num_gradients=sum(role == "gradient" for role, _ in names),
        worst_tensor=worst.name if worst else "",
        rel_l2_target=worst.rel_l2_target if worst else None,
        rel_l2_reference=worst.rel_l2_reference if worst else None,
        reason=subject.reason,
    )
