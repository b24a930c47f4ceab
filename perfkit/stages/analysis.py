"""Pieces, floors, ranking and closure of what is recorded: the ledger of a layer, the work of a kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfkit import floors
from perfkit.effort import Effort
from perfkit.report.csv_reading import read_candidates_csv, read_ideal_csv
from perfkit.report.model import Candidate, Closure, Piece
from perfkit.stages.kernel_pieces import kernel_pieces
from perfkit.stages.plans import plan_ideal, plan_profile
from perfkit.stages.session import Session
from perfkit.stages.slots import planned_records
from perfkit.trace import LabelTimes, label_times, read_trace
from perfkit.wire.codec import decode
from perfkit.wire.ledger import Ledger
from perfkit.wire.payloads import Costs, Peaks
from perfkit.wire.results import SlotRecord

LABELLING_LIMIT = 0.01
"""Labels that change kernel time by more than 1% are a fault of the probe, and are said so."""

NUM_EXAMPLES = 4
"""Pieces that a note about many names; ideal.csv flags them all."""

CUT_OP_ADVICE = "not to be fused: another backend, dtype or layout"


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """What ideal and rank know; empty parts where nothing is recorded."""

    pieces: tuple[Piece, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    """Per case: islands by gain, then cut ops by gain."""
    closures: tuple[Closure, ...] = ()
    notes: tuple[str, ...] = ()
    """Violated floors with their diagnosis, and what weakens the numbers."""


def analyse(session: Session, *, effort: Effort, peaks: Peaks) -> Analysis:
    """The analysis of all cases that are recorded under the session; nothing is measured.

    Raises:
        PerfkitError: a ledger or trace of a recorded slot cannot be read.
    """
    if not session.is_layer:
        records = planned_records(plan_profile(session), effort=effort, session=session.key)
        pieces = kernel_pieces(records, peaks=peaks)
        return Analysis(
            pieces=pieces,
            candidates=tuple(_kernel_candidates(pieces)),
            notes=tuple(_kernel_notes(pieces, peaks)),
        )
    records = planned_records(plan_ideal(session), effort=effort, session=session.key)
    if session.recorded is not None and not all(_ledger_is_here(record, effort) for record in records):
        return _from_csv(effort)
    parts = [
        _analyse_layer(record, payload, slot_dir=effort.folder / "slots" / record.slot, peaks=peaks)
        for record in records
        if isinstance(payload := record.result.payload, Costs)
    ]
    return Analysis(
        pieces=tuple(piece for part in parts for piece in part.pieces),
        candidates=tuple(candidate for part in parts for candidate in part.candidates),
        closures=tuple(closure for part in parts for closure in part.closures),
        notes=tuple(note for part in parts for note in part.notes),
    )


def _ledger_is_here(record: SlotRecord, effort: Effort) -> bool:
    payload = record.result.payload
    return (
        not isinstance(payload, Costs)
        or (effort.folder / "slots" / record.slot / payload.ledger_file).is_file()
    )


def _from_csv(effort: Effort) -> Analysis:
    """What ideal and rank wrote, where only the effort's own files travelled and not those of its slots."""
    ideal, candidates = effort.folder / "ideal.csv", effort.folder / "candidates.csv"
    if not ideal.is_file():
        return Analysis()
    pieces, closures = read_ideal_csv(ideal.read_text())
    ranked = read_candidates_csv(candidates.read_text()) if candidates.is_file() else ()
    return Analysis(pieces=pieces, candidates=ranked, closures=closures)


def _analyse_layer(record: SlotRecord, costs: Costs, *, slot_dir: Path, peaks: Peaks) -> Analysis:
    case = record.spec.case.name if record.spec.case else ""
    ledger = decode((slot_dir / costs.ledger_file).read_bytes(), Ledger)
    plain = read_trace(slot_dir / costs.plain_trace_file) if costs.plain_trace_file else None
    times = label_times(
        read_trace(slot_dir / costs.trace_file), num_steps=costs.num_traced_steps, plain=plain
    )
    units = floors.find_units(ledger)
    attribution = floors.attribute(
        units, times.times_us, unattributed_us=times.unattributed_us, total_us=times.total_us
    )
    rows = floors.ideal_rows(units, attribution, peaks)
    closed = floors.closure(attribution)
    return Analysis(
        pieces=tuple(_piece(case, row) for row in rows),
        candidates=tuple(_candidates(case, rows, total_us=times.total_us)),
        closures=(Closure(case=case, total_us=closed.total_us, attributed_us=closed.attributed_us),),
        notes=tuple(_notes(case, costs, rows, times)),
    )


