"""The measurement of time_step, and then a trace of a few steps for people and for perfkit.trace."""

from __future__ import annotations

from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile, schedule

from perfkit.wire.environment import Environment
from perfkit.wire.payloads import StepTimes
from perfkit.wire.spec import Spec

from ..clocks import Call
from ..kernel_step import KernelStep
from .time_step import measure

TRACE_FILE = "trace.json.gz"


def run(spec: Spec, *, slot_dir: Path) -> tuple[StepTimes, Environment]:
    """Measures as time_step does, then writes `trace.json.gz` into the slot's folder.

    The trace holds input shapes and a ProfilerStep annotation around each step. Kernels: a step is the
    whole call (forward and backward where there is one), with a warm cache.
    """
    step, times, environment = measure(spec)
    call: Call = (lambda: step.call(step.directions[-1])) if isinstance(step, KernelStep) else step
    num_steps = spec.measure.num_profiled_steps
    trace_steps(call, device=step.target.device, num_steps=num_steps, path=slot_dir / TRACE_FILE)
    measured = {name: getattr(times, name) for name in times.__struct_fields__}
    return StepTimes(**measured | {"trace_file": TRACE_FILE, "num_traced_steps": num_steps}), environment


def trace_steps(call: Call, *, device: torch.device, num_steps: int, path: Path) -> None:
    """Writes a gzipped trace of `num_steps` calls that run back to back, after one that is not recorded."""
    activities = [ProfilerActivity.CPU]
    if device.type == "cuda":
        activities.append(ProfilerActivity.CUDA)
    with profile(
        activities=activities,
        schedule=schedule(wait=0, warmup=1, active=num_steps, repeat=1),
        on_trace_ready=lambda profiler: profiler.export_chrome_trace(str(path)),
        record_shapes=True,
    ) as profiler:
        for index in range(num_steps + 1):
            call()
            if device.type == "cuda" and index in (0, num_steps):
                torch.cuda.synchronize(device)
            profiler.step()
