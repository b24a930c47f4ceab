"""What a trace says about its device: busy, idle, communication, families, groups, steps, graph launches.

Every length is an exact integer of nanoseconds, from unions of intervals, so busy + idle = window and
compute + communication - overlap = the union of both, without a remainder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from perfkit.trace.columns import ColumnBuilder, Columns
from perfkit.trace.events import KERNEL_CATS, Event, Place
from perfkit.trace.families import Family, family_of
from perfkit.trace.groups import COMMUNICATION_GROUPS, DEFAULT_LANES, LaneSettings
from perfkit.trace.intervals import covered_by_both_ns, covered_ns

Mask = npt.NDArray[np.bool_]


class PartRow(msgspec.Struct, frozen=True, kw_only=True):
    """One family, or one lane group."""

    name: str
    num_slices: int
    summed_ns: int
    covered_ns: int
    """Union: slices that run at the same time count once."""


class DeviceSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One device over the window from its first measured slice to the end of its last."""

    device: Place
    num_slices: int
    num_streams: int
    window_start_ns: int
    window_ns: int
    busy_ns: int
    """Any kernel, copy or fill runs. A waiting collective counts as busy: see `compute_ns`."""
    idle_ns: int
    compute_ns: int
    """Kernels that are no communication."""
    communication_ns: int
    overlap_ns: int
    """Communication while a compute kernel runs."""
    exposed_communication_ns: int
    """Communication while no compute kernel runs."""
    families: tuple[PartRow, ...]
    groups: tuple[PartRow, ...]


class StepRow(msgspec.Struct, frozen=True, kw_only=True):
    """One profiler step: its CPU window, and the slices launched in it, whenever they ran."""

    name: str
    cpu_ns: int
    num_slices: int
    summed_ns: int
    busy_ns: int
    span_ns: int
    """From the start of the first of its slices to the end of the last."""


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """Step-to-step spread of one column of the step rows."""

    median_ns: float
    min_ns: int
    max_ns: int
    range_percent: float
    """(max - min) / median."""


class GraphLaunchRow(msgspec.Struct, frozen=True, kw_only=True):
    """Graph launches that ran the same number of device slices."""

    call: str
    slices_per_launch: int
    num_launches: int


class Unattributed(msgspec.Struct, frozen=True, kw_only=True):
    """What the trace does not say. Never spread over other rows."""

    num_without_launch: int
    without_launch_ns: int
    num_unclassified: int
    unclassified_ns: int
    num_outside_steps: int
    """Launched in no profiler step; 0 when the trace has no steps."""
    outside_steps_ns: int


class TraceSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A whole trace. Times of different devices are never added."""

    trace: str
    num_measured_slices: int
    devices: tuple[DeviceSummary, ...]
    steps: tuple[StepRow, ...]
    step_spread: dict[str, Spread]
    """By column: `cpu_ns`, `busy_ns`, `span_ns`; empty with fewer than two steps."""
    graph_launches: tuple[GraphLaunchRow, ...]
    unattributed: Unattributed


def summarise(
    batches: Iterable[Iterable[Event]], *, trace: str, settings: LaneSettings = DEFAULT_LANES
) -> TraceSummary:
    """The summary of a trace that arrives in batches; memory grows with its device slices only."""
    builder = ColumnBuilder()
    for events in batches:
        builder.add(events)
    columns = builder.build()
    families = np.array([family_of(k.name, cat=k.cat).value for k in columns.kinds], dtype=object)
    groups = np.array(
        [settings.group_of(k.name, cat=k.cat, collective=k.collective) for k in columns.kinds], dtype=object
    )
    steps = _steps(columns)
    return TraceSummary(
        trace=trace,
        num_measured_slices=columns.num_slices,
        devices=tuple(_device(columns, index, families, groups) for index in range(len(columns.devices))),
        steps=steps,
        step_spread=_spreads(steps),
        graph_launches=_graph_launches(columns),
        unattributed=_unattributed(columns, families),
    )


def _device(
    columns: Columns, index: int, families: npt.NDArray[Any], groups: npt.NDArray[Any]
) -> DeviceSummary:
    mine = columns.device == index
    start_ns, end_ns = columns.start_ns[mine], columns.end_ns[mine]
    kind_is_communication = np.isin(groups, list(COMMUNICATION_GROUPS))
    kind_is_kernel = np.array([k.cat in KERNEL_CATS for k in columns.kinds], dtype=bool)
    communication = mine & kind_is_communication[columns.kind]
    compute = mine & (kind_is_kernel & ~kind_is_communication)[columns.kind]
    window_ns, busy_ns = int(end_ns.max() - start_ns.min()), covered_ns(start_ns, end_ns)
    communication_ns = _covered(columns, communication)
    overlap_ns = covered_by_both_ns(
        columns.start_ns[compute],
        columns.end_ns[compute],
        columns.start_ns[communication],
        columns.end_ns[communication],
    )
    return DeviceSummary(
        device=columns.devices[index],
        num_slices=int(mine.sum()),
        num_streams=len(np.unique(columns.stream[mine])),
        window_start_ns=int(start_ns.min()),
        window_ns=window_ns,
        busy_ns=busy_ns,
        idle_ns=window_ns - busy_ns,
        compute_ns=_covered(columns, compute),
        communication_ns=communication_ns,
        overlap_ns=overlap_ns,
        exposed_communication_ns=communication_ns - overlap_ns,
        families=_parts(columns, mine, families),
        groups=_parts(columns, mine, groups),
    )


def _covered(columns: Columns, mask: Mask) -> int:
    return covered_ns(columns.start_ns[mask], columns.end_ns[mask])


def _summed(columns: Columns, mask: Mask) -> int:
    return int((columns.end_ns[mask] - columns.start_ns[mask]).sum())


def _parts(columns: Columns, mine: Mask, name_of_kind: npt.NDArray[Any]) -> tuple[PartRow, ...]:
    names = name_of_kind[columns.kind]
    rows = []
    for name in sorted(set(names[mine].tolist())):
        mask = mine & (names == name)
        rows.append(
            PartRow(
                name=name,
                num_slices=int(mask.sum()),
                summed_ns=_summed(columns, mask),
                covered_ns=_covered(columns, mask),
            )
        )
    return tuple(sorted(rows, key=lambda row: (-row.summed_ns, row.name)))


def _steps(columns: Columns) -> tuple[StepRow, ...]:
    rows = []
    for name, start_ns, end_ns in columns.steps:
        mask = (columns.launched_ns >= start_ns) & (columns.launched_ns < end_ns)
        if not mask.any():  # the profiler opens an empty step after the last one
            continue
        rows.append(
            StepRow(
                name=name,
                cpu_ns=end_ns - start_ns,
                num_slices=int(mask.sum()),
                summed_ns=_summed(columns, mask),
                busy_ns=_covered(columns, mask),
                span_ns=int(columns.end_ns[mask].max() - columns.start_ns[mask].min()),
            )
        )
    return tuple(rows)


def _spreads(steps: tuple[StepRow, ...]) -> dict[str, Spread]:
    if len(steps) < 2:
        return {}
    return {
        column: _spread([getattr(row, column) for row in steps])
        for column in ("cpu_ns", "busy_ns", "span_ns")
    }


def _spread(values: list[int]) -> Spread:
    median = float(np.median(values))
    return Spread(
        median_ns=median,
        min_ns=min(values),
        max_ns=max(values),
        range_percent=100 * (max(values) - min(values)) / median if median else 0.0,
    )


def _graph_launches(columns: Columns) -> tuple[GraphLaunchRow, ...]:
    per_launch = np.bincount(columns.launch[columns.launch >= 0], minlength=len(columns.launch_names))
    found = Counter(
        (name, int(number))
        for name, number in zip(columns.launch_names, per_launch, strict=True)
        if "GraphLaunch" in name
    )
    rows = [
        GraphLaunchRow(call=call, slices_per_launch=slices, num_launches=launches)
        for (call, slices), launches in found.items()
    ]
    return tuple(sorted(rows, key=lambda row: (-row.slices_per_launch, row.call)))


def _unattributed(columns: Columns, families: npt.NDArray[Any]) -> Unattributed:
    unlinked = columns.launch < 0
    unclassified = (families == Family.UNCLASSIFIED.value)[columns.kind]
    outside = np.full(columns.num_slices, bool(columns.steps))
    for _, start_ns, end_ns in columns.steps:
        outside &= (columns.launched_ns < start_ns) | (columns.launched_ns >= end_ns)
    return Unattributed(
        num_without_launch=int(unlinked.sum()),
        without_launch_ns=_summed(columns, unlinked),
        num_unclassified=int(unclassified.sum()),
        unclassified_ns=_summed(columns, unclassified),
        num_outside_steps=int(outside.sum()),
        outside_steps_ns=_summed(columns, outside),
    )
