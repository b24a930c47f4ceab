"""bench: trees, providers and variants side by side in fresh processes; comparison.md from what they said."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from perfkit.effort import Effort
from perfkit.effort.variants import has_prediction
from perfkit.report.comparison_md import comparison_md
from perfkit.report.csvs import comparison_csv
from perfkit.report.model import Comparison
from perfkit.stages.answer import StageReport
from perfkit.stages.compare import comparison_rows
from perfkit.stages.conditions import conditions_of
from perfkit.stages.doubts import doubts
from perfkit.stages.plan import PlannedSlot
from perfkit.stages.plans import plan_bench, plan_verify
from perfkit.stages.request import StageRequest
from perfkit.stages.running import Say, dry_run, exit_code, failure_warnings, measure, opened
from perfkit.stages.session import Session, prepare
from perfkit.stages.slots import planned_records
from perfkit.stages.tables import comparison_table
from perfkit.stages.verdicts import verdicts_of
from perfkit.wire.results import SlotRecord


def run(request: StageRequest, *, say: Say) -> StageReport:
    """Runs the missing slots of the plan and compares.

    Raises:
        PerfkitError, UsageError: see prepare; also when another perfkit holds the effort.
    """
    session = prepare(request)
    plan = plan_bench(session)
    if request.dry_run:
        return dry_run(plan, session=session)
    with opened(session, say=say) as effort:
        return bench(session, effort=effort, plan=plan)


def bench(session: Session, *, effort: Effort, plan: Sequence[PlannedSlot]) -> StageReport:
    """Measures, writes comparison.md and benchmarks/*.csv, and returns the table."""
    slots = measure(plan, session=session, effort=effort)
    comparison = compare(session, effort=effort, records=slots.records)
    files = write_comparison(comparison, effort)
    unpredicted = [name for name in effort.variant_names() if not has_prediction(effort.variants_dir, name)]
    warnings = [f"{name}'s notebook predicts no number; write one before the run." for name in unpredicted]
    return StageReport(
        tables=(comparison_table(comparison),),
        document={"effort": str(effort.folder), "comparison": msgspec.to_builtins(comparison)},
        exit_code=exit_code(slots),
        files=tuple(files),
        warnings=(*failure_warnings(slots, effort=effort), *warnings),
    )


def write_comparison(comparison: Comparison, effort: Effort) -> list[Path]:
    """Writes comparison.md and benchmarks/*.csv, and returns their paths."""
    files = [effort.write("comparison.md", comparison_md(comparison))]
    return files + [effort.write(f"benchmarks/{name}", text) for name, text in _csvs(comparison).items()]


def compare(session: Session, *, effort: Effort, records: Sequence[SlotRecord]) -> Comparison:
    """The comparison of these records, with the verdicts that verify has given so far."""
    baseline = baseline_label(records)
    verified = planned_records(plan_verify(session), effort=effort, session=session.key)
    notes = list(doubts(records))
    if not verified:
        notes.append("Nothing was verified yet: run `perfkit verify` before believing a ranking.")
    return Comparison(
        conditions=conditions_of(session, records),
        baseline=baseline,
        rows=comparison_rows(records, baseline=baseline, verdicts=verdicts_of(verified)),
        notes=tuple(notes),
    )


def baseline_label(records: Sequence[SlotRecord]) -> str:
    """What ratios refer to: the eager step, or the unmodified kernel under test where it is timed."""
    labels = {record.spec.subject.label for record in records}
    return "target" if "target" in labels else "eager"


def _csvs(comparison: Comparison) -> dict[str, str]:
    """v0_baseline.csv: the unmodified target as every tree or provider; v<N>_results.csv: one variant."""
    names: dict[str, list[int]] = {}
    for index, row in enumerate(comparison.rows):
        variant = row.subject.partition("/")[0] if "/" in row.subject else "v0"
        names.setdefault("v0_baseline.csv" if variant == "v0" else f"{variant}_results.csv", []).append(index)
    return {
        name: comparison_csv([comparison.rows[index] for index in indices]) for name, indices in names.items()
    }
