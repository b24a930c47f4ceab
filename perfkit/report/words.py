"""The phrases that every document shares: conditions, labels, cells with honest digits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perfkit.report.markdown import HOLE
from perfkit.report.model import ComparisonRow, Conditions, ProviderRow
from perfkit.stats import PairedRatio, ProcessInterval, format_percent, format_ratio, format_us

QUICK = "QUICK RUN: a smoke test of the pipeline; its numbers are not for citing."

_DIRECTIONS = {"full": "forward and backward", "forward": "forward", "backward": "backward"}
_CHECKPOINTS = {
    "none": "no checkpointing",
    "full": "full checkpointing",
    "selective": "selective checkpointing",
}


def conditions_line(conditions: Conditions) -> str:
    """`llama3-block, NVIDIA H200 (cuda:0), bf16, ..., median of 3 fresh processes`."""
    c = conditions
    parts = [c.target, f"{c.device_name} ({c.device})", c.dtype]
    if c.kind == "layer":
        parts.append(_CHECKPOINTS[c.checkpoint])
    parts.append(f"torch {c.torch}")
    parts.append(f"triton {c.triton}" if c.triton else "no triton")
    if c.driver:
        parts.append(f"driver {c.driver}")
    if c.fp32_precision:
        parts.append(f"fp32 matmuls {c.fp32_precision}")
    if c.num_threads:
        parts.append(plural(c.num_threads, "thread"))
    parts.append(f"median of {plural(c.num_processes, 'fresh process', 'fresh processes')}")
    if c.quick:
        parts.append("quick run")
    return ", ".join(parts)


def plural(count: float, one: str, many: str = "") -> str:
    """`1 process`, `3 processes`."""
    return f"{count:g} {one if count == 1 else many or one + 's'}"


def direction_words(direction: str) -> str:
    """`full` -> `forward and backward`."""
    return _DIRECTIONS[direction]


def short_direction(direction: str) -> str:
    """For table cells: `full` -> `fwd+bwd`."""
    return "fwd+bwd" if direction == "full" else direction


def workload(row: ComparisonRow | ProviderRow) -> str:
    """The states that belong to a number: `4k, forward and backward, launch, warm`."""
    return f"{row.case}, {direction_words(row.direction)}, {row.launch}, {row.cache}"


def time_unit(intervals: Sequence[ProcessInterval | None]) -> str:
    """One unit for a whole column: ms where the largest has 10 ms or the smallest 1 ms, else us."""
    medians = [i.median for i in intervals if i is not None]
    return "ms" if medians and (max(medians) >= 10e3 or min(medians) >= 1e3) else "us"


def time_cell(interval: ProcessInterval | None, *, unit: str) -> str:
    """The median alone, for a column that names the unit."""
    if interval is None:
        return HOLE
    return format_us(interval.median, spread_us=interval.half_width, unit=unit, with_unit=False)


def interval_cell(interval: ProcessInterval | None, *, unit: str) -> str:
    """`19.9 to 20.2`; a hole for one process."""
    if interval is None or interval.low is None or interval.high is None:
        return HOLE
    width = interval.half_width
    low, high = (
        format_us(v, spread_us=width, unit=unit, with_unit=False) for v in (interval.low, interval.high)
    )
    return f"{low} to {high}"


def ratio_cell(ratio: PairedRatio | None) -> str:
    """`0.614x`."""
    return HOLE if ratio is None else format_ratio(ratio.ratio, spread=ratio.half_width)


def ratio_interval_cell(ratio: PairedRatio | None) -> str:
    """`0.601 to 0.628`; a hole for one pair."""
    if ratio is None or ratio.low is None or ratio.high is None:
        return HOLE
    low, high = (format_ratio(v, spread=ratio.half_width).rstrip("x") for v in (ratio.low, ratio.high))
    return f"{low} to {high}"


def conclusion(row: ComparisonRow) -> str:
    """What the ratio's interval shows: `faster`, `slower`, `no difference shown`."""
    if row.ratio is None:
        return "baseline" if row.is_baseline or row.verdict == "reference" else HOLE
    if row.ratio.low is None:
        return "open: 1 process"
    words = "faster" if row.ratio.smaller else "slower" if row.ratio.larger else "no difference shown"
    return f"{words} (indicative)" if row.ratio.indicative else words


def change_text(before: ProcessInterval, after: ProcessInterval, *, unit: str = "") -> str:
    """`20.04 -> 12.31 ms (-38.6%)`: medians, one unit, digits limited by the wider spread of the two."""
    chosen = unit or time_unit([before, after])
    delta = format_percent(after.median / before.median - 1, signed=True)
    spread = wider_spread(before, after)
    left, right = (
        format_us(i.median, spread_us=spread, unit=chosen, with_unit=False) for i in (before, after)
    )
    return f"{left} -> {right} {chosen} ({delta})"


def wider_spread(*intervals: ProcessInterval) -> float | None:
    """The widest half width, which limits the digits of numbers that are read together."""
    return max((i.half_width for i in intervals if i.half_width is not None), default=None)


def processes_text(*intervals: ProcessInterval) -> str:
    """`(2 processes, indicative)` where a number rests on fewer than three; "" otherwise."""
    fewest = min(i.num_processes for i in intervals)
    if not any(i.indicative for i in intervals):
        return ""
    return f"({plural(fewest, 'process', 'processes')}, indicative)"


def fates_text(fates: Mapping[str, int]) -> str:
    """`3 ok, 1 contaminated`; ok first, the others by name."""
    ordered = sorted(fates.items(), key=lambda item: (item[0] != "ok", item[0]))
    return ", ".join(f"{count} {fate}" for fate, count in ordered if count) or HOLE


def hole_text(fate: str, reason: str) -> str:
    """`not capturable: it allocates during capture`."""
    words = fate.replace("_", " ")
    return f"{words}: {reason}" if reason else words
