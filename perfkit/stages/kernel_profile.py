"""From the slots of a kernel to providers x cases x directions, with shares and bottlenecks; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from perfkit.floors import bandwidth_of_mix
from perfkit.report.bottleneck import Bottleneck, classify_bottleneck
from perfkit.report.model import ProviderRow
from perfkit.stats import median, process_interval
from perfkit.wire.payloads import KernelRun, Peaks, StepTimes, Timing, Work
from perfkit.wire.results import SlotRecord

VECTOR_RATE = "gemm_fp32"
"""The ceiling for arithmetic outside tensor cores: fp32 GEMM without TF32 runs on the same units."""


def provider_rows(records: Iterable[SlotRecord], *, peaks: Peaks) -> tuple[ProviderRow, ...]:
    """A row per case, provider and timed state; shares come from the kernel time of the same state."""
    return tuple(row for record in records for row in _rows_of(record, peaks))


def _rows_of(record: SlotRecord, peaks: Peaks) -> Iterator[ProviderRow]:
    payload = record.result.payload
    case = record.spec.case.name if record.spec.case else ""
    label = record.spec.subject.label
    if not isinstance(payload, StepTimes):
        yield ProviderRow(
            case=case,
            provider=label,
            direction="full",
            launch="launch",
            cache="cold" if record.spec.device != "cpu" else "warm",
            time=None,
            fate=record.result.fate,
            reason=record.result.reason,
        )
        return
    for timing in payload.timings:
        work = next((w for w in payload.work if w.direction == timing.direction), None)
        run = next(
            (r for r in payload.kernel_runs if (r.direction, r.cache) == (timing.direction, timing.cache)),
            None,
        )
        yield _row_of(case, label, timing, work=work, run=run, peaks=peaks, payload=payload)


def _row_of(
    case: str,
    label: str,
    timing: Timing,
    *,
    work: Work | None,
    run: KernelRun | None,
    peaks: Peaks,
    payload: StepTimes,
) -> ProviderRow:
    shares = _shares(timing, run, work, peaks)
    bottleneck = _bottleneck(shares, run, work, peaks) if shares is not None and work is not None else None
    return ProviderRow(
        case=case,
        provider=label,
        direction=timing.direction,
        launch=timing.launch,
        cache=timing.cache,
        time=process_interval([median(timing.samples_us)]) if timing.samples_us else None,
        num_bytes=work.num_bytes if work else None,
        num_flops=work.num_flops if work else None,
        bandwidth_share=shares.bandwidth if shares else None,
        flops_share=shares.flops if shares else None,
        peak_memory_bytes=payload.peak_memory_bytes,
        bottleneck=bottleneck.name if bottleneck else "",
        evidence=bottleneck.evidence if bottleneck else (),
        fate=timing.fate,
        reason=timing.reason,
    )


@dataclass(frozen=True, slots=True)
class _Shares:
    time_us: float
    bandwidth: float
    flops: float | None


def _shares(timing: Timing, run: KernelRun | None, work: Work | None, peaks: Peaks) -> _Shares | None:
    """Shares of the measured ceilings, over kernel time where there is one, else over the timed median."""
    if work is None or timing.launch != "launch" or not timing.samples_us:
        return None
    time_us = run.time_us if run is not None and run.time_us > 0 else median(timing.samples_us)
    reached = work.num_bytes / (time_us * 1e-6)
    ceiling = bandwidth_of_mix(
        peaks, num_read_bytes=work.num_read_bytes, num_written_bytes=work.num_written_bytes
    )
    vector = peaks.rate(VECTOR_RATE)
    flops = work.num_flops / (time_us * 1e-6) / vector.value if vector is not None else None
    return _Shares(time_us, reached / ceiling, flops)


def _bottleneck(shares: _Shares, run: KernelRun | None, work: Work, peaks: Peaks) -> Bottleneck | None:
    """The class, from the shares of the whole pass: hardware counters are not needed, nor read."""
    floor = peaks.rate("launch_floor")
    num_kernels = max(run.num_kernels, 1.0) if run is not None else 1.0
    found = classify_bottleneck(
        time_us=shares.time_us,
        bandwidth_share=shares.bandwidth,
        flops_share=shares.flops,
        launch_floor_us=floor.value * num_kernels if floor is not None else None,
        working_set_bytes=work.num_bytes,
        cache_bytes=peaks.cache_bytes,
    )
    if found is None or num_kernels < 1.5:
        return found
    several = f"{num_kernels:.0f} kernels, so intermediate results pass through memory"
    return Bottleneck(name=found.name, evidence=(*found.evidence, several))
