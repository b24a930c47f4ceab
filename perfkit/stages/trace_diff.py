"""trace diff: what changed between two traces, kernel by kernel."""

from __future__ import annotations

from pathlib import Path

from perfkit.stages.answer import StageReport, Table
from perfkit.trace.diff import DiffRow, TraceDiff, diff
from perfkit.trace.stream import stream_trace

MAX_ROWS = 40
"""Rows of the table for people; the document holds all."""
_COLUMNS = ("kernel", "paired by", "A ms", "B ms", "B - A ms", "spread ms", "A calls", "B calls", "verdict")


def diff_traces(a: Path, b: Path) -> StageReport:
    """The comparison of two traces, B against A.

    Raises:
        PerfkitError: a trace cannot be read.
    """
    found = diff(
        (batch.events for batch in stream_trace(a)),
        (batch.events for batch in stream_trace(b)),
        names=(str(a), str(b)),
    )
    warnings = []
    if min(found.a_steps, found.b_steps) < 2:
        warnings.append("Differences are not judged: a trace has fewer than two usable profiler steps.")
    return StageReport(
        headline=f"Device time per step, A to B: {_ms(found.total.a_ns)} ms to {_ms(found.total.b_ns)} ms, "
        f"{found.total.verdict}.",
        tables=(_table(found),),
        document={"diff": found},
        warnings=tuple(warnings),
    )


def _table(found: TraceDiff) -> Table:
    hidden = len(found.rows) - MAX_ROWS
    notes = [
        f"A: {found.a}, {found.a_steps} step(s). B: {found.b}, {found.b_steps} step(s).",
        "Spread: the larger range between steps of one trace. A difference within it is no change.",
    ]
    if hidden > 0:
        notes.append(f"{hidden} rows with smaller differences are in the JSON document only.")
    return Table(
        title="",
        columns=_COLUMNS,
        rows=tuple(_cells(row) for row in (found.total, *found.rows[:MAX_ROWS])),
        notes=tuple(notes),
    )


def _cells(row: DiffRow) -> tuple[str, ...]:
    times = (row.a_ns, row.b_ns, row.difference_ns, row.spread_ns)
    calls = (f"{row.a_calls:g}", f"{row.b_calls:g}")
    return (row.name[:80], row.match, *(_ms(time_ns) for time_ns in times), *calls, row.verdict)


def _ms(time_ns: float) -> str:
    return f"{time_ns / 1e6:.4f}"
