"""rank: what to try first, by what each piece could give back at best."""

from __future__ import annotations

import msgspec

from perfkit.effort import Effort
from perfkit.errors import PerfkitError
from perfkit.report.csvs import candidates_csv
from perfkit.stages.analysis import Analysis, analyse
from perfkit.stages.answer import StageReport
from perfkit.stages.peaks import ensure_peaks
from perfkit.stages.plans import plan_ideal, plan_profile
from perfkit.stages.profile import profile_of, write_profile
from perfkit.stages.request import StageRequest
from perfkit.stages.running import Say, dry_run, opened
from perfkit.stages.session import Session, prepare
from perfkit.stages.slots import planned_records
from perfkit.stages.tables import candidates_table


def run(request: StageRequest, *, say: Say) -> StageReport:
    """Ranks what ideal (for a kernel: profile) has recorded; measures nothing but missing peaks.

    Raises:
        PerfkitError: nothing is recorded to rank yet.
    """
    session = prepare(request)
    if request.dry_run:
        return dry_run((), session=session)
    with opened(session, say=say) as effort:
        return rank(session, effort=effort, say=say)


def rank(session: Session, *, effort: Effort, say: Say) -> StageReport:
    """Writes candidates.csv and the table in profile.md."""
    if not planned_records(plan_ideal(session) or plan_profile(session), effort=effort, session=session.key):
        raise _nothing_recorded(session)
    peaks = ensure_peaks(session.device, request=session.request, say=say)
    analysis = analyse(session, effort=effort, peaks=peaks)
    files = [effort.write("candidates.csv", candidates_csv(analysis.candidates))]
    found = profile_of(session, effort=effort, peaks=peaks, analysis=analysis)
    files.append(write_profile(effort, found))
    effort.note("Ranked", *_top_lines(analysis))
    return StageReport(
        headline=_headline(analysis),
        tables=(candidates_table(analysis.candidates),),
        document={"effort": str(effort.folder), "candidates": msgspec.to_builtins(analysis.candidates)},
        files=tuple(files),
    )


def _nothing_recorded(session: Session) -> PerfkitError:
    """What to say when a stage needs an earlier one."""
    earlier = "ideal" if plan_ideal(session) else "profile"
    return PerfkitError(
        f"There is nothing to rank for {session.target.name} yet.",
        why=f"{session.folder} holds no result of `{earlier}` under these options and versions.",
        do=f"Run `perfkit {earlier} {session.resolved.text}` first, or `perfkit investigate`.",
    )


def _headline(analysis: Analysis) -> str:
    worthwhile = [candidate for candidate in analysis.candidates if candidate.worthwhile]
    if not worthwhile:
        return "No piece is more than 1% of the step above its floor: nothing here is worth a try."
    return f"{len(worthwhile)} of {len(analysis.candidates)} candidates are worth a try."


def _top_lines(analysis: Analysis) -> tuple[str, ...]:
    return tuple(
        f"{candidate.piece.case} {candidate.piece.name}: {candidate.gain_us:.0f} us above its floor "
        f"({candidate.share:.1%} of the step), {candidate.piece.where}"
        for candidate in analysis.candidates[:5]
    )
