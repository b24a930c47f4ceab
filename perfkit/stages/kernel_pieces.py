"""The passes of a kernel as pieces: measured kernel time against the floor of the declared work; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from perfkit.floors import NOISE, bandwidth_of_mix
from perfkit.report.model import Piece
from perfkit.stages.kernel_profile import VECTOR_RATE
from perfkit.wire.payloads import KernelRun, Peaks, StepTimes, Work
from perfkit.wire.results import SlotRecord

SUBJECTS = ("target", "eager")
"""Whose passes are ranked: the kernel under test, or its reference where only that can be timed."""


def kernel_pieces(records: Iterable[SlotRecord], *, peaks: Peaks) -> tuple[Piece, ...]:
    """A piece per case and direction (forward, backward) of the first subject that was timed."""
    records = tuple(records)
    labels = {record.spec.subject.label for record in records}
    subject = next((label for label in SUBJECTS if label in labels), None)
    return tuple(
        piece
        for record in records
        if record.spec.subject.label == subject
        for piece in _pieces_of(record, peaks)
    )


def floor_of_work_us(work: Work, peaks: Peaks) -> float:
    """The larger of launch floor, bytes over the bandwidth of their mix, and FLOPs over the vector rate."""
    bandwidth = bandwidth_of_mix(
        peaks, num_read_bytes=work.num_read_bytes, num_written_bytes=work.num_written_bytes
    )
    vector, launch = peaks.rate(VECTOR_RATE), peaks.rate("launch_floor")
    return max(
        launch.value if launch is not None else 0.0,
        1e6 * work.num_bytes / bandwidth,
        1e6 * work.num_flops / vector.value if vector is not None else 0.0,
    )


def _pieces_of(record: SlotRecord, peaks: Peaks) -> Iterator[Piece]:
    payload = record.result.payload
    if not isinstance(payload, StepTimes):
        return
    case = record.spec.case.name if record.spec.case else ""
    runs = {run.direction: run for run in payload.kernel_runs}
    for work in payload.work:
        run = runs.get(work.direction)
        if run is None or work.direction == "full":
            continue
        yield _piece(case, record.spec.subject.label, work, run, peaks)


def _piece(case: str, label: str, work: Work, run: KernelRun, peaks: Peaks) -> Piece:
    floor_us = floor_of_work_us(work, peaks)
    below = run.time_us < floor_us * (1 - NOISE)
    fits = 0 < work.num_bytes <= peaks.cache_bytes
    return Piece(
        case=case,
        name=f"{label} {work.direction}",
        phase=work.direction,
        kind="opaque",
        measured_us=run.time_us,
        floor_us=floor_us,
        unfused_floor_us=None,
        num_ops=round(run.num_kernels),
        ops=", ".join(kernel.name for kernel in run.kernels),
        num_bytes=work.num_bytes,
        num_flops=work.num_flops,
        flags=(*(("fits_cache",) if fits else ()), *(("below_floor",) if below else ())),
    )
