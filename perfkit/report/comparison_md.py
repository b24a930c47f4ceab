"""comparison.md: all subjects side by side, ranked only where they are verified."""

from __future__ import annotations

from collections.abc import Sequence

from perfkit.report.markdown import HOLE, markdown_table
from perfkit.report.model import Comparison, ComparisonRow
from perfkit.report.ranking import Ranked, headline_rows, may_rank, ranked_rows
from perfkit.report.render import render
from perfkit.report.words import (
    QUICK,
    change_text,
    conclusion,
    conditions_line,
    fates_text,
    interval_cell,
    plural,
    processes_text,
    ratio_cell,
    ratio_interval_cell,
    short_direction,
    time_cell,
    time_unit,
    workload,
)


def comparison_md(comparison: Comparison) -> str:
    """The document: the answer per case, a table per case, and why rows are not ranked."""
    rows = comparison.rows
    cases = list(dict.fromkeys(row.case for row in rows))
    return render(
        "comparison.md.j2",
        target=comparison.conditions.target,
        conditions=conditions_line(comparison.conditions),
        quick=QUICK if comparison.conditions.quick else "",
        baseline=comparison.baseline,
        answers=answer_lines(comparison),
        sections=[(case, comparison_table([r for r in rows if r.case == case])) for case in cases],
        unranked=_unranked_lines(rows),
        contaminated=_contaminated_words(rows),
        notes=comparison.notes,
    )


def comparison_table(rows: Sequence[ComparisonRow]) -> str:
    """All rows of one case, grouped by what may be compared, fastest verified row first."""
    unit = time_unit([row.time for row in rows])
    columns = (
        *("rank", "subject", "direction", "launch", "cache", "time", "processes", f"median {unit}"),
        *(f"95% interval {unit}", "ratio", "95% interval", "conclusion", "verify", "slots"),
    )
    return markdown_table(columns, [_cells(ranked, unit=unit) for ranked in ranked_rows(rows)])


def answer_lines(comparison: Comparison) -> list[str]:
    """Per case: the fastest verified subject against the baseline, with all labels and both numbers."""
    lines = []
    headline = headline_rows(comparison.rows)
    for case in dict.fromkeys(row.case for row in headline):
        of_case = [row for row in headline if row.case == case]
        base = next((row for row in of_case if row.subject == comparison.baseline), None)
        if base is None or base.time is None:
            lines.append(f"{case}: the baseline {comparison.baseline} has no number, so nothing is compared.")
        else:
            lines.append(_answer(base, of_case))
    return lines


def _answer(base: ComparisonRow, rows: Sequence[ComparisonRow]) -> str:
    assert base.time is not None
    where = f"{workload(base)}, {base.kind} time"
    others = [row for row in rows if row is not base and may_rank(row) and row.time is not None]
    if not others:
        return f"{where}: only {base.subject} is verified; nothing to rank."
    best = min(others, key=lambda row: row.time.median if row.time else 0.0)
    assert best.time is not None
    parts = [f"{where}: {best.subject} against {base.subject} {change_text(base.time, best.time)}"]
    parts.append(f"ratio {ratio_cell(best.ratio)}")
    if best.ratio is not None and best.ratio.low is not None:
        parts.append(f"95% interval {ratio_interval_cell(best.ratio)}")
    label = processes_text(base.time, best.time) or f"{best.time.num_processes} processes"
    return f"{', '.join(parts)}, {label.strip('()')}: {conclusion(best)}."


def _contaminated_words(rows: Sequence[ComparisonRow]) -> str:
    """`2 slots were`; "" for none. One slot feeds several rows, so only the headline rows count."""
    count = sum(row.fates.get("contaminated", 0) for row in headline_rows(rows))
    return f"{plural(count, 'slot was', 'slots were')}" if count else ""


def _cells(ranked: Ranked, *, unit: str) -> tuple[str, ...]:
    row = ranked.row
    return (
        HOLE if ranked.rank is None else str(ranked.rank),
        row.subject,
        short_direction(row.direction),
        row.launch,
        row.cache,
        row.kind,
        str(row.time.num_processes) if row.time else HOLE,
        time_cell(row.time, unit=unit),
        interval_cell(row.time, unit=unit),
        ratio_cell(row.ratio),
        ratio_interval_cell(row.ratio),
        conclusion(row) if row.time else HOLE,
        row.verdict,
        fates_text(row.fates),
    )


def _unranked_lines(rows: Sequence[ComparisonRow]) -> list[str]:
    """Each subject that is listed without a rank, with the reason; once per case and reason."""
    lines: dict[str, None] = {}
    for row in rows:
        if may_rank(row):
            continue
        if row.time is None:
            why = f"no number ({fates_text(row.fates)})"
            lines[f"{row.case} {row.subject} {row.launch} {row.cache} {row.direction}: {why}"] = None
        else:
            why = f"{row.verdict}: {row.verdict_reason}" if row.verdict_reason else row.verdict
            lines[f"{row.case} {row.subject}: {why}"] = None
    return list(lines)
