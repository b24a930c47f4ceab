"""Which kernels (CPU: ops) a step runs and for how long, from profiled passes after the timed ones."""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from perfkit.wire.payloads import CacheState, Direction, KernelRun, KernelUse

from .clocks import Call

DEVICE_CATEGORIES = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})
"""Trace categories of work that a GPU did. Annotations on the GPU's lanes have others, and are not work."""
COMPILED_CALL = "## Call CompiledFxGraph"
"""Start of the name under which a compiled graph runs; on a CPU its kernels have no names of their own."""
_ATTENTION = re.compile(r"flash|fmha|sdpa|mem_?eff|attention|flex_attn", re.IGNORECASE)


@dataclass
class Tally:
    """Durations in microseconds by name."""

    num_calls: Counter[str] = field(default_factory=Counter)
    time_us: Counter[str] = field(default_factory=Counter)

    def add(self, uses: Iterable[tuple[str, float]]) -> None:
        """Counts each use of a name."""
        for name, time_us in uses:
            self.num_calls[name] += 1
            self.time_us[name] += time_us  # type: ignore[assignment]  # Counter sums floats as well


def profiled_run(
    call: Call,
    *,
    device: torch.device,
    direction: Direction,
    cache: CacheState,
    num_steps: int,
    prepare: Call | None = None,
) -> KernelRun:
    """Kernels per step over `num_steps` profiled calls.

    Without `prepare` the calls run back to back under one profile. With it, each call has a profile of
    its own and `prepare` runs in front, outside: what it launches is not counted. On CUDA only device
    activity is recorded, which leaves the host almost as fast as without a profiler.
    """
    tally = Tally()
    for _ in range(1 if prepare is None else num_steps):
        if prepare is not None:
            prepare()
        _wait(device)
        with profile(activities=[_activity(device)]) as profiler:
            for _ in range(num_steps if prepare is None else 1):
                call()
            _wait(device)
        tally.add(device_uses(trace_events(profiler), on_gpu=device.type == "cuda"))
    return kernel_run(tally, direction=direction, cache=cache, num_steps=num_steps)


def kernel_run(tally: Tally, *, direction: Direction, cache: CacheState, num_steps: int) -> KernelRun:
    """Per-step averages of a tally over `num_steps` steps, largest first."""
    names = sorted(tally.time_us, key=lambda name: (-tally.time_us[name], name))
    return KernelRun(
        direction=direction,
        cache=cache,
        time_us=sum(tally.time_us.values()) / num_steps,
        num_kernels=sum(tally.num_calls.values()) / num_steps,
        names_sha256=hashlib.sha256("\n".join(sorted(names)).encode()).hexdigest(),
        kernels=tuple(
            KernelUse(
                name=name,
                num_calls=tally.num_calls[name] / num_steps,
                time_us=tally.time_us[name] / num_steps,
            )
            for name in names
        ),
    )


def attention_kernels(runs: Iterable[KernelRun]) -> tuple[str, ...]:
    """Names of kernels (CPU: ops) that are fused attention, to verify which backend ran."""
    names = {use.name for run in runs for use in run.kernels}
    return tuple(sorted(name for name in names if _ATTENTION.search(name)))


def trace_events(profiler: profile) -> list[dict[str, Any]]:
    """The complete events of a finished profile, in the public trace format."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        # Names come from user code and may hold any bytes.
        document = json.loads(path.read_text(encoding="utf-8", errors="replace"), strict=False)
    return [event for event in document["traceEvents"] if event.get("ph") == "X"]


def device_uses(events: Iterable[dict[str, Any]], *, on_gpu: bool) -> list[tuple[str, float]]:
    """Name and duration in microseconds of each kernel, copy and fill; on a CPU of each top-level op."""
    if on_gpu:
        return [(str(e["name"]), float(e["dur"])) for e in events if e.get("cat") in DEVICE_CATEGORIES]
    return _top_level_ops(events)


def _top_level_ops(events: Iterable[dict[str, Any]]) -> list[tuple[str, float]]:
    """Outermost ops on each thread.

    The wrappers of autograd and of Dynamo are looked through: what runs inside them is counted, what
    they need for themselves is not.
    """
    ops = [e for e in events if e.get("cat") == "cpu_op" and _is_op(str(e["name"]))]
    ops.sort(key=lambda e: (str(e["tid"]), float(e["ts"]), -float(e["dur"])))
    outermost, thread, end = [], "", 0.0
    for op in ops:
        if str(op["tid"]) == thread and float(op["ts"]) < end:
            continue
        thread, end = str(op["tid"]), float(op["ts"]) + float(op["dur"])
        outermost.append((str(op["name"]), float(op["dur"])))
    return outermost


def _is_op(name: str) -> bool:
    if name.startswith(COMPILED_CALL):
        return True
    return "::" in name and not name.startswith(("autograd::", "torch::autograd::"))


def _activity(device: torch.device) -> ProfilerActivity:
    return ProfilerActivity.CUDA if device.type == "cuda" else ProfilerActivity.CPU


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
