"""Everything that an effort has recorded, gathered into the data of the findings; measures nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perfkit.effort import Effort
from perfkit.effort.variants import notebook_section
from perfkit.report.model import Change, Comparison, ComparisonRow, Findings, Rejected
from perfkit.report.ranking import headline_rows
from perfkit.stages.analysis import Analysis, analyse
from perfkit.stages.bench import compare
from perfkit.stages.command import repeat_command
from perfkit.stages.kernel_profile import provider_rows
from perfkit.stages.layer_profile import matrix_rows
from perfkit.stages.plans import plan_bench, plan_profile, plan_verify
from perfkit.stages.session import Session
from perfkit.stages.slots import planned_records
from perfkit.stages.verdicts import correctness_of
from perfkit.stats import format_percent
from perfkit.wire.payloads import Peaks, StepTimes
from perfkit.wire.results import SlotRecord
from perfkit.wire.spec import Subject

GRAPH_BUDGET = 6
"""Compiled graphs per tree above which torch's default recompile limit of 8 comes near."""


def findings_of(session: Session, *, effort: Effort, peaks: Peaks | None) -> Findings:
    """The data of findings.md, of the PR texts and of the plots; without peaks, no floors and no shares."""
    profiled = planned_records(plan_profile(session), effort=effort, session=session.key)
    timed = planned_records(plan_bench(session), effort=effort, session=session.key)
    verified = planned_records(plan_verify(session), effort=effort, session=session.key)
    analysis = analyse(session, effort=effort, peaks=peaks) if peaks is not None else Analysis()
    comparison = compare(session, effort=effort, records=timed)
    subjects = (*session.baselines(), *session.variants())
    changes = tuple(
        _change(session, effort, subject) for subject in subjects if subject.label != comparison.baseline
    )
    return Findings(
        conditions=comparison.conditions,
        comparison=comparison,
        changes=changes,
        matrix=matrix_rows(profiled) if session.is_layer else (),
        providers=() if session.is_layer or peaks is None else provider_rows(profiled, peaks=peaks),
        pieces=analysis.pieces,
        candidates=analysis.candidates,
        closures=analysis.closures,
        correctness=correctness_of(verified),
        rejected=tuple(_rejected(comparison, changes)),
        compile_limits=tuple(_compile_limits(timed)),
        not_tested=tuple(_not_tested(session)),
        test_command=repeat_command(session),
    )


def _change(session: Session, effort: Effort, subject: Subject) -> Change:
    if subject.variant != "v0":
        return Change(
            subject=subject.label,
            kind="variant",
            names=tuple(file.replaces for file in subject.overlay),
            idea=notebook_section(effort.variants_dir, subject.variant, "Hypothesis"),
            predicted=notebook_section(effort.variants_dir, subject.variant, "Expected"),
        )
    if session.is_layer:
        names = session.target.blocks if subject.tree == "block" else session.target.regions
        return Change(subject=subject.label, kind="tree", names=names)
    return Change(subject=subject.label, kind="provider", names=(subject.provider,))


def _rejected(comparison: Comparison, changes: Sequence[Change]) -> Iterator[Rejected]:
    """Variants that failed verification or were not shown to be faster; one process alone decides nothing."""
    variants = {change.subject: change for change in changes if change.kind == "variant"}
    for row in headline_rows(comparison.rows):
        if (change := variants.get(row.subject)) is None:
            continue
        if row.verdict in ("FAIL", "INCONCLUSIVE"):
            yield Rejected(idea=_idea(change), number=_number(row), why=f"verify: {row.verdict}")
        elif row.ratio is not None and row.ratio.low is not None and not row.ratio.smaller:
            why = "slower" if row.ratio.larger else "no difference shown"
            yield Rejected(idea=_idea(change), number=_number(row), why=f"{why} on {row.case}")


def _idea(change: Change) -> str:
    return f"{change.subject}: {change.idea or 'no hypothesis written'}"


def _number(row: ComparisonRow) -> str:
    if row.ratio is None:
        return ""
    return f"{format_percent(row.ratio.ratio - 1, signed=True)} ({row.case}, {row.launch}, {row.kind})"


def _compile_limits(records: Sequence[SlotRecord]) -> Iterator[str]:
    worst: dict[str, int] = {}
    for record in records:
        payload = record.result.payload
        if isinstance(payload, StepTimes) and payload.num_graphs is not None:
            label = record.spec.subject.label
            worst[label] = max(worst.get(label, 0), payload.num_graphs)
    for label, num_graphs in worst.items():
        if num_graphs > GRAPH_BUDGET:
            yield f"{label} compiles {num_graphs} graphs; the limit of one code object is 8 by default"


def _not_tested(session: Session) -> Iterator[str]:
    yield f"dtypes other than {session.dtype}"
    if session.is_layer:
        yield f"activation checkpointing other than {session.measure.checkpoint}"
        yield "graph counts over all shapes and under no_grad"
    if not session.measure.graph and session.device != "cpu":
        yield "CUDA graph replay (--no-graph)"