def _piece(case: str, row: floors.Row) -> Piece:
    return Piece(
        case=case,
        name=row.id,
        phase=row.phase,
        kind="glue" if row.kind == "island" else row.kind,
        measured_us=row.measured_us,
        floor_us=row.floor_us,
        unfused_floor_us=row.unfused_floor_us,
        num_ops=row.num_ops,
        ops=", ".join(row.ops),
        modules=row.modules,
        sources=row.source_lines,
        bound=row.bound,
        num_bytes=row.num_bytes,
        num_flops=row.num_flops,
        flags=row.flags,
    )


def _candidates(case: str, rows: Sequence[floors.Row], *, total_us: float) -> Iterator[Candidate]:
    """What is worth it comes first; among that, islands before cut ops, which no fusion can win."""
    islands = floors.rank(rows, total_us=total_us, among="islands")
    cut_ops = floors.rank(rows, total_us=total_us, among="cut_ops")
    ordered = sorted((*islands, *cut_ops), key=lambda candidate: not candidate.worthwhile)
    for place, candidate in enumerate(ordered, start=1):
        yield Candidate(
            rank=place,
            piece=_grouped(case, candidate),
            gain_us=candidate.gain_us,
            share=candidate.share,
            worthwhile=candidate.worthwhile,
            advice=CUT_OP_ADVICE if candidate in cut_ops else "",
        )


def _grouped(case: str, candidate: floors.Candidate) -> Piece:
    """Equal pieces of repeated blocks as one, under the id of the first and with their number."""
    first = _piece(case, candidate.rows[0])
    several = f" and {candidate.count - 1} equal" if candidate.count > 1 else ""
    return Piece(
        case=case,
        name=f"{first.name}{several}",
        phase=first.phase,
        kind=first.kind,
        measured_us=candidate.measured_us,
        floor_us=candidate.floor_us,
        unfused_floor_us=candidate.unfused_floor_us,
        num_ops=sum(row.num_ops for row in candidate.rows),
        ops=first.ops,
        modules=tuple(dict.fromkeys(module for row in candidate.rows for module in row.modules)),
        sources=candidate.source_lines,
        bound=first.bound,
        num_bytes=sum(row.num_bytes for row in candidate.rows),
        num_flops=sum(row.num_flops for row in candidate.rows),
        flags=candidate.flags,
    )


def _kernel_candidates(pieces: Sequence[Piece]) -> Iterator[Candidate]:
    """Passes of the kernel under test (or of its reference, where only that is timed), by gain."""
    with_floor = [piece for piece in pieces if piece.gain_us is not None]
    totals: dict[str, float] = {}
    for piece in with_floor:
        totals[piece.case] = totals.get(piece.case, 0.0) + piece.measured_us
    ordered = sorted(with_floor, key=lambda piece: -(piece.gain_us or 0.0) / totals[piece.case])
    for place, piece in enumerate(ordered, start=1):
        gain_us = piece.gain_us or 0.0
        share = gain_us / totals[piece.case]
        yield Candidate(
            rank=place, piece=piece, gain_us=gain_us, share=share, worthwhile=share >= floors.MIN_SHARE
        )


def _kernel_notes(pieces: Sequence[Piece], peaks: Peaks) -> Iterator[str]:
    for piece in pieces:
        if "below_floor" in piece.flags and piece.floor_us is not None:
            why = floors.explain_fast_bytes(
                piece.num_bytes or 0, piece.floor_us, measured_us=piece.measured_us, peaks=peaks
            )
            yield (
                f"{piece.case}: {piece.name} took {piece.measured_us:.1f} us, below its floor of "
                f"{piece.floor_us:.1f} us. {why}"
            )


def _notes(case: str, costs: Costs, rows: Sequence[floors.Row], times: LabelTimes) -> Iterator[str]:
    for note in costs.notes:
        yield f"{case}: {note}"
    if not costs.same_ops:
        yield f"{case}: the labelled steps ran other ops than the ledger step; times per piece are doubtful."
    if costs.plain_trace_file and times.times_from == "labelled":
        yield f"{case}: the labelled steps ran other kernels than the plain ones, so theirs are used."
    change = costs.labelled_kernel_time_us / costs.plain_kernel_time_us - 1
    if abs(change) > LABELLING_LIMIT and times.times_from == "labelled":
        yield (
            f"{case}: with labels a step's kernels took {change:+.1%} of their time without "
            f"({costs.labelled_kernel_time_us:.0f} us against {costs.plain_kernel_time_us:.0f} us)."
        )
    by_diagnosis: dict[str, list[floors.Row]] = {}
    for row in floors.violations(rows):
        by_diagnosis.setdefault(row.diagnosis, []).append(row)
    for diagnosis, group in by_diagnosis.items():
        shown = [
            f"{row.id} {row.measured_us:.1f} us against {row.floor_us:.1f}" for row in group[:NUM_EXAMPLES]
        ]
        more = f" and {len(group) - NUM_EXAMPLES} more" if len(group) > NUM_EXAMPLES else ""
        yield f"{case}: below the floor: {', '.join(shown)}{more}. {diagnosis}"
