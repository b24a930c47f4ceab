"""The step windows of a trace, and which device slices and ops belong to them."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from perfkit.errors import PerfkitError
from perfkit.trace.events import LAUNCH_CATS, OP_CATS, RANGE_CATS, Event, device_args
from perfkit.trace.reader import Trace

STEP_PREFIX = "ProfilerStep#"


@dataclass(frozen=True, slots=True)
class DeviceSlice:
    """A measured slice together with the call that launched it, where the trace has it."""

    event: Event
    launch: Event | None


def step_windows(trace: Trace) -> list[tuple[int, int]]:
    """(start, end) in nanoseconds of each CPU-side ProfilerStep annotation in which anything was called.

    An empty step is what the profiler opens after its last `step()`; it is no step of the workload.
    """
    steps = sorted(
        (e.start_ns, e.end_ns)
        for e in trace.events
        if e.cat in RANGE_CATS and e.is_slice and e.name.startswith(STEP_PREFIX)
    )
    starts = sorted(
        e.start_ns
        for e in trace.events
        if e.cat in OP_CATS | LAUNCH_CATS and e.is_slice and not e.name.startswith(STEP_PREFIX)
    )
    return [s for s in steps if bisect_right(starts, s[1]) > bisect_right(starts, s[0] - 1)]


def count_steps(trace: Trace, *, num_steps: int | None) -> int:
    """The number to divide by: the trace's own count, or `num_steps` where it has no step annotations.

    Raises:
        PerfkitError: the two disagree, or neither is known.
    """
    found = len(step_windows(trace))
    if num_steps is not None and num_steps > 0 and found in (0, num_steps):
        return num_steps
    if num_steps is None and found:
        return found
    raise PerfkitError(
        f"Cannot compute times per step from {trace.path}.",
        why=f"The trace shows {found} profiler steps, {num_steps or 'an unknown number'} were expected.",
        do="Profile again, calling the profiler's step() once after each step.",
    )


def device_slices(trace: Trace) -> list[DeviceSlice]:
    """The measured slices of the step windows, by start; all of them when the trace has no steps.

    A slice belongs to the time at which it was launched (its own start when the launch is unknown): with
    graphs and deep queues the device runs a step long after the CPU has left it.
    """
    launches = launch_calls(trace)
    slices = [DeviceSlice(e, launches.get(device_args(e).correlation)) for e in trace.measured()]
    windows = step_windows(trace)
    if not windows:
        return slices
    first, last = windows[0][0], max(end for _, end in windows)
    return [s for s in slices if first <= (s.launch or s.event).start_ns <= last]


def launch_calls(trace: Trace) -> dict[int | str | None, Event]:
    """Launch call of each correlation id. An id that occurs twice keeps its first call."""
    calls: dict[int | str | None, Event] = {}
    for event in trace.events:
        if event.cat in LAUNCH_CATS and event.is_slice:
            correlation = device_args(event).correlation
            if correlation is not None:
                calls.setdefault(correlation, event)
    return calls


def ops_in_steps(trace: Trace) -> list[Event]:
    """CPU ops that start inside the step windows; all of them when the trace has no steps."""
    ops = [e for e in trace.events if e.cat in OP_CATS and e.is_slice and not e.name.startswith(STEP_PREFIX)]
    windows = step_windows(trace)
    if not windows:
        return ops
    first, last = windows[0][0], max(end for _, end in windows)
    return [e for e in ops if first <= e.start_ns <= last]
