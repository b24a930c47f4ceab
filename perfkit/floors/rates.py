"""Measured ceilings, picked and interpolated for what a piece does."""

from __future__ import annotations

from perfkit.errors import PerfkitError
from perfkit.wire.payloads import Peaks

_READ_SHARES = (("read", 1.0), ("triad_2_1", 2 / 3), ("copy_1_1", 0.5), ("write", 0.0))
"""Rates by the share of reads in their bytes. A mix has a bandwidth of its own: on an H200, kernels that
read two bytes per byte written beat the rate of a copy."""


def bandwidth_of_mix(peaks: Peaks, *, num_read_bytes: int, num_written_bytes: int) -> float:
    """Bytes per second for this mix of reads and writes.

    Time per byte is interpolated linearly in the share of reads between the two nearest measured mixes;
    beyond the outermost measured mix, that one counts.

    Raises:
        PerfkitError: the peaks hold no bandwidth at all.
    """
    measured = [(share, 1.0 / rate.value) for name, share in _READ_SHARES if (rate := peaks.rate(name))]
    if not measured:
        raise PerfkitError(
            "There is no floor to compare with.",
            why=f"The peaks of {peaks.device_key} hold no bandwidth.",
            do="Measure them again with `perfkit peaks --refresh`.",
        )
    total = num_read_bytes + num_written_bytes
    share = num_read_bytes / total if total else 0.5
    above = min((m for m in measured if m[0] >= share), default=measured[0])
    below = max((m for m in measured if m[0] <= share), default=measured[-1])
    if above[0] == below[0]:
        return 1.0 / above[1]
    weight = (share - below[0]) / (above[0] - below[0])
    return 1.0 / (below[1] + weight * (above[1] - below[1]))


def launch_floor_us(peaks: Peaks) -> float:
    """The shortest a kernel can be; 0 where it was not measured."""
    rate = peaks.rate("launch_floor")
    return rate.value if rate is not None else 0.0


def flops_rate(peaks: Peaks, dtype: str) -> float | None:
    """FLOPs per second of matrix products in a dtype, or None where it was not measured."""
    rate = peaks.rate(f"gemm_{dtype}")
    return rate.value if rate is not None else None
