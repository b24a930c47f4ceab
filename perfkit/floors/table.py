"""The rows of ideal.csv: every piece with its measured time, its floors, and what is odd about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from perfkit.floors.attribution import Attribution
from perfkit.floors.floors import Floor, Unit, floor_of, unfused_floor_us
from perfkit.floors.islands import IslandKind
from perfkit.wire.ledger import Phase
from perfkit.wire.payloads import Peaks

NOISE = 0.02
"""Measured times of 2% below a floor are noise; beyond that something is wrong (DESIGN, section 6)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One piece. Times are microseconds per step."""

    id: str
    kind: IslandKind
    phase: Phase
    num_ops: int
    ops: tuple[str, ...]
    """Short names in order: `mul`, `add`, `_to_copy`."""
    shapes: tuple[str, ...]
    modules: tuple[str, ...]
    source_lines: tuple[str, ...]
    """Those of most ops first."""
    measured_us: float
    floor_us: float | None
    unfused_floor_us: float | None
    bound: str
    """Which ceiling sets the floor: `launch`, `bytes`, `flops` or `unknown`."""
    num_read_bytes: int
    num_written_bytes: int
    num_flops: int
    share: float
    """Of the step's kernel time."""
    flags: tuple[str, ...] = ()
    """`fits_cache`, `below_floor`, and those of the floor."""
    diagnosis: str = ""
    """Below the floor: the likely reason, in a sentence."""

    @property
    def ratio(self) -> float | None:
        """measured / floor; None without a floor."""
        return self.measured_us / self.floor_us if self.floor_us else None

    @property
    def gain_us(self) -> float | None:
        """measured - floor: what the piece could give back at best; None without a floor."""
        return None if self.floor_us is None else self.measured_us - self.floor_us

    @property
    def num_bytes(self) -> int:
        """External bytes, read and written."""
        return self.num_read_bytes + self.num_written_bytes


def ideal_rows(units: Sequence[Unit], attribution: Attribution, peaks: Peaks) -> tuple[Row, ...]:
    """One row per piece, in execution order."""
    return tuple(_row(unit, attribution, peaks) for unit in units)


def violations(rows: Iterable[Row]) -> tuple[Row, ...]:
    """Rows measured below their floor: errors to explain, with a diagnosis each."""
    return tuple(row for row in rows if "below_floor" in row.flags)


def _row(unit: Unit, attribution: Attribution, peaks: Peaks) -> Row:
    floor, measured_us = floor_of(unit, peaks), attribution.measured_us[unit.id]
    fits = unit.traffic.is_known and 0 < unit.traffic.num_bytes < peaks.cache_bytes
    below = floor.time_us is not None and measured_us < floor.time_us * (1 - NOISE)
    flags = (*floor.flags, *(("fits_cache",) if fits else ()), *(("below_floor",) if below else ()))
    return Row(
        id=unit.id,
        kind=unit.island.kind,
        phase=unit.island.phase,
        num_ops=len(unit.ops),
        ops=tuple(short_name(op.name) for op in unit.ops),
        shapes=tuple(op.shapes for op in unit.ops),
        modules=_distinct(op.module for op in unit.ops),
        source_lines=_most_frequent(op.source for op in unit.ops),
        measured_us=measured_us,
        floor_us=floor.time_us,
        unfused_floor_us=unfused_floor_us(unit, peaks),
        bound=floor.bound,
        num_read_bytes=unit.traffic.num_read_bytes,
        num_written_bytes=unit.traffic.num_written_bytes,
        num_flops=sum(op.num_flops for op in unit.ops),
        share=measured_us / attribution.total_us if attribution.total_us else 0.0,
        flags=flags,
        diagnosis=_diagnosis(unit, floor, measured_us=measured_us, peaks=peaks) if below else "",
    )


def short_name(name: str) -> str:
    """`add` of `aten.add.Tensor`; other libraries keep their name: `triton.rms_norm_kernel`."""
    parts = name.split(".")
    return parts[1] if parts[0] == "aten" and len(parts) > 1 else name


def _distinct(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for text in texts if text))


def _most_frequent(texts: Iterable[str]) -> tuple[str, ...]:
    """Distinct texts, those of most ops first: the line that a piece is about, rather than its first op's."""
    return tuple(text for text, _ in Counter(text for text in texts if text).most_common())


def _diagnosis(unit: Unit, floor: Floor, *, measured_us: float, peaks: Peaks) -> str:
    """The likeliest reason for a time below the floor."""
    if measured_us == 0:
        return "No kernel ran under its labels: the profile missed it, or the op did no work."
    if floor.bound == "launch":
        return "Shorter than the measured launch floor: measure the peaks again on a quiet machine."
    if floor.bound == "flops":
        return "Faster than the measured rate of its dtype: another clock, or a kernel that does less work."
    return explain_fast_bytes(
        unit.traffic.num_bytes, floor.time_us or 0.0, measured_us=measured_us, peaks=peaks
    )


def explain_fast_bytes(num_bytes: int, floor_us: float, *, measured_us: float, peaks: Peaks) -> str:
    """The likeliest reason why so many bytes moved in less than their floor."""
    if num_bytes < peaks.cache_bytes:
        return "Its bytes fit the cache, so they need not come from memory."
    if peaks.cache_bytes and measured_us >= floor_us * (1 - peaks.cache_bytes / num_bytes):
        part = 100 * peaks.cache_bytes / num_bytes
        return f"The cache holds up to {part:.0f}% of its bytes, which explains the difference."
    return "Its bytes are over-counted, or the bandwidth was measured too low."
