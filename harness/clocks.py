"""Clocks for steps and calls: CPU and CUDA, what each number includes, and the quiet that timing needs."""

from __future__ import annotations

import contextlib
import gc
import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar

import torch

from perfkit.wire.payloads import Clock as ClockName

Call = Callable[[], object]
M = TypeVar("M")

NUM_LEAD_IN = 2
"""Calls in front of the timed ones, under the same conditions."""


class Clock(Protocol[M]):
    """Sets marks into a sequence of work and tells the time between two of them."""

    name: ClockName

    def mark(self) -> M:
        """A point in the sequence of work; it does not wait for anything."""

    def elapsed_us(self, start: M, end: M) -> float:
        """Microseconds between two marks; call `wait` first."""

    def wait(self) -> None:
        """Returns when all work so far is done."""

    def host_s(self) -> float:
        """Seconds of the host's own clock."""


class CpuClock:
    """Marks are readings of the host's clock: work on the CPU is done when the call returns."""

    name: ClockName = "perf_counter"

    def __init__(self, now_ns: Callable[[], int] = time.perf_counter_ns) -> None:
        self._now_ns = now_ns

    def mark(self) -> int:
        """Nanoseconds now."""
        return self._now_ns()

    def elapsed_us(self, start: int, end: int) -> float:
        """Microseconds between two readings."""
        return (end - start) / 1e3

    def wait(self) -> None:
        """Nothing is ever pending."""

    def host_s(self) -> float:
        """The same clock in seconds."""
        return self._now_ns() / 1e9


class CudaClock:
    """Marks are events in the current stream: they carry the time at which the GPU reaches them.

    Where the host is slower than the GPU, the wait for the next launch lies between the marks and is
    part of the number. Two marks with nothing between them are some microseconds apart, which is part
    of the number too.
    """

    name: ClockName = "cuda_events"

    def __init__(
        self,
        *,
        new_event: Callable[[], Any] = lambda: torch.cuda.Event(enable_timing=True),  # type: ignore[no-untyped-call]
        synchronize: Callable[[], None] = torch.cuda.synchronize,
        now_s: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._new_event = new_event
        self._synchronize = synchronize
        self._now_s = now_s

    def mark(self) -> Any:
        """An event, recorded in the current stream."""
        event = self._new_event()
        event.record()
        return event

    def elapsed_us(self, start: Any, end: Any) -> float:
        """Microseconds between two recorded events; torch gives milliseconds."""
        return float(start.elapsed_time(end)) * 1e3

    def wait(self) -> None:
        """Synchronizes the device."""
        self._synchronize()

    def host_s(self) -> float:
        """Host seconds."""
        return self._now_s()


def clock_for(device: torch.device) -> CpuClock | CudaClock:
    """The clock of a device."""
    return CudaClock() if device.type == "cuda" else CpuClock()


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """No garbage collection inside: everything alive is collected once and frozen beforehand.

    Inside another `quiet`, or where somebody else switched collection off, it does nothing.
    """
    if not gc.isenabled():
        yield
        return
    gc.collect()
    # Frozen for good: thawed, torch's half a million objects would be walked again before every loop.
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def time_calls(
    call: Call,
    *,
    clock: Clock[Any],
    num_samples: int,
    prepare: Call | None = None,
    before: Call | None = None,
) -> tuple[float, ...]:
    """Microseconds of each of `num_samples` calls, in order.

    All calls are enqueued without waiting in between; the clock waits once, at the end. Each call's
    result is dropped inside its sample, as a training loop drops it. Two more calls lead in: collecting
    garbage leaves the host's caches cold, which showed in the first samples.

    Without `prepare`, calls run back to back and share their marks, so the samples add up to the whole
    loop: this is the time of a step as a loop of steps sees it, host included. With `prepare` (clear
    gradients, run a forward, flush the cache, hold the GPU back), it runs before every call, outside the
    number. `before` runs once, in front of everything.
    """
    with quiet():
        clock.wait()
        if before is not None:
            before()
        if prepare is None:
            pairs = _back_to_back(call, clock, num_samples)
        else:
            pairs = _apart(call, clock, num_samples, prepare)
        clock.wait()
    return tuple(clock.elapsed_us(start, end) for start, end in pairs)


def _back_to_back(call: Call, clock: Clock[M], num_samples: int) -> list[tuple[M, M]]:
    for _ in range(NUM_LEAD_IN):
        call()
    marks = [clock.mark()]
    for _ in range(num_samples):
        call()
        marks.append(clock.mark())
    return list(itertools.pairwise(marks))


def _apart(call: Call, clock: Clock[M], num_samples: int, prepare: Call) -> list[tuple[M, M]]:
    pairs = []
    for _ in range(NUM_LEAD_IN + num_samples):
        prepare()
        start = clock.mark()
        call()
        pairs.append((start, clock.mark()))
    return pairs[NUM_LEAD_IN:]
