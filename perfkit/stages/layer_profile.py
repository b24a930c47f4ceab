"""From the profiled slots of a layer to the matrix, the families and the top kernels; pure but for traces."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfkit.report.model import KernelRow, MatrixRow
from perfkit.stats import median, process_interval
from perfkit.trace import Family, kernel_table, read_trace
from perfkit.trace import KernelRow as TracedRow
from perfkit.wire.payloads import StepTimes, Timing
from perfkit.wire.results import SlotRecord

_GENERATED = frozenset(
    {Family.POINTWISE, Family.REDUCTION, Family.COPY, Family.NORM, Family.GATHER_SCATTER, Family.SORT}
)
"""What Inductor generates code for when it can."""

NAME_LENGTH = 170
"""Characters of a kernel's name that tell which op of torch it is: its templates begin alike."""

TOP_KERNELS = 15
"""Rows per case and tree: enough to hold what matters, few enough to read."""


def matrix_rows(records: Iterable[SlotRecord]) -> tuple[MatrixRow, ...]:
    """A row per case, tree and launch state; a slot without an answer keeps its row, with its fate."""
    return tuple(row for record in records for row in _rows_of(record))


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedKernels:
    """What the traces of the slots say about kernels (CPU: ops)."""

    families: tuple[KernelRow, ...]
    kernels: tuple[KernelRow, ...]
    """The top ones per case and tree."""
    notes: tuple[str, ...]
    """Ops inside compiled code that the compiler did not generate code for."""


def traced_kernels(records: Sequence[SlotRecord], *, slots_dir: Path) -> TracedKernels:
    """Families, top kernels and fallbacks per case and tree, from the traces of the slots.

    Raises:
        PerfkitError: a trace cannot be read.
    """
    families: list[KernelRow] = []
    kernels: list[KernelRow] = []
    notes: list[str] = []
    for record in records:
        payload = record.result.payload
        if not isinstance(payload, StepTimes) or not payload.trace_file:
            continue
        trace = read_trace(slots_dir / record.slot / payload.trace_file)
        table = kernel_table(trace, num_steps=payload.num_traced_steps)
        notes += _fallbacks(record, table)
        rows = [
            KernelRow(
                case=_case(record),
                subject=record.spec.subject.label,
                name=row.name,
                family=str(row.family),
                time_us=row.time_us,
                num_calls=row.num_calls,
                share=row.share,
            )
            for row in table
        ]
        families += _by_family(rows)
        kernels += rows[:TOP_KERNELS]
    return TracedKernels(families=tuple(families), kernels=tuple(kernels), notes=tuple(notes))


def _fallbacks(record: SlotRecord, table: Sequence[TracedRow]) -> Iterator[str]:
    """A kernel of torch's own inside a compiled region, which is no product, copy engine or attention."""
    found = [row for row in table if row.inside_compiled_region and row.family in _GENERATED]
    if not found:
        return
    total_us = sum(row.time_us for row in found)
    calls = sum(row.num_calls for row in found)
    yield (
        f"{record.spec.subject.label} on {_case(record)}: inside compiled code {calls:g} launches a step "
        f"({total_us:.0f} us) are torch's own kernels, most of it `{found[0].name[:NAME_LENGTH]}`. "
        "The compiler has no code for these ops; written otherwise, they could fuse with their neighbours."
    )


def _rows_of(record: SlotRecord) -> Iterator[MatrixRow]:
    payload = record.result.payload
    label = record.spec.subject.label
    if not isinstance(payload, StepTimes):
        yield MatrixRow(
            case=_case(record),
            subject=label,
            launch="launch",
            direction="full",
            cache="warm",
            wall=None,
            fate=record.result.fate,
            reason=record.result.reason,
        )
        return
    for timing in payload.timings:
        yield _row_of(record, payload, timing)


def _row_of(record: SlotRecord, payload: StepTimes, timing: Timing) -> MatrixRow:
    launched = timing.launch == "launch"
    run = next((r for r in payload.kernel_runs if r.direction == timing.direction), None)
    return MatrixRow(
        case=_case(record),
        subject=record.spec.subject.label,
        launch=timing.launch,
        direction=timing.direction,
        cache=timing.cache,
        wall=process_interval([median(timing.samples_us)]) if timing.samples_us else None,
        # Kernels are profiled in launched steps; a replay runs the same ones, but was not looked at.
        kernel=process_interval([run.time_us]) if run is not None and launched and run.time_us > 0 else None,
        num_kernels=run.num_kernels if run is not None and launched else None,
        peak_memory_bytes=payload.peak_memory_bytes if launched else None,
        num_graphs=payload.num_graphs,
        cold_compile_s=payload.cold_compile_s,
        fate=timing.fate,
        reason=timing.reason,
        attention_kernels=payload.attention_kernels,
    )


def _by_family(rows: Sequence[KernelRow]) -> list[KernelRow]:
    groups: dict[str, list[KernelRow]] = defaultdict(list)
    for row in rows:
        groups[row.family].append(row)
    summed = [
        KernelRow(
            case=group[0].case,
            subject=group[0].subject,
            name=family,
            family=family,
            time_us=sum(row.time_us for row in group),
            num_calls=sum(row.num_calls for row in group),
            share=sum(row.share for row in group),
        )
        for family, group in groups.items()
    ]
    return sorted(summed, key=lambda row: (-row.time_us, row.name))


def _case(record: SlotRecord) -> str:
    return record.spec.case.name if record.spec.case else ""
