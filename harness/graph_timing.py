"""Times of CUDA graph replays: whole steps back to back, and single calls by subtraction."""

from __future__ import annotations

import itertools
from typing import Any

import torch

from perfkit.wire.payloads import CacheState, Direction, Timing

from .capture import Captured, NotCapturable, ReplayDiffers, WholeStep, capture, capture_checked
from .clocks import Call, Clock, quiet, time_calls
from .cold_cache import HoldBack

CALLS_PER_GRAPH = 10
"""Repetitions inside a captured sequence: they spread what a replay costs by itself."""
MIN_PAIRS = 5


def time_step_graph(
    step: WholeStep,
    *,
    direction: Direction,
    device: torch.device,
    clock: Clock[Any],
    num_samples: int,
    hold_back: HoldBack | None,
) -> Timing:
    """Times replays of a whole step, back to back, after the replay was checked.

    Each sample is one replay: the GPU's time for all kernels of the step and the gaps between them,
    without the host. A step that cannot be captured, or whose replay does something else, is a fate
    of the Timing with its reason, not an error.
    """
    try:
        captured = capture_checked(step, device=device)
    except NotCapturable as error:
        return refused(direction, "warm", fate="not_capturable", reason=str(error))
    except ReplayDiffers as error:
        return refused(direction, "warm", fate="failed", reason=str(error))
    replay = captured.graph.replay
    if hold_back is not None:
        hold_back.fit(replay, clock=clock)
    samples_us = time_calls(replay, clock=clock, num_samples=num_samples, before=hold_back)
    return Timing(
        direction=direction, launch="graph", cache="warm", samples_us=samples_us, clock="cuda_events"
    )


def time_call_graph(
    call: Call,
    *,
    prepare: Call | None,
    direction: Direction,
    cache: CacheState,
    device: torch.device,
    clock: Clock[Any],
    num_samples: int,
    hold_back: HoldBack | None,
) -> Timing:
    """Times one call inside a graph: (10 x (prepare, call) minus 10 x prepare) / 10.

    One short replay would be mostly launch latency, and a flush may not be part of the number; the
    difference is free of both. It still holds the gap that a kernel has in front of it within a graph.
    Each sample is the mean of ten calls; there are at least five, and enough for `num_samples` calls.
    Check the captured call with `capture_checked` beforehand.
    """

    def repeat(*pieces: Call | None) -> Call:
        return lambda: [piece() for _ in range(CALLS_PER_GRAPH) for piece in pieces if piece] and None

    try:
        # The sequence without the call comes first, so that no prepared backward is left over at the end.
        without = capture(repeat(prepare), device=device) if prepare is not None else None
        stream = without.stream if without is not None else None
        whole = capture(repeat(prepare, call), device=device, stream=stream)
    except NotCapturable as error:
        return refused(direction, cache, fate="not_capturable", reason=str(error))
    num_pairs = max(MIN_PAIRS, -(-num_samples // CALLS_PER_GRAPH))
    samples_us = _differences(whole, without, clock=clock, num_pairs=num_pairs, hold_back=hold_back)
    if min(samples_us) <= 0:
        reason = "the call is too short to tell from the spread of the flush around it"
        return refused(direction, cache, fate="failed", reason=reason)
    return Timing(direction=direction, launch="graph", cache=cache, samples_us=samples_us)


def refused(direction: Direction, cache: CacheState, *, fate: Any, reason: str) -> Timing:
    """A graph timing that has no samples, and why."""
    return Timing(direction=direction, launch="graph", cache=cache, fate=fate, reason=reason)


def _differences(
    whole: Captured,
    without: Captured | None,
    *,
    clock: Clock[Any],
    num_pairs: int,
    hold_back: HoldBack | None,
) -> tuple[float, ...]:
    """Microseconds per call from `num_pairs` pairs of neighbouring replays; one more pair warms up."""

    def pair() -> list[Any]:
        marks = [clock.mark()]
        for captured in (whole, without):
            if captured is not None:
                captured.graph.replay()
                marks.append(clock.mark())
        return marks

    if hold_back is not None:
        hold_back.fit(pair, clock=clock)
    rows = []
    with quiet():
        for _ in range(num_pairs + 1):
            if hold_back is not None:
                hold_back()
            rows.append(pair())
        clock.wait()
    samples = []
    for row in rows[1:]:
        times = [clock.elapsed_us(start, end) for start, end in itertools.pairwise(row)]
        samples.append((times[0] - sum(times[1:])) / CALLS_PER_GRAPH)
    return tuple(samples)
