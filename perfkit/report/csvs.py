"""The CSV files of an effort: stable column and row order, fixed decimals, holes empty."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence

from perfkit.report.model import Candidate, ComparisonRow, Piece

Cell = str | int | float | bool | None

_DECIMALS = {"us": 3, "s": 3, "ratio": 4, "share": 5, "low": 4, "high": 4, "p": 5}


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """CSV with Unix line ends. Decimals follow the unit that ends the column's name: `_us` has three."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_cell(column, value) for column, value in zip(columns, row, strict=True)])
    return buffer.getvalue()


def ideal_csv(pieces: Sequence[Piece]) -> str:
    """ideal.csv: every island and cut op of each case, in the order given (execution order)."""
    totals: dict[str, float] = {}
    for piece in pieces:
        totals[piece.case] = totals.get(piece.case, 0.0) + piece.measured_us
    columns = (*_PIECE_COLUMNS, "ratio", "share")
    return csv_text(columns, [(*_piece(p), _over_floor(p), _share(p, totals)) for p in pieces])


def candidates_csv(candidates: Sequence[Candidate]) -> str:
    """candidates.csv: the ranking, with those not worth it marked."""
    columns = ("rank", *_PIECE_COLUMNS, "gain_us", "share", "worthwhile", "advice")
    rows = [(c.rank, *_piece(c.piece), c.gain_us, c.share, c.worthwhile, c.advice) for c in candidates]
    return csv_text(columns, rows)


def comparison_csv(rows: Sequence[ComparisonRow]) -> str:
    """One line per subject and state, with the number of every process: benchmarks/*.csv."""
    columns = (
        *("case", "subject", "direction", "launch", "cache", "kind", "num_processes"),
        *("median_us", "low_us", "high_us", "ratio", "ratio_low", "ratio_high", "sign_flip_p"),
        *("verdict", "fates", "process_us"),
    )
    return csv_text(columns, [_comparison(row) for row in rows])


_PIECE_COLUMNS = (
    *("case", "island", "kind", "phase", "num_ops", "ops", "modules", "source_lines"),
    *("measured_us", "floor_us", "unfused_floor_us", "bound", "num_bytes", "num_flops", "flags"),
)


def _piece(p: Piece) -> tuple[Cell, ...]:
    where = (p.case, p.name, p.kind, p.phase, p.num_ops, p.ops, "; ".join(p.modules), "; ".join(p.sources))
    floor = (p.measured_us, p.floor_us, p.unfused_floor_us)
    return (*where, *floor, p.bound, p.num_bytes, p.num_flops, "; ".join(p.flags))


def _over_floor(piece: Piece) -> float | None:
    return piece.measured_us / piece.floor_us if piece.floor_us else None


def _share(piece: Piece, totals: Mapping[str, float]) -> float | None:
    total = totals[piece.case]
    return piece.measured_us / total if total else None


def _comparison(row: ComparisonRow) -> tuple[Cell, ...]:
    time, ratio = row.time, row.ratio
    states = (row.case, row.subject, row.direction, row.launch, row.cache, row.kind)
    times = (0, None, None, None) if time is None else (time.num_processes, time.median, time.low, time.high)
    ratios = (None,) * 4 if ratio is None else (ratio.ratio, ratio.low, ratio.high, ratio.sign_flip_p)
    fates = "; ".join(f"{fate}={count}" for fate, count in sorted(row.fates.items()))
    values = "" if time is None else " ".join(f"{value:.3f}" for value in time.values)
    return (*states, *times, *ratios, row.verdict, fates, values)


def _cell(column: str, value: Cell) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.{_DECIMALS.get(column.rpartition('_')[2], 4)}f}"
    return " ".join(str(value).split())
