"""The kernel table: what ran in one step, how often and for how long."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from perfkit.trace.events import RANGE_CATS, Event
from perfkit.trace.families import Family, family_of
from perfkit.trace.intervals import arrays, covered_ns
from perfkit.trace.nesting import innermost
from perfkit.trace.optimes import self_times
from perfkit.trace.reader import Trace
from perfkit.trace.steps import DeviceSlice, count_steps, device_slices, ops_in_steps

COMPILED_MARKS = ("Torch-Compiled Region", "## Call CompiledFxGraph", "CompiledFunction")
"""How the CPU ranges around compiled code begin; the last also covers CompiledFunctionBackward."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRow:
    """One kernel name (CPU: one op name, without the ops it calls), averaged over the steps."""

    name: str
    family: Family
    num_calls: float
    time_us: float
    time_per_call_us: float
    share: float
    """Of the summed time of all rows, 0 to 1."""
    inside_compiled_region: bool
    """Launched (CPU: called) inside a compiled region. A name that ran in and out of one has two rows."""


@dataclass(frozen=True, slots=True)
class _Timed:
    event: Event
    caller: Event
    """What to look up the compiled region by: the launch call, or the op itself."""
    time_ns: int


def kernel_table(trace: Trace, *, num_steps: int | None = None) -> tuple[KernelRow, ...]:
    """Rows by descending time, over the profiler steps (the whole trace when it has none).

    With device slices the rows are kernels, copies and fills; without, they are CPU ops by self time.

    Raises:
        PerfkitError: the number of steps is unknown or differs from `num_steps`.
    """
    steps = count_steps(trace, num_steps=num_steps)
    timed = _timed(trace)
    compiled = _inside_compiled(trace, timed)
    groups: dict[tuple[str, str, bool], list[int]] = defaultdict(list)
    for position, entry in enumerate(timed):
        groups[entry.event.name, entry.event.cat, position in compiled].append(entry.time_ns)
    total_ns = sum(entry.time_ns for entry in timed)
    rows = [_row(key, times, total_ns=total_ns, steps=steps) for key, times in groups.items()]
    return tuple(sorted(rows, key=lambda row: (-row.time_us, row.name)))


def kernel_sum_us(trace: Trace, *, num_steps: int | None = None) -> float:
    """Summed duration of the measured slices per step (CPU-only traces: of the ops).

    Raises:
        PerfkitError: the number of steps is unknown or differs from `num_steps`.
    """
    steps = count_steps(trace, num_steps=num_steps)
    return sum(entry.time_ns for entry in _timed(trace)) / steps / 1000


def kernel_union_us(trace: Trace, *, num_steps: int | None = None) -> float:
    """Time per step during which at least one measured slice (CPU-only traces: one op) ran.

    Raises:
        PerfkitError: the number of steps is unknown or differs from `num_steps`.
    """
    steps = count_steps(trace, num_steps=num_steps)
    events = [s.event for s in device_slices(trace)] if has_device(trace) else ops_in_steps(trace)
    return covered_ns(*arrays((e.start_ns, e.end_ns) for e in events)) / steps / 1000


def has_device(trace: Trace) -> bool:
    """Whether any device slice was recorded; otherwise the numbers are those of CPU ops."""
    return any(event.is_measured for event in trace.events)


def _timed(trace: Trace) -> list[_Timed]:
    if has_device(trace):
        return [_Timed(s.event, _caller(s), s.event.dur_ns) for s in device_slices(trace)]
    return [_Timed(op, op, time_ns) for op, time_ns in self_times(ops_in_steps(trace))]


def _caller(piece: DeviceSlice) -> Event:
    return piece.event if piece.launch is None else piece.launch


def _inside_compiled(trace: Trace, timed: list[_Timed]) -> set[int]:
    regions = [
        e for e in trace.events if e.cat in RANGE_CATS and e.is_slice and e.name.startswith(COMPILED_MARKS)
    ]
    return set(innermost(regions, (entry.caller for entry in timed), lambda region: True))


def _row(key: tuple[str, str, bool], times: list[int], *, total_ns: int, steps: int) -> KernelRow:
    name, cat, inside = key
    time_ns = sum(times)
    return KernelRow(
        name=name,
        family=family_of(name, cat=cat),
        num_calls=len(times) / steps,
        time_us=time_ns / steps / 1000,
        time_per_call_us=time_ns / len(times) / 1000,
        share=time_ns / total_ns if total_ns else 0.0,
        inside_compiled_region=inside,
    )
