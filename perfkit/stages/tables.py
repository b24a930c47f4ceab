"""The tables that stages answer with on the command line; the same words and digits as in the documents."""

from __future__ import annotations

from collections.abc import Sequence

from perfkit.numerics import CaseJudgement, Row, Verdict
from perfkit.report.model import Candidate, Comparison, MatrixRow, Piece, Profile, ProviderRow
from perfkit.report.words import (
    conclusion,
    conditions_line,
    fates_text,
    hole_text,
    interval_cell,
    ratio_cell,
    ratio_interval_cell,
    time_cell,
    time_unit,
)
from perfkit.stages.answer import Table
from perfkit.stages.verdicts import SubjectJudgement
from perfkit.stats import format_bytes, format_percent, format_rate, format_us
from perfkit.wire.payloads import Peaks, Rate

HOLE = "-"
MAX_ROWS = 25
"""Rows of a table on the screen; the file of the effort has them all."""


def rate_text(rate: Rate) -> str:
    """`4.21 TB/s`, `787 TFLOP/s`, `2.1 us`."""
    if rate.unit == "us":
        return format_us(rate.value)
    return format_rate(rate.value, unit="FLOP/s" if rate.unit == "flops_per_s" else "B/s")


def peaks_table(peaks: Peaks) -> Table:
    """Every measured ceiling with its spread and how it was measured."""
    rows = [
        (rate.name, rate_text(rate), f"{rate.spread_percent:.1f}%", str(rate.num_samples), rate.how)
        for rate in peaks.rates
    ]
    cache = format_bytes(peaks.cache_bytes) if peaks.cache_bytes else "unknown"
    return Table(
        title=f"Measured peaks of {peaks.device_key}",
        columns=("rate", "value", "spread", "samples", "how"),
        rows=tuple(rows),
        notes=(f"Cache: {cache}. Measured {peaks.measured_at}.",),
    )


def profile_tables(profile: Profile) -> tuple[Table, ...]:
    """The matrix and the kernel families of a layer; the providers of a kernel."""
    title = conditions_line(profile.conditions)
    if profile.conditions.kind == "kernel":
        return (_providers_table(profile.providers, title=title),)
    return (_matrix_table(profile.matrix, title=title), _families_table(profile))


def comparison_table(comparison: Comparison) -> Table:
    """One row per case, state and subject, with the ratio to the baseline and the verdict of verify."""
    unit = time_unit([row.time for row in comparison.rows])
    rows = [
        (
            row.case,
            row.direction,
            row.launch,
            row.cache,
            row.kind,
            row.subject,
            time_cell(row.time, unit=unit),
            interval_cell(row.time, unit=unit),
            ratio_cell(row.ratio),
            ratio_interval_cell(row.ratio),
            conclusion(row),
            row.verdict,
            fates_text(row.fates),
        )
        for row in comparison.rows
    ]
    return Table(
        title=conditions_line(comparison.conditions),
        columns=(
            *("case", "direction", "launch", "cache", "time", "subject", f"median {unit}", f"95% {unit}"),
            *(f"ratio to {comparison.baseline}", "95% ratio", "conclusion", "verify", "slots"),
        ),
        rows=tuple(rows),
        notes=comparison.notes,
    )


def pieces_table(pieces: Sequence[Piece], *, case: str) -> Table:
    """The most costly islands and cut ops of one case, measured against their floors."""
    total_us = sum(piece.measured_us for piece in pieces)
    ordered = sorted(pieces, key=lambda piece: -piece.measured_us)
    rows = [
        (
            piece.name,
            piece.kind,
            piece.phase,
            str(piece.num_ops),
            _us(piece.measured_us),
            _us(piece.floor_us),
            _us(piece.unfused_floor_us),
            f"{piece.measured_us / piece.floor_us:.2f}x" if piece.floor_us else HOLE,
            format_percent(piece.measured_us / total_us) if total_us else HOLE,
            piece.where,
        )
        for piece in ordered[:MAX_ROWS]
    ]
    more = len(ordered) - len(rows)
    return Table(
        title=f"Measured against the floor, {case}",
        columns=(
            *("piece", "kind", "phase", "ops", "measured us", "floor us", "unfused us", "ratio", "share"),
            "where",
        ),
        rows=tuple(rows),
        notes=(f"{more} smaller pieces are in ideal.csv.",) if more > 0 else (),
    )


def candidates_table(candidates: Sequence[Candidate]) -> Table:
    """What to try first, with the lines to cut at."""
    rows = [
        (
            str(candidate.rank),
            candidate.piece.case,
            candidate.piece.name,
            candidate.piece.kind,
            candidate.piece.phase,
            _us(candidate.gain_us),
            format_percent(candidate.share),
            "yes" if candidate.worthwhile else "no, under 1%",
            candidate.piece.where,
        )
        for candidate in candidates[:MAX_ROWS]
    ]
    more = len(candidates) - len(rows)
    return Table(
        title="Candidates, by what they could give back",
        columns=("rank", "case", "piece", "kind", "phase", "gain us", "of step", "worth it", "where"),
        rows=tuple(rows),
        notes=(f"{more} more are in candidates.csv.",) if more > 0 else (),
    )


