"""The floor of a piece: the least time that the measured ceilings of this device allow."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from perfkit.floors.dependencies import Dependencies
from perfkit.floors.islands import Island, find_islands
from perfkit.floors.rates import bandwidth_of_mix, flops_rate, launch_floor_us
from perfkit.floors.traffic import Traffic, external_traffic
from perfkit.wire.ledger import Ledger, Op, Phase
from perfkit.wire.payloads import Peaks

Bound = Literal["launch", "bytes", "flops", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """An island or a cut op with all that its floor follows from."""

    island: Island
    ops: tuple[Op, ...]
    traffic: Traffic
    op_traffic: tuple[Traffic, ...]
    """Of each op alone: what unfused kernels must move."""

    @property
    def id(self) -> str:
        """`f03`"""
        return self.island.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """A lower bound of a time, and which ceiling sets it."""

    time_us: float | None
    """None when what is read and written is unknown: no floor is stated, and never zero."""
    bound: Bound
    flags: tuple[str, ...] = ()
    """`unknown_traffic`, `no_rate:<dtype>` or `no_flops` (the compute time is left out)."""


def find_units(ledger: Ledger) -> tuple[Unit, ...]:
    """All islands and cut ops of a ledger, in order of their first ops."""
    depends = Dependencies(ledger)
    alone = [external_traffic(ledger, depends, (position,)) for position in range(len(ledger.ops))]
    return tuple(
        Unit(
            island=island,
            ops=tuple(ledger.ops[position] for position in island.ops),
            traffic=external_traffic(ledger, depends, island.ops),
            op_traffic=tuple(alone[position] for position in island.ops),
        )
        for island in find_islands(ledger, depends)
    )


def floor_of(unit: Unit, peaks: Peaks) -> Floor:
    """The larger of launch floor, external bytes over the bandwidth of their mix, and FLOPs over the rate."""
    return _floor(unit.ops, unit.traffic, peaks)


def floor_us(unit: Unit, peaks: Peaks) -> float | None:
    """Microseconds of `floor_of`."""
    return floor_of(unit, peaks).time_us


def unfused_floor_us(unit: Unit, peaks: Peaks) -> float | None:
    """The sum of the floors of each op alone; None when one of them has none."""
    times = [
        _floor((op,), traffic, peaks).time_us for op, traffic in zip(unit.ops, unit.op_traffic, strict=True)
    ]
    known = [time for time in times if time is not None]
    return sum(known) if len(known) == len(times) else None


def whole_floor(ledger: Ledger, peaks: Peaks, *, phases: Iterable[Phase]) -> tuple[Floor, Traffic]:
    """The floor of all ops of some phases as one kernel, for a target that is to become one."""
    chosen = [position for position, op in enumerate(ledger.ops) if op.phase in set(phases)]
    traffic = external_traffic(ledger, Dependencies(ledger), chosen)
    return _floor(tuple(ledger.ops[position] for position in chosen), traffic, peaks), traffic


def _floor(ops: tuple[Op, ...], traffic: Traffic, peaks: Peaks) -> Floor:
    if not traffic.is_known:
        return Floor(time_us=None, bound="unknown", flags=("unknown_traffic",))
    bandwidth = bandwidth_of_mix(
        peaks, num_read_bytes=traffic.num_read_bytes, num_written_bytes=traffic.num_written_bytes
    )
    compute_us, flags = _compute_us(ops, peaks)
    times: dict[Bound, float] = {
        "launch": launch_floor_us(peaks),
        "bytes": 1e6 * traffic.num_bytes / bandwidth,
        "flops": compute_us,
    }
    bound = max(times, key=lambda name: times[name])
    return Floor(time_us=times[bound], bound=bound, flags=flags)


def _compute_us(ops: tuple[Op, ...], peaks: Peaks) -> tuple[float, tuple[str, ...]]:
    """Time of all FLOPs, dtype after dtype: they share one kind of unit, so their times add up."""
    flops: defaultdict[str, int] = defaultdict(int)
    flags: dict[str, None] = {}
    for op in ops:
        flops[op.flop_dtype] += op.num_flops
        if op.kind in ("gemm", "attention") and not op.num_flops:
            flags["no_flops"] = None
    time_us = 0.0
    for dtype, count in flops.items():
        rate = flops_rate(peaks, dtype) if count else None
        if rate is not None:
            time_us += 1e6 * count / rate
        elif count:
            flags[f"no_rate:{dtype}"] = None
    return time_us, tuple(flags)
