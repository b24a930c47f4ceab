"""rank: what to try first, by what each piece could give back at best."""

from __future__ import annotations

import msgspec

from perfkit.effort import Effort
from perfkit.report.csvs import candidates_csv
from perfkit.stages.analysis import Analysis, analyse
from perfkit.stages.answer import StageReport
from perfkit.stages.peaks import peaks_of
from perfkit.stages.plans import plan_ideal, plan_profile
from perfkit.stages.profile import profile_of, traces_are_here, write_profile
from perfkit.stages.request import StageRequest
from perfkit.stages.running import Say, dry_run, opened
from perfkit.stages.session import Session, nothing_recorded, prepare_recorded
from perfkit.stages.slots import planned_records
from perfkit.stages.tables import candidates_table


def run(request: StageRequest, *, say: Say) -> StageReport:
    """Ranks what ideal (for a kernel: profile) has recorded; measures nothing.

    Raises:
        PerfkitError: nothing is recorded to rank yet.
    """
    session = prepare_recorded(request, earlier="ideal")
    if request.dry_run:
        return dry_run((), session=session)
    with opened(session, say=say) as effort:
        return rank(session, effort=effort, say=say)


def rank(session: Session, *, effort: Effort, say: Say) -> StageReport:
    """Writes candidates.csv and the table in profile.md."""
    if not planned_records(plan_ideal(session) or plan_profile(session), effort=effort, session=session.key):
        raise nothing_recorded(effort.folder, session.resolved.text, earlier="ideal")
    peaks = peaks_of(session, effort=effort, say=say)
    analysis = analyse(session, effort=effort, peaks=peaks)
    files = [effort.write("candidates.csv", candidates_csv(analysis.candidates))]
    if traces_are_here(session, effort):
        files.append(
            write_profile(effort, profile_of(session, effort=effort, peaks=peaks, analysis=analysis))
        )
    effort.note("Ranked", *_top_lines(analysis))
    return StageReport(
        headline=_headline(analysis),
        tables=(candidates_table(analysis.candidates),),
        document={"effort": str(effort.folder), "candidates": msgspec.to_builtins(analysis.candidates)},
        files=tuple(files),
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
