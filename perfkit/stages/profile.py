"""profile: where the time goes, per tree and launch state of a layer, or per provider of a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from perfkit.effort import Effort
from perfkit.report.model import Profile
from perfkit.report.profile_md import profile_md
from perfkit.stages.analysis import Analysis, analyse
from perfkit.stages.answer import StageReport
from perfkit.stages.conditions import conditions_of
from perfkit.stages.kernel_profile import provider_rows
from perfkit.stages.layer_profile import matrix_rows, traced_kernels
from perfkit.stages.peaks import peaks_of
from perfkit.stages.plan import PlannedSlot
from perfkit.stages.plans import plan_profile
from perfkit.stages.request import StageRequest
from perfkit.stages.running import Say, dry_run, exit_code, failure_warnings, measure, opened
from perfkit.stages.session import Session, prepare
from perfkit.stages.slots import planned_records
from perfkit.stages.tables import profile_tables, rate_text
from perfkit.wire.payloads import Peaks, StepTimes


def run(request: StageRequest, *, say: Say) -> StageReport:
    """Runs the missing slots and writes profile.md.

    Raises:
        PerfkitError, UsageError: see prepare; also when another perfkit holds the effort.
    """
    session = prepare(request)
    plan = plan_profile(session)
    if request.dry_run:
        return dry_run(plan, session=session)
    with opened(session, say=say) as effort:
        return profile(session, effort=effort, plan=plan, say=say)


def profile(session: Session, *, effort: Effort, plan: Sequence[PlannedSlot], say: Say) -> StageReport:
    """Measures what is missing and writes profile.md."""
    peaks = peaks_of(session, effort=effort, say=say)
    slots = measure(plan, session=session, effort=effort)
    analysis = analyse(session, effort=effort, peaks=peaks)
    found = profile_of(session, effort=effort, peaks=peaks, analysis=analysis)
    return StageReport(
        tables=profile_tables(found),
        document={"effort": str(effort.folder), "profile": msgspec.to_builtins(found)},
        exit_code=exit_code(slots),
        files=(write_profile(effort, found),),
        warnings=failure_warnings(slots, effort=effort),
    )


def profile_of(session: Session, *, effort: Effort, peaks: Peaks, analysis: Analysis) -> Profile:
    """Everything that profile.md can say by now: what was profiled, and what ideal and rank made of it."""
    records = planned_records(plan_profile(session), effort=effort, session=session.key)
    conditions = conditions_of(session, records, num_processes=1)
    ceilings = tuple((rate.name, rate_text(rate)) for rate in peaks.rates)
    if not session.is_layer:
        return Profile(
            conditions=conditions,
            providers=provider_rows(records, peaks=peaks),
            candidates=analysis.candidates,
            peaks=ceilings,
            notes=(*session.notes, *analysis.notes),
        )
    traced = traced_kernels(records, slots_dir=effort.folder / "slots")
    return Profile(
        conditions=conditions,
        matrix=matrix_rows(records),
        families=traced.families,
        kernels=traced.kernels,
        closures=analysis.closures,
        candidates=analysis.candidates,
        peaks=ceilings,
        notes=(*session.notes, *traced.notes, *analysis.notes),
    )


def traces_are_here(session: Session, effort: Effort) -> bool:
    """Whether profile.md can be written again: its kernel tables need the traces of the slots."""
    records = planned_records(plan_profile(session), effort=effort, session=session.key)
    needed = [
        effort.folder / "slots" / record.slot / record.result.payload.trace_file
        for record in records
        if isinstance(record.result.payload, StepTimes) and record.result.payload.trace_file
    ]
    return bool(records) and all(path.is_file() for path in needed)


def write_profile(effort: Effort, found: Profile) -> Path:
    """Writes profile.md and returns its path."""
    return effort.write("profile.md", profile_md(found))
