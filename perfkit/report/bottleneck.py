"""What bounds a kernel, with the observations that say so."""

from __future__ import annotations

from dataclasses import dataclass

from perfkit.stats import format_percent, format_us

HIGH_SHARE = 0.6
LOW_SHARE = 0.4
IDLE_SHARE = 0.3
"""Shares of the measured peak that divide the classes: the customary reading of a profiler's memory and
compute throughput (above 60% of one and below 40% of the other; below 30% of both, neither is busy)."""

LAUNCH_FACTOR = 3.0
"""Within three launch floors, a kernel's time is mostly the cost of starting it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bottleneck:
    """The class and its evidence, a line each."""

    name: str
    evidence: tuple[str, ...]


def classify_bottleneck(
    *,
    time_us: float,
    bandwidth_share: float | None,
    flops_share: float | None,
    launch_floor_us: float | None = None,
    working_set_bytes: int | None = None,
    cache_bytes: int = 0,
) -> Bottleneck | None:
    """The class of one pass, from shares of this device's measured peaks; None without any share.

    Args:
        time_us: time of one pass.
        bandwidth_share: bytes the pass must move / time, over the measured bandwidth.
        flops_share: FLOPs / time, over the measured rate of that dtype; None counts as no arithmetic.
        launch_floor_us: the shortest time that any kernel takes here.
        working_set_bytes: with `cache_bytes`, tells whether "bandwidth" may mean the cache's.
    """
    if bandwidth_share is None and flops_share is None:
        return None
    evidence = _shares(bandwidth_share, flops_share)
    if launch_floor_us and time_us < LAUNCH_FACTOR * launch_floor_us:
        floor = f"within {LAUNCH_FACTOR:g} times the launch floor of {format_us(launch_floor_us)}"
        return Bottleneck(name="launch-bound", evidence=(f"{format_us(time_us)} is {floor}", *evidence))
    if working_set_bytes and cache_bytes and working_set_bytes < cache_bytes:
        evidence += ("the working set fits into the cache, whose bandwidth is higher than the memory's",)
    return Bottleneck(name=_class(bandwidth_share or 0.0, flops_share or 0.0), evidence=evidence)


def _shares(bandwidth_share: float | None, flops_share: float | None) -> tuple[str, ...]:
    lines = []
    if bandwidth_share is not None:
        lines.append(f"{format_percent(bandwidth_share)} of the measured bandwidth")
    if flops_share is not None:
        lines.append(f"{format_percent(flops_share)} of the measured arithmetic rate")
    return tuple(lines)


def _class(memory: float, compute: float) -> str:
    if memory < IDLE_SHARE and compute < IDLE_SHARE:
        return "latency-bound"
    if memory > HIGH_SHARE and compute > HIGH_SHARE:
        return "balanced, near the ceiling"
    larger = "memory-bound" if memory >= compute else "compute-bound"
    high, low = max(memory, compute), min(memory, compute)
    if high > HIGH_SHARE:
        return larger if low < LOW_SHARE else f"{larger} (weakly)"
    return f"{larger} (below the ceiling)" if low < IDLE_SHARE else "balanced"
