"""Reads ideal.csv and candidates.csv back, for reports made where the ledger and the traces are not."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping

from perfkit.report.model import Candidate, Closure, Piece

UNATTRIBUTED = "unattributed"
"""Kind of the row that closes a case in ideal.csv: kernel time that no op could be named for."""


def unattributed_piece(closure: Closure) -> Piece:
    """The row that makes the measured times of a case add up to its step."""
    return Piece(
        case=closure.case,
        name=UNATTRIBUTED,
        phase="",
        kind=UNATTRIBUTED,
        measured_us=closure.unattributed_us,
        floor_us=None,
        unfused_floor_us=None,
        num_ops=0,
    )


def read_ideal_csv(text: str) -> tuple[tuple[Piece, ...], tuple[Closure, ...]]:
    """(pieces, closures) as `ideal_csv` wrote them, up to the decimals of the file.

    Raises:
        KeyError, ValueError: the text is not an ideal.csv of this version.
    """
    rows = [_piece(row) for row in csv.DictReader(io.StringIO(text))]
    pieces = tuple(piece for piece in rows if piece.kind != UNATTRIBUTED)
    closures = []
    for case in dict.fromkeys(piece.case for piece in rows):
        attributed_us = sum(piece.measured_us for piece in pieces if piece.case == case)
        rest_us = sum(p.measured_us for p in rows if p.case == case and p.kind == UNATTRIBUTED)
        closures.append(Closure(case=case, total_us=attributed_us + rest_us, attributed_us=attributed_us))
    return pieces, tuple(closures)


def read_candidates_csv(text: str) -> tuple[Candidate, ...]:
    """The ranking as `candidates_csv` wrote it.

    Raises:
        KeyError, ValueError: the text is not a candidates.csv of this version.
    """
    return tuple(
        Candidate(
            rank=int(row["rank"]),
            piece=_piece(row),
            gain_us=float(row["gain_us"]),
            share=float(row["share"]),
            worthwhile=row["worthwhile"] == "yes",
            advice=row["advice"],
        )
        for row in csv.DictReader(io.StringIO(text))
    )


def _piece(row: Mapping[str, str]) -> Piece:
    return Piece(
        case=row["case"],
        name=row["island"],
        phase=row["phase"],
        kind=row["kind"],
        measured_us=float(row["measured_us"]),
        floor_us=_number(row["floor_us"]),
        unfused_floor_us=_number(row["unfused_floor_us"]),
        num_ops=int(row["num_ops"]),
        ops=row["ops"],
        modules=_parts(row["modules"]),
        sources=_parts(row["source_lines"]),
        bound=row["bound"],
        num_bytes=int(row["num_bytes"]) if row["num_bytes"] else None,
        num_flops=int(row["num_flops"]) if row["num_flops"] else None,
        flags=_parts(row["flags"]),
    )


def _parts(text: str) -> tuple[str, ...]:
    return tuple(text.split("; ")) if text else ()


def _number(text: str) -> float | None:
    return float(text) if text else None
