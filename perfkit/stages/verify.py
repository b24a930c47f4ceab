"""verify: outputs and all gradients of each subject against eager and a float64 reference."""

from __future__ import annotations

from collections.abc import Sequence

from perfkit.effort import Effort
from perfkit.errors import ExitCode
from perfkit.numerics import Verdict
from perfkit.stages.answer import StageReport
from perfkit.stages.plan import PlannedSlot
from perfkit.stages.plans import plan_verify
from perfkit.stages.request import StageRequest
from perfkit.stages.running import Say, dry_run, failure_warnings, measure, opened
from perfkit.stages.session import Session, prepare
from perfkit.stages.slots import SlotsRun
from perfkit.stages.tables import verify_tables
from perfkit.stages.verdicts import SubjectJudgement, judged_subjects


def run(request: StageRequest, *, say: Say) -> StageReport:
    """Checks every subject that is not the reference itself.

    Raises:
        PerfkitError, UsageError: see prepare; also when another perfkit holds the effort.
    """
    session = prepare(request, timed=False)
    plan = plan_verify(session)
    if request.dry_run:
        return dry_run(plan, session=session)
    with opened(session, say=say) as effort:
        return verify(session, effort=effort, plan=plan)


def verify(session: Session, *, effort: Effort, plan: Sequence[PlannedSlot]) -> StageReport:
    """Checks, writes verify.csv, and gives the verdict."""
    slots = measure(plan, session=session, effort=effort)
    judged = judged_subjects(slots.records)
    for subject in judged:
        effort.note(
            f"Verified {subject.label}: {subject.verdict}", *([subject.reason] if subject.reason else [])
        )
    declared = f"fudge factor {session.measure.fudge_factor:g}, atol {session.measure.atol:g}"
    return StageReport(
        headline=_headline(judged),
        tables=verify_tables(judged, declared=declared),
        document={"effort": str(effort.folder), "subjects": [_document(subject) for subject in judged]},
        exit_code=_exit_code(judged, slots),
        warnings=failure_warnings(slots, effort=effort),
    )


def _headline(judged: Sequence[SubjectJudgement]) -> str:
    if not judged:
        return "Nothing to verify: the only subject is the reference itself."
    return " ".join(f"{subject.label}: {subject.verdict}." for subject in judged)


def _exit_code(judged: Sequence[SubjectJudgement], slots: SlotsRun) -> ExitCode:
    verdicts = {subject.verdict for subject in judged}
    if Verdict.FAIL in verdicts:
        return ExitCode.NEGATIVE
    if slots.failed:
        return ExitCode.FAILED
    return ExitCode.INCONCLUSIVE if Verdict.INCONCLUSIVE in verdicts else ExitCode.GOOD


def _document(subject: SubjectJudgement) -> dict[str, object]:
    return {
        "subject": subject.label,
        "verdict": str(subject.verdict),
        "reason": subject.reason,
        "ran": subject.ran,
        "unanswered": list(subject.unanswered),
        "tensors": [
            {
                "tensor": row.tensor,
                "verdict": str(row.verdict),
                "reason": row.reason,
                "reference_relative_error": row.reference_relative_error,
                "target_error": row.target_error,
                "threshold": row.threshold,
                "gate_valid": row.gate_valid,
            }
            for _, row in subject.checks
        ],
    }
