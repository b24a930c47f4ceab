"""Cuts a trace down to some steps, a span of time, annotated ranges or categories, streaming it twice."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from perfkit.errors import UsageError
from perfkit.trace.events import LAUNCH_CATS, RANGE_CATS, Event, device_args
from perfkit.trace.groups import is_on_device
from perfkit.trace.intervals import arrays, union
from perfkit.trace.lanes import GPU_ANNOTATION_CAT
from perfkit.trace.moving import FLOW_PHASES
from perfkit.trace.steps import STEP_PREFIX
from perfkit.trace.stream import BATCH_BYTES, stream_trace

_STEP_NUMBER = re.compile(re.escape(STEP_PREFIX) + r"(\d+)$")
_LAUNCH_FLOWS = frozenset({"ac2g", "async_cpu_to_gpu", "async"})
"""Categories of the flows from a launch to its device slices, whose id is the correlation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """What to keep. Several conditions must all hold; at least one must be given."""

    steps: tuple[int, int] | None = None
    """Numbers of the profiler steps, the last one excluded."""
    time_us: tuple[float, float] | None = None
    """Microseconds from the start of the earliest slice."""
    annotation: str = ""
    """Regular expression searched in the names of CPU ranges."""
    cats: frozenset[str] = frozenset()
    """Categories of slices; metadata always stays."""


@dataclass(slots=True)
class _Seen:
    """What the first pass finds out."""

    first_ns: int | None = None
    steps: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    ranges: list[tuple[int, int]] = field(default_factory=list)
    header: dict[str, msgspec.Raw] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Trimmed:
    """The kept part: everything needed to write it, still to be streamed."""

    header: dict[str, msgspec.Raw]
    raws: Iterable[msgspec.Raw]
    window_ns: tuple[int, int] | None
    """First and last nanosecond of the kept windows; None when only categories were given."""


def trim(path: Path, cut: Cut, *, batch_bytes: int = BATCH_BYTES) -> Trimmed:
    """Plans the cut; its events are read again while they are taken from `raws`.

    Steps and annotations select CPU events that overlap them, and the device work launched in them, whenever
    it ran. A time span selects everything that overlaps it.

    Raises:
        PerfkitError: the trace cannot be read.
        UsageError: nothing matches, or the annotation is no regular expression.
    """
    pattern = _pattern(cut.annotation)
    seen = _first_pass(path, pattern, batch_bytes)
    windows = _windows(path, cut, seen)
    launched = _launched_in(path, windows, batch_bytes) if windows and cut.time_us is None else None
    keeper = _Keeper(cut, windows, launched)
    raws = (
        raw
        for batch in stream_trace(path, batch_bytes=batch_bytes)
        for event, raw in zip(batch.events, batch.raw_events(), strict=True)
        if keeper.keeps(event)
    )
    return Trimmed(seen.header, raws, (windows[0][0], windows[-1][1]) if windows else None)


def _pattern(text: str) -> re.Pattern[str] | None:
    try:
        return re.compile(text) if text else None
    except re.error as error:
        raise UsageError(
            f"Cannot use the annotation {text!r}.", why=f"{error}.", do="Give a regular expression."
        ) from error


def _first_pass(path: Path, pattern: re.Pattern[str] | None, batch_bytes: int) -> _Seen:
    seen = _Seen()
    for batch in stream_trace(path, batch_bytes=batch_bytes):
        seen.header = batch.header
        for event in batch.events:
            if not event.is_slice:
                continue
            start_ns = event.start_ns
            if seen.first_ns is None or start_ns < seen.first_ns:
                seen.first_ns = start_ns
            if event.cat not in RANGE_CATS:
                continue
            number = _STEP_NUMBER.match(event.name)
            if number:
                seen.steps.setdefault(int(number[1]), []).append((start_ns, event.end_ns))
            if pattern and pattern.search(event.name):
                seen.ranges.append((start_ns, event.end_ns))
    return seen


