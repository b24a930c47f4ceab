"""From the profiled slots of a layer to the matrix, the families and the top kernels; pure but for traces."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from perfkit.report.model import KernelRow, MatrixRow
from perfkit.stats import median, process_interval
from perfkit.trace import kernel_table, read_trace
from perfkit.wire.payloads import StepTimes, Timing
from perfkit.wire.results import SlotRecord

TOP_KERNELS = 15
"""Rows per case and tree: enough to hold what matters, few enough to read."""


def matrix_rows(records: Iterable[SlotRecord]) -> tuple[MatrixRow, ...]:
    """A row per case, tree and launch state; a slot without an answer keeps its row, with its fate."""
    return tuple(row for record in records for row in _rows_of(record))


def kernel_rows(
    records: Sequence[SlotRecord], *, slots_dir: Path
) -> tuple[tuple[KernelRow, ...], tuple[KernelRow, ...]]:
    """(families, top kernels) per case and tree, from the traces of the slots.

    Raises:
        PerfkitError: a trace cannot be read.
    """
    families: list[KernelRow] = []
    kernels: list[KernelRow] = []
    for record in records:
        payload = record.result.payload
        if not isinstance(payload, StepTimes) or not payload.trace_file:
            continue
        trace = read_trace(slots_dir / record.slot / payload.trace_file)
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
            for row in kernel_table(trace, num_steps=payload.num_traced_steps)
        ]
        families += _by_family(rows)
        kernels += rows[:TOP_KERNELS]
    return tuple(families), tuple(kernels)


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
