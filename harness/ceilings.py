"""Ceilings of a device: the best rate that any of several honest ways of doing a thing reaches."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from perfkit.wire.payloads import Rate

from .clocks import Call, Clock, quiet, time_calls

NUM_BATCHES = 4
MAX_BATCH = 5
"""Samples of one batch, at most."""


@dataclass(frozen=True)
class Way:
    """One way to move bytes or to multiply."""

    how: str
    """Kernel and size, for people."""
    amount: float
    """Bytes or FLOPs of one call."""
    call: Call


@dataclass(frozen=True)
class Effort:
    """How long a way is tried."""

    seconds: float
    """Roughly, for one way; a single call may take longer."""
    min_sample_s: float
    """Calls shorter than this are timed in groups."""
    pause_s: float
    """Rest before each batch, for a device that slows down when it gets hot."""


def best_rate(
    name: str,
    ways: Sequence[Way],
    *,
    unit: Literal["bytes_per_s", "flops_per_s"],
    clock: Clock[Any],
    effort: Effort,
) -> Rate:
    """The highest rate among some ways, to be used as a ceiling.

    Each way is timed in batches, and counts with its best batch's median: time that a floor is derived
    from must be a lower bound, so slower batches (a hot device, a busy host) say nothing about it, while
    the median keeps a single lucky reading out. The spread is that of all samples of the best way.
    """
    with quiet():
        timed = [(way, _batches(way.call, clock=clock, effort=effort)) for way in ways]
    way, batches = max(timed, key=lambda pair: pair[0].amount / best_median(pair[1]))
    samples = [sample for batch in batches for sample in batch]
    return Rate(
        name=name,
        value=way.amount / best_median(batches),
        unit=unit,
        num_samples=len(samples),
        spread_percent=spread_percent(samples),
        how=f"{way.how}; best of {len(ways)} ways, best batch median of {len(batches)}",
    )


def best_median(batches: Sequence[Sequence[float]]) -> float:
    """The smallest of the batches' medians."""
    return min(statistics.median(batch) for batch in batches)


def spread_percent(samples: Sequence[float]) -> float:
    """(p75 - p25) / median, in percent; 0 for a single sample."""
    if len(samples) < 2:
        return 0.0
    low, _, high = statistics.quantiles(samples, n=4, method="inclusive")
    return 100.0 * (high - low) / statistics.median(samples)


def _batches(call: Call, *, clock: Clock[Any], effort: Effort) -> list[tuple[float, ...]]:
    """Seconds per call, in batches; the first three calls warm up and tell how many fit the effort."""
    once_s = min(_once(call, clock) for _ in range(3))
    num_grouped = max(1, int(effort.min_sample_s / max(once_s, 1e-9)))
    fitting = int(effort.seconds / (once_s * num_grouped * NUM_BATCHES))
    num_samples = max(1, min(MAX_BATCH, fitting))

    def group() -> None:
        for _ in range(num_grouped):
            call()

    batches = []
    for _ in range(NUM_BATCHES):
        time.sleep(effort.pause_s)
        times_us = time_calls(group, clock=clock, num_samples=num_samples)
        batches.append(tuple(time_us / 1e6 / num_grouped for time_us in times_us))
    return batches


def _once(call: Call, clock: Clock[Any]) -> float:
    clock.wait()
    start_s = clock.host_s()
    call()
    clock.wait()
    return clock.host_s() - start_s
