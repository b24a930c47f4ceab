"""trace merge: several ranks on one clock in one file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from perfkit.errors import UsageError
from perfkit.stages.answer import StageReport, Table
from perfkit.trace.collectives import CollectiveRow
from perfkit.trace.document import read_document
from perfkit.trace.merge import Merged, merge
from perfkit.trace.output import require_writable, write_json


def merge_traces(
    paths: Sequence[Path], *, out: Path, skew: bool = True, overwrite: bool = False
) -> StageReport:
    """Writes the merged trace to `out` (gzipped if it ends in `.gz`).

    Raises:
        UsageError: no trace is given, two are of one rank, a rank is unknown, or the output exists.
        PerfkitError: a trace cannot be read, the clocks have no common base, or the check failed.
    """
    if not paths:
        raise UsageError("Nothing to merge.", why="No trace was given.", do="Give one trace per rank.")
    require_writable(out, inputs=paths, overwrite=overwrite)
    merged = merge([read_document(path) for path in paths], skew=skew)
    write_json(out, header=merged.header, raws=merged.raws)
    return StageReport(
        headline=f"{len(merged.ranks)} ranks merged into {out}, ordered by {merged.order_source}.",
        tables=(_rank_table(merged), collective_table(merged.collectives)),
        document={
            "inputs": [str(path) for path in paths],
            "output": str(out),
            "rank_order": [row.rank for row in merged.ranks],
            "rank_order_source": merged.order_source,
            "ranks": merged.ranks,
            "skew_residual_ns": merged.offsets.residual_ns,
            "skew_from_collectives": merged.offsets.num_collectives,
            "ranks_without_shared_collective": list(merged.offsets.unreached),
            "collectives": merged.collectives,
        },
        files=(out,),
        warnings=tuple(merged.warnings),
    )


def _rank_table(merged: Merged) -> Table:
    return Table(
        title="Ranks, from top to bottom",
        columns=("rank", "events", "base shift us", "skew us", "trace"),
        rows=tuple(
            (str(r.rank), str(r.num_events), _us(r.base_shift_ns), _us(r.skew_ns), r.trace)
            for r in merged.ranks
        ),
        notes=(
            f"Skew from {merged.offsets.num_collectives} shared collectives; their ends agree within "
            f"{_us(merged.offsets.residual_ns)} us (median).",
        ),
    )


def collective_table(collectives: Sequence[CollectiveRow]) -> Table:
    """Waiting, transfer and the late rank of each shared collective."""
    return Table(
        title="Collectives that ranks share",
        columns=("kind", "number", "waiting us", "transfer us", "ends apart us", "late rank"),
        rows=tuple(
            (
                row.group,
                str(row.number),
                _us(row.waiting_ns),
                _us(row.transfer_ns),
                _us(row.end_spread_ns),
                str(row.late_rank),
            )
            for row in collectives
        ),
        notes=("Waiting: last start minus first. Transfer: shortest duration over the ranks.",),
    )


def _us(time_ns: int) -> str:
    return f"{time_ns / 1000:.3f}"