def verify_tables(judged: Sequence[SubjectJudgement], *, declared: str) -> tuple[Table, ...]:
    """Per subject: each tensor where it came closest to its threshold, and all that did not pass."""
    return tuple(_verify_table(subject, declared=declared) for subject in judged)


def _verify_table(subject: SubjectJudgement, *, declared: str) -> Table:
    judged = [(case, row) for case in subject.cases for row in case.rows]
    rows = [
        (
            case.case,
            str(case.seed),
            row.tensor,
            _number(row.reference_relative_error),
            _number(row.target_error),
            _number(row.threshold),
            "yes" if row.gate_valid else "no",
            str(row.verdict),
        )
        for case, row in _telling(judged)
    ]
    problems = [
        f"{row.tensor} on {case.case}: {row.reason}"
        for case in subject.cases
        for row in case.rows
        if row.reason
    ]
    whole = [f"{case.case}: {reason}" for case in subject.cases for reason in case.reasons]
    notes = [note for case in subject.cases for note in case.notes]
    shown = tuple(dict.fromkeys([*subject.unanswered, *whole, *problems, *notes]))
    more = (
        (f"{len(shown) - MAX_ROWS} more remarks are in the document of --json.",)
        if len(shown) > MAX_ROWS
        else ()
    )
    return Table(
        title=f"{subject.label}: {subject.verdict} (ran {subject.ran or 'nothing'}; declared: {declared})",
        columns=(
            "case",
            "seed",
            "Tensor",
            "Ref/golden",
            "Target error",
            "Threshold",
            "Gate valid",
            "Verdict",
        ),
        rows=tuple(rows),
        notes=(f"{len(judged)} checks over all cases and seeds.", *shown[:MAX_ROWS], *more),
    )


def _telling(judged: Sequence[tuple[CaseJudgement, Row]]) -> list[tuple[CaseJudgement, Row]]:
    """What did not pass, in order, and per tensor the check that came closest to its threshold."""
    closest: dict[str, tuple[CaseJudgement, Row]] = {}
    for case, row in judged:
        if row.tensor not in closest or _closeness(row) > _closeness(closest[row.tensor][1]):
            closest[row.tensor] = (case, row)
    chosen = {id(row) for _, row in closest.values()}
    return [(case, row) for case, row in judged if id(row) in chosen or row.verdict is not Verdict.PASS]


def _closeness(row: Row) -> float:
    return (row.target_error or 0.0) / row.threshold if row.threshold else 0.0


def _matrix_table(rows: Sequence[MatrixRow], *, title: str) -> Table:
    unit = time_unit([row.wall for row in rows])
    return Table(
        title=title,
        columns=(
            *("case", "tree", "launch", "cache", f"wall {unit}", f"kernel {unit}", "kernels", "peak memory"),
            *("graphs", "cold compile s", "fate"),
        ),
        rows=tuple(
            (
                row.case,
                row.subject,
                row.launch,
                row.cache,
                time_cell(row.wall, unit=unit),
                time_cell(row.kernel, unit=unit),
                HOLE if row.num_kernels is None else f"{row.num_kernels:g}",
                HOLE if row.peak_memory_bytes is None else format_bytes(row.peak_memory_bytes),
                HOLE if row.num_graphs is None else str(row.num_graphs),
                HOLE if row.cold_compile_s is None else f"{row.cold_compile_s:.1f}",
                "ok" if row.fate == "ok" else hole_text(row.fate, row.reason),
            )
            for row in rows
        ),
    )


def _families_table(profile: Profile) -> Table:
    what = "Kernels" if profile.conditions.on_gpu else "Ops (CPU self time)"
    return Table(
        title=f"{what} by family",
        columns=("case", "tree", "family", "calls", "time us", "share"),
        rows=tuple(
            (
                row.case,
                row.subject,
                row.family,
                f"{row.num_calls:g}",
                _us(row.time_us),
                format_percent(row.share),
            )
            for row in profile.families
        ),
    )


def _providers_table(rows: Sequence[ProviderRow], *, title: str) -> Table:
    return Table(
        title=title,
        columns=(
            *("case", "provider", "direction", "launch", "cache", "time us", "bandwidth share"),
            *("peak memory", "bottleneck", "fate"),
        ),
        rows=tuple(
            (
                row.case,
                row.provider,
                row.direction,
                row.launch,
                row.cache,
                time_cell(row.time, unit="us"),
                HOLE if row.bandwidth_share is None else format_percent(row.bandwidth_share),
                HOLE if row.peak_memory_bytes is None else format_bytes(row.peak_memory_bytes),
                row.bottleneck or HOLE,
                "ok" if row.fate == "ok" else hole_text(row.fate, row.reason),
            )
            for row in rows
        ),
    )


def _us(time_us: float | None) -> str:
    return HOLE if time_us is None else format_us(time_us, unit="us", with_unit=False)


def _number(value: float | None) -> str:
    return HOLE if value is None else f"{value:.2e}"
