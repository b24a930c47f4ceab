"""What stands between two timed CUDA calls: a cold L2, and a GPU held back until the host is ahead."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import torch

from .clocks import Call, Clock

FLUSH_FACTOR = 4
"""Bytes read by a flush, in units of the L2 size: enough to displace every line, whatever the policy."""


class CacheFlush:
    """Displaces the GPU's L2 by reading a buffer several times as large.

    It only reads. Lines that earlier kernels left dirty are written back while it runs, and it leaves
    clean ones behind, so that no eviction falls into the call that follows.
    """

    def __init__(self, device: torch.device, *, l2_bytes: int) -> None:
        self._buffer = torch.ones(max(1, FLUSH_FACTOR * l2_bytes // 4), dtype=torch.float32, device=device)
        self._sink = torch.zeros((), dtype=torch.float32, device=device)

    def __call__(self) -> None:
        """Enqueues one flush."""
        torch.sum(self._buffer, dim=0, out=self._sink)


class HoldBack:
    """Keeps the GPU busy, without touching memory, for as long as the host needs to enqueue a call."""

    def __init__(self, sleep: Callable[[int], None], *, cycles_per_us: float) -> None:
        self._sleep = sleep
        self._cycles_per_us = cycles_per_us
        self.time_us = 0.0

    def fit(self, calls: Call, *, clock: Clock[Any], num_tries: int = 5) -> None:
        """Makes the pause twice as long as the host takes to enqueue `calls`, plus 20 us."""
        seconds = []
        for _ in range(num_tries):
            clock.wait()
            start_s = clock.host_s()
            calls()
            seconds.append(clock.host_s() - start_s)
        clock.wait()
        self.time_us = 2e6 * statistics.median(seconds) + 20.0

    def __call__(self) -> None:
        """Enqueues the pause."""
        self._sleep(int(self.time_us * self._cycles_per_us))


def calibrate(sleep: Callable[[int], None], *, clock: Clock[Any], num_cycles: int = 2_000_000) -> HoldBack:
    """A HoldBack with the cycles per microsecond of this GPU; the first, slow, pause is not counted."""
    times_us = []
    for _ in range(3):
        start = clock.mark()
        sleep(num_cycles)
        end = clock.mark()
        clock.wait()
        times_us.append(clock.elapsed_us(start, end))
    return HoldBack(sleep, cycles_per_us=num_cycles / min(times_us[1:]))
