"""Which kernels (CPU: ops) a step runs and for how long, from profiled passes after the timed ones."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from perfkit.wire.payloads import CacheState, Direction, KernelRun, KernelUse

from .clocks import Call

DEVICE_CATEGORIES = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})
"""Trace categories of work that a GPU did. Annotations on the GPU's lanes have others, and are not work."""
COMPILED_CALL = "## Call CompiledFxGraph"
"""Start of the name under which a compiled graph runs; on a CPU its kernels have no names of their own."""
MARK = "pk:timed"
"""Range around each call of a profiled run on the CPU."""
_ATTENTION = re.compile(r"flash|fmha|sdpa|mem_?eff|attention|flex_attn", re.IGNORECASE)


Event = dict[str, Any]
Uses = list[tuple[str, float]]
"""Names of what ran, with microseconds, in any order."""


def profiled_run(
    call: Call,
    *,
    device: torch.device,
    direction: Direction,
    cache: CacheState,
    num_steps: int,
    prepare: Call | None = None,
    trace_file: Path | None = None,
) -> KernelRun:
    """Kernels per step over `num_steps` profiled calls; what `prepare` launches in front is not counted.

    CUDA: without `prepare`, calls run back to back under one profile; with it, each call has a profile of
    its own. Only device activity is recorded, which leaves the host almost as fast as without a profiler.
    CPU: all calls run under one profile, each inside a marked range, after one that is not counted.
    `trace_file` keeps the profile; on CUDA only without `prepare`, where there is exactly one.
    """
    if device.type == "cuda":
        uses = _on_gpu(call, device=device, num_steps=num_steps, prepare=prepare, trace_file=trace_file)
    else:
        uses = _on_cpu(call, num_steps=num_steps, prepare=prepare, trace_file=trace_file)
    return kernel_run(uses, direction=direction, cache=cache, num_steps=num_steps)


def _on_gpu(
    call: Call,
    *,
    device: torch.device,
    num_steps: int,
    prepare: Call | None,
    trace_file: Path | None = None,
) -> Uses:
    uses: Uses = []
    for _ in range(1 if prepare is None else num_steps):
        if prepare is not None:
            prepare()
        torch.cuda.synchronize(device)
        with profile(activities=[ProfilerActivity.CUDA]) as profiler:
            for _ in range(num_steps if prepare is None else 1):
                call()
            torch.cuda.synchronize(device)
        uses += device_uses(trace_events(profiler, trace_file=trace_file))
    return uses


def _on_cpu(call: Call, *, num_steps: int, prepare: Call | None, trace_file: Path | None = None) -> Uses:
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        for _ in range(num_steps + 1):
            if prepare is not None:
                prepare()
            with record_function(MARK):
                call()
    return op_uses(trace_events(profiler, trace_file=trace_file), num_skipped=1)


def kernel_run(uses: Uses, *, direction: Direction, cache: CacheState, num_steps: int) -> KernelRun:
    """Per-step averages by name over `num_steps` steps, largest first."""
    times_us: dict[str, list[float]] = defaultdict(list)
    for name, time_us in uses:
        times_us[name].append(time_us)
    names = sorted(times_us, key=lambda name: (-sum(times_us[name]), name))
    return KernelRun(
        direction=direction,
        cache=cache,
        time_us=sum(time_us for _, time_us in uses) / num_steps,
        num_kernels=len(uses) / num_steps,
        names_sha256=hashlib.sha256("\n".join(sorted(names)).encode()).hexdigest(),
        kernels=tuple(
            KernelUse(
                name=name,
                num_calls=len(times_us[name]) / num_steps,
                time_us=sum(times_us[name]) / num_steps,
            )
            for name in names
        ),
    )


def attention_kernels(runs: Iterable[KernelRun]) -> tuple[str, ...]:
    """Names of kernels (CPU: ops) that are fused attention, to verify which backend ran."""
    names = {use.name for run in runs for use in run.kernels}
    return tuple(sorted(name for name in names if _ATTENTION.search(name)))


def trace_events(profiler: profile, *, trace_file: Path | None = None) -> list[Event]:
    """The complete events of a finished profile, in the public trace format.

    A profile can be saved only once; `trace_file` keeps that copy, compressed.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        data = path.read_bytes()
    if trace_file is not None:
        trace_file.write_bytes(gzip.compress(data, compresslevel=6))
    # Names come from user code and may hold any bytes.
    document = json.loads(data.decode("utf-8", errors="replace"), strict=False)
    return [event for event in document["traceEvents"] if event.get("ph") == "X"]


def device_uses(events: Iterable[Event]) -> Uses:
    """Name and duration of each kernel, copy and fill that a GPU ran."""
    return [(str(e["name"]), float(e["dur"])) for e in events if e.get("cat") in DEVICE_CATEGORIES]


def op_uses(events: Sequence[Event], *, num_skipped: int = 0) -> Uses:
    """Name and duration of each outermost op inside the marked ranges, but for the first `num_skipped`.

    The wrappers of autograd and of Dynamo are looked through: what runs inside them is counted, what
    they need for themselves is not.
    """
    ranges = sorted(_span(e) for e in events if e.get("cat") == "user_annotation" and e["name"] == MARK)
    ops = [e for e in events if e.get("cat") == "cpu_op" and _is_op(str(e["name"]))]
    ops.sort(key=lambda e: (str(e["tid"]), float(e["ts"]), -float(e["dur"])))
    uses, thread, end = [], "", 0.0
    for op in ops:
        start_us, end_us = _span(op)
        if str(op["tid"]) == thread and start_us < end:
            continue
        thread, end = str(op["tid"]), end_us
        if any(first <= start_us < last for first, last in ranges[num_skipped:]):
            uses.append((str(op["name"]), float(op["dur"])))
    return uses


def _span(event: Event) -> tuple[float, float]:
    return float(event["ts"]), float(event["ts"]) + float(event["dur"])


def _is_op(name: str) -> bool:
    if name.startswith(COMPILED_CALL):
        return True
    return "::" in name and not name.startswith(("autograd::", "torch::autograd::"))
