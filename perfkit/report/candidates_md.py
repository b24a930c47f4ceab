"""The ranking of what to try first, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from perfkit.report.markdown import HOLE, markdown_table, shortened
from perfkit.report.model import Candidate
from perfkit.report.words import plural
from perfkit.stats import format_percent, format_us

NUM_SHOWN = 25
_LONGEST_OPS = 60


def candidate_table(candidates: Sequence[Candidate]) -> str:
    """The candidates worth trying, at most NUM_SHOWN per case; the rest is in candidates.csv."""
    columns = (
        *("case", "rank", "where", "island", "phase", "ops", "measured", "floor", "unfused floor"),
        *("gain", "of the step", "advice"),
    )
    return markdown_table(columns, [_cells(candidate) for candidate in _shown(candidates)])


def candidate_notes(candidates: Sequence[Candidate]) -> list[str]:
    """What the table leaves out, and what its columns mean."""
    if not candidates:
        return []
    notes = [
        "gain = measured - floor: what the piece could give back at best. The floor reads each external "
        "input once and writes each escaping output once, at this device's measured rates.",
    ]
    small = [c for c in candidates if not c.worthwhile]
    if small:
        notes.append(f"{plural(len(small), 'more candidate')} below 1% of the step: not worth it.")
    hidden = sum(c.worthwhile for c in candidates) - len(_shown(candidates))
    if hidden:
        notes.append(f"{plural(hidden, 'further candidate')} in candidates.csv.")
    return notes


def _shown(candidates: Sequence[Candidate]) -> list[Candidate]:
    shown: list[Candidate] = []
    for case in dict.fromkeys(c.piece.case for c in candidates):
        worthwhile = [c for c in candidates if c.worthwhile and c.piece.case == case]
        shown += sorted(worthwhile, key=lambda c: c.rank)[:NUM_SHOWN]
    return shown


def _cells(candidate: Candidate) -> tuple[str, ...]:
    piece = candidate.piece
    return (
        piece.case,
        str(candidate.rank),
        piece.where,
        piece.name,
        piece.phase,
        f"{piece.num_ops}: {shortened(piece.ops, most=_LONGEST_OPS)}" if piece.ops else str(piece.num_ops),
        format_us(piece.measured_us),
        _time(piece.floor_us),
        _time(piece.unfused_floor_us),
        format_us(candidate.gain_us),
        format_percent(candidate.share),
        candidate.advice,
    )


def _time(value_us: float | None) -> str:
    return HOLE if value_us is None else format_us(value_us)
