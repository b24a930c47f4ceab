"""ideal: how fast each piece of the eager step could be, against how fast it is."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from perfkit.effort import Effort
from perfkit.report.csv_reading import unattributed_piece
from perfkit.report.csvs import ideal_csv
from perfkit.stages.analysis import Analysis, analyse
from perfkit.stages.answer import StageReport
from perfkit.stages.peaks import peaks_of
from perfkit.stages.plan import PlannedSlot
from perfkit.stages.plans import plan_ideal, plan_profile
from perfkit.stages.profile import profile_of, traces_are_here, write_profile
from perfkit.stages.request import StageRequest
from perfkit.stages.running import Say, dry_run, exit_code, failure_warnings, measure, opened
from perfkit.stages.session import Session, prepare
from perfkit.stages.tables import pieces_table


def run(request: StageRequest, *, say: Say) -> StageReport:
    """Takes the ledger of each case (a kernel's work is declared, and timed by profile) and states floors.

    Raises:
        PerfkitError, UsageError: see prepare; also when another perfkit holds the effort.
    """
    session = prepare(request)
    plan = plan_ideal(session) or plan_profile(session)
    if request.dry_run:
        return dry_run(plan, session=session)
    with opened(session, say=say) as effort:
        return ideal(session, effort=effort, plan=plan, say=say)


def ideal(session: Session, *, effort: Effort, plan: Sequence[PlannedSlot], say: Say) -> StageReport:
    """Measures what is missing, writes ideal.csv, and brings profile.md up to date where it exists."""
    peaks = peaks_of(session, effort=effort, say=say)
    slots = measure(plan, session=session, effort=effort)
    analysis = analyse(session, effort=effort, peaks=peaks)
    closing = [unattributed_piece(closure) for closure in analysis.closures]
    files = [effort.write("ideal.csv", ideal_csv((*analysis.pieces, *closing)))]
    if traces_are_here(session, effort):
        found = profile_of(session, effort=effort, peaks=peaks, analysis=analysis)
        files.append(write_profile(effort, found))
    lines = _closure_lines(analysis)
    effort.note("Ideal times", *lines, *analysis.notes)
    cases = dict.fromkeys(piece.case for piece in analysis.pieces)
    return StageReport(
        headline=" ".join(lines),
        tables=tuple(
            pieces_table([piece for piece in analysis.pieces if piece.case == case], case=case)
            for case in cases
        ),
        document={
            "effort": str(effort.folder),
            "pieces": msgspec.to_builtins(analysis.pieces),
            "closures": msgspec.to_builtins(analysis.closures),
        },
        exit_code=exit_code(slots),
        files=tuple(files),
        warnings=(*failure_warnings(slots, effort=effort), *analysis.notes),
    )


def _closure_lines(analysis: Analysis) -> tuple[str, ...]:
    return tuple(
        f"{closure.case}: attributed {closure.attributed_us:.1f} us + unattributed "
        f"{closure.unattributed_us:.1f} us ({closure.unattributed_us / closure.total_us:.2%}) "
        f"= {closure.total_us:.1f} us."
        for closure in analysis.closures
        if closure.total_us
    )
