"""What to try first: pieces by the time that they could give back, equal pieces of repeated blocks as one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from perfkit.floors.table import Row

MIN_SHARE = 0.01
"""Below 1% of the step a gain is not worth the code."""

Among = Literal["islands", "cut_ops"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Equal pieces (same ops, shapes and source lines), as one thing to try."""

    rank: int
    rows: tuple[Row, ...]
    """The pieces in execution order; all equal but for their module and time."""
    measured_us: float
    floor_us: float
    unfused_floor_us: float | None
    gain_us: float
    """Sum of (measured - floor): the key of the ranking. Negative where a floor is violated."""
    share: float
    """Of `gain_us` in the step's kernel time."""
    worthwhile: bool

    @property
    def count(self) -> int:
        """How many equal pieces the step has."""
        return len(self.rows)

    @property
    def source_lines(self) -> tuple[str, ...]:
        """Where to look, the lines of most ops first."""
        return self.rows[0].source_lines

    @property
    def flags(self) -> tuple[str, ...]:
        """All flags that any of the pieces has."""
        return tuple(dict.fromkeys(flag for row in self.rows for flag in row.flags))


def rank(rows: Sequence[Row], *, total_us: float, among: Among = "islands") -> tuple[Candidate, ...]:
    """Candidates by gain, largest first. Islands (to be fused) and cut ops (to be replaced) rank apart.

    Pieces without a floor have no gain and are left out: `without_floor` lists them.
    """
    groups: defaultdict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in rows:
        if row.floor_us is not None and (row.kind == "island") == (among == "islands"):
            groups[row.phase, row.kind, row.ops, row.shapes, row.source_lines].append(row)
    ordered = sorted(groups.values(), key=lambda group: -_gain_us(group))
    return tuple(_candidate(place, group, total_us) for place, group in enumerate(ordered, start=1))


def without_floor(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Pieces whose floor cannot be stated, most costly first."""
    return tuple(sorted((row for row in rows if row.floor_us is None), key=lambda row: -row.measured_us))


def _candidate(place: int, group: list[Row], total_us: float) -> Candidate:
    gain_us = _gain_us(group)
    unfused = [row.unfused_floor_us for row in group if row.unfused_floor_us is not None]
    return Candidate(
        rank=place,
        rows=tuple(group),
        measured_us=sum(row.measured_us for row in group),
        floor_us=sum(row.floor_us for row in group if row.floor_us is not None),
        unfused_floor_us=sum(unfused) if len(unfused) == len(group) else None,
        gain_us=gain_us,
        share=gain_us / total_us if total_us else 0.0,
        worthwhile=bool(total_us) and gain_us / total_us >= MIN_SHARE,
    )


def _gain_us(group: list[Row]) -> float:
    return sum(row.gain_us for row in group if row.gain_us is not None)
