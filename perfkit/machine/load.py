"""How busy other programs keep the CPUs, ourselves excluded."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass

SAMPLE_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuLoad:
    """Load over a short interval, in CPUs' worth of work."""

    num_cpus: int
    """Logical CPUs of the machine."""
    busy_cpus: float
    own_cpus: float
    load_1min: float | None
    """The kernel's one-minute load average, ourselves included; None where there is none."""

    @property
    def foreign_cpus(self) -> float:
        """Kept busy by others."""
        return max(0.0, self.busy_cpus - self.own_cpus)

    @property
    def foreign_share(self) -> float:
        """Of all CPUs, 0 to 1."""
        return self.foreign_cpus / self.num_cpus


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuSample:
    """CPU seconds spent so far."""

    at_s: float
    busy_s: float
    """By all processes, summed over all CPUs; idle and waiting for disks do not count."""
    own_s: float
    """By this process and those of its children that ended."""


def load_between(
    before: CpuSample, after: CpuSample, *, num_cpus: int, load_1min: float | None = None
) -> CpuLoad:
    """The load between two samples."""
    elapsed_s = after.at_s - before.at_s
    return CpuLoad(
        num_cpus=num_cpus,
        busy_cpus=(after.busy_s - before.busy_s) / elapsed_s,
        own_cpus=(after.own_s - before.own_s) / elapsed_s,
        load_1min=load_1min,
    )


def read_load(*, sample_s: float = SAMPLE_S, sleep: Callable[[float], None] = time.sleep) -> CpuLoad:
    """Samples the CPUs for `sample_s` seconds."""
    before = _sample()
    sleep(sample_s)
    return load_between(before, _sample(), num_cpus=os.cpu_count() or 1, load_1min=_load_average())


def _sample() -> CpuSample:
    import psutil

    times = psutil.cpu_times()
    # guest times are part of user already; idle and iowait are the absence of work.
    busy_s = sum(getattr(times, name, 0.0) for name in ("user", "nice", "system", "irq", "softirq", "steal"))
    own = os.times()
    own_s = own.user + own.system + own.children_user + own.children_system
    return CpuSample(at_s=time.monotonic(), busy_s=busy_s, own_s=own_s)


def _load_average() -> float | None:
    try:
        return os.getloadavg()[0]
    except OSError:
        return None
