"""The least time of a kernel (CPU: of an op), and what one launch costs the host."""

from __future__ import annotations

import importlib.util
import statistics
from collections.abc import Callable
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from perfkit.wire.payloads import Rate

from .ceilings import NUM_BATCHES, best_median, spread_percent
from .clocks import Call, Clock, quiet
from .kernels_seen import MARK, device_uses, op_uses, trace_events

NUM_CALLS = 50
"""Calls per batch."""
NUM_LAUNCHES = 300


def launch_floor(device: torch.device) -> Rate:
    """Shortest kernel that does something, by the profiler's device time; on a CPU, of a one-element op.

    The smallest of the batches' medians over some candidates, since it bounds every kernel from below.
    """
    timed = [
        (how, [_durations(call, device) for _ in range(NUM_BATCHES)]) for how, call in _least_calls(device)
    ]
    how, batches = min(timed, key=lambda pair: best_median(pair[1]))
    samples = [sample for batch in batches for sample in batch]
    return Rate(
        name="launch_floor",
        value=best_median(batches),
        unit="us",
        num_samples=len(samples),
        spread_percent=spread_percent(samples),
        how=f"{how}, profiler's duration; best of {len(timed)} ways, best batch median of {NUM_BATCHES}",
    )


def launch_latency(device: torch.device, *, clock: Clock[Any]) -> Rate:
    """Host time of one op that launches one kernel, while the queue has room; on a CPU, of one small op."""
    x = torch.zeros(1, device=device)
    batches = []
    with quiet():
        for _ in range(NUM_BATCHES + 1):
            clock.wait()
            start_s = clock.host_s()
            for _ in range(NUM_LAUNCHES):
                x.add_(1.0)
            batches.append(1e6 * (clock.host_s() - start_s) / NUM_LAUNCHES)
    clock.wait()
    return Rate(
        name="launch_latency",
        value=statistics.median(batches[1:]),
        unit="us",
        num_samples=NUM_BATCHES,
        spread_percent=spread_percent(batches[1:]),
        how=f"add_ on one element, host time of {NUM_LAUNCHES} in a row, median of {NUM_BATCHES}",
    )


def _least_calls(device: torch.device) -> list[tuple[str, Call]]:
    x = torch.zeros(1, device=device)
    calls: list[tuple[str, Call]] = [
        ("add_ on one element", lambda: x.add_(1.0)),
        ("fill_ of one element", lambda: x.fill_(1.0)),
    ]
    if device.type == "cuda" and importlib.util.find_spec("triton") is not None:
        from .triton_read import store_one

        calls.append(("own Triton kernel that stores one number", lambda: store_one(x)))
    return calls


def _durations(call: Call, device: torch.device) -> list[float]:
    on_gpu = device.type == "cuda"
    for _ in range(3):
        call()
    activity = ProfilerActivity.CUDA if on_gpu else ProfilerActivity.CPU
    synchronize: Callable[[], None] = torch.cuda.synchronize if on_gpu else lambda: None
    synchronize()
    with profile(activities=[activity]) as profiler:
        for _ in range(NUM_CALLS):
            with record_function(MARK):
                call()
        synchronize()
    events = trace_events(profiler)
    return [time_us for _, time_us in (device_uses(events) if on_gpu else op_uses(events, num_skipped=5))]