def _windows(path: Path, cut: Cut, seen: _Seen) -> list[tuple[int, int]]:
    """Disjoint windows in order in which all conditions on time hold; empty without such conditions."""
    choices: list[list[tuple[int, int]]] = []
    if cut.steps is not None:
        first, last = cut.steps
        choices.append([w for number, ws in seen.steps.items() if first <= number < last for w in ws])
    if cut.annotation:
        choices.append(seen.ranges)
    if cut.time_us is not None:
        zero_ns = seen.first_ns or 0
        choices.append([(zero_ns + round(cut.time_us[0] * 1000), zero_ns + round(cut.time_us[1] * 1000))])
    if not choices:
        return []
    windows = choices[0]
    for other in choices[1:]:
        windows = [(max(a, c), min(b, d)) for a, b in windows for c, d in other]
    starts, ends = union(*arrays(windows))
    if not len(starts):
        known = ", ".join(map(str, sorted(seen.steps))) or "none"
        raise UsageError(
            f"Nothing of {path} would be left.",
            why=f"No time in it meets every condition (profiler steps in the trace: {known}).",
            do="Choose other steps, times or annotations.",
        )
    return list(zip(starts.tolist(), ends.tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class _Launched:
    correlations: frozenset[int | str]
    known: frozenset[int | str]
    """Correlations of all launches of the trace: a slice with another one is judged by its own time."""
    externals: frozenset[int | str]
    """External ids of the CPU ranges inside the windows, which their GPU annotations share."""


def _launched_in(path: Path, windows: list[tuple[int, int]], batch_bytes: int) -> _Launched:
    inside: set[int | str] = set()
    known: set[int | str] = set()
    externals: set[int | str] = set()
    for batch in stream_trace(path, batch_bytes=batch_bytes):
        for event in batch.events:
            if not event.is_slice or event.cat not in LAUNCH_CATS | RANGE_CATS:
                continue
            args = device_args(event)
            if event.cat in LAUNCH_CATS and args.correlation is not None:
                known.add(args.correlation)
                if _overlaps(windows, event.start_ns, event.start_ns + 1):
                    inside.add(args.correlation)
            elif args.external is not None and _overlaps(windows, event.start_ns, event.end_ns):
                externals.add(args.external)
    return _Launched(frozenset(inside), frozenset(known), frozenset(externals))


def _overlaps(windows: list[tuple[int, int]], start_ns: int, end_ns: int) -> bool:
    """Windows are disjoint and in order, so only the last one that begins before the end can matter."""
    place = bisect_left(windows, (max(end_ns, start_ns + 1),))
    return place > 0 and start_ns < windows[place - 1][1]


@dataclass(frozen=True, slots=True)
class _Keeper:
    cut: Cut
    windows: list[tuple[int, int]]
    launched: _Launched | None

    def keeps(self, event: Event) -> bool:
        if event.ph == "M" or event.ts is None:
            return event.ph == "M"
        if event.ph == "X" and self.cut.cats and event.cat not in self.cut.cats:
            return False
        return not self.windows or self._in_time(event)

    def _in_time(self, event: Event) -> bool:
        if self.launched is not None:
            if is_on_device(event.cat) or (event.ph in FLOW_PHASES and event.cat in _LAUNCH_FLOWS):
                ident = event.id if event.ph in FLOW_PHASES else device_args(event).correlation
                if ident in self.launched.known:
                    return ident in self.launched.correlations
            elif event.cat == GPU_ANNOTATION_CAT and (external := device_args(event).external) is not None:
                return external in self.launched.externals
        return _overlaps(self.windows, event.start_ns, event.end_ns)


def count_kept(raws: Iterable[msgspec.Raw], counts: list[int]) -> Iterator[msgspec.Raw]:
    """Passes events through and adds their number to `counts[0]`."""
    for raw in raws:
        counts[0] += 1
        yield raw
