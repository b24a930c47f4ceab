"""Times a layer's step: launched, replayed from a CUDA graph, and by kernel."""

from __future__ import annotations

from typing import Any

import torch

from perfkit.wire.payloads import StepTimes, Timing
from perfkit.wire.spec import Spec

from .assemble import compiles
from .capture import Results, WholeStep
from .checksum import position_weighted_sum
from .clocks import Clock, clock_for, time_calls
from .cold_cache import calibrate
from .graph_timing import time_step_graph
from .kernels_seen import attention_kernels, profiled_run
from .memory import storage_bytes, watch_peak
from .nonfinite import check_results
from .seeding import seed_everything
from .step import LayerStep
from .tensors import digest_state, named_tensors
from .torch_private import gpu_sleep
from .trees import num_graphs, require_graphs
from .warm_up import warm_up

GPU_WARM_UP_S = 0.5
"""Least warm-up on a GPU: its clocks need some hundred milliseconds of load."""


def time_layer(step: LayerStep, spec: Spec) -> StepTimes:
    """Measures steps that run back to back (so caches are as warm as a loop of steps leaves them).

    The launch time of a step is what a loop of steps sees, host included; the graph time is without the
    host. `cold_compile_s` is what the first step and later compiling ones took beyond a steady one: it
    bounds compile time from above.

    Raises:
        PerfkitError: a compiled tree compiled nothing, or a step produced NaN or infinity.
    """
    device, measure = step.target.device, spec.measure
    clock: Clock[Any] = clock_for(device)
    inputs_sha256 = digest_state(step.module, step.inputs)
    start_libraries(device)
    warm = warm_up(
        step,
        clock=clock,
        num_graphs=num_graphs,
        num_steps=measure.num_warmup_steps,
        min_seconds=GPU_WARM_UP_S if device.type == "cuda" else 0.0,
    )
    if compiles(spec):
        require_graphs(f"{step.target.name} as {spec.subject.label}")
    graphs = num_graphs()
    step.clear_grads()
    with watch_peak(device) as memory:
        samples_us = time_calls(step, clock=clock, num_samples=measure.num_timed_steps)
    stable = warm.stable and num_graphs() == graphs
    timings = [
        Timing(
            direction=step.direction, launch="launch", cache="warm", samples_us=samples_us, clock=clock.name
        )
    ]
    whole = _whole_step(step)
    seed_everything(measure.seed)
    results = whole.run()
    check_results(results, spec, step.target)
    output_sum = position_weighted_sum(tensor for _, tensor in results)
    working_set = storage_bytes([*whole.state, *(tensor for _, tensor in results)])
    del results
    if device.type == "cuda" and measure.graph:
        timings.append(_graph_timing(whole, step, clock=clock, num_samples=measure.num_timed_steps))
    step.clear_grads()
    run = profiled_run(
        step, device=device, direction=step.direction, cache="warm", num_steps=measure.num_profiled_steps
    )
    return StepTimes(
        timings=tuple(timings),
        kernel_runs=(run,),
        peak_memory_bytes=memory.peak_bytes,
        resident_memory_bytes=memory.resident_bytes,
        num_graphs=graphs if compiles(spec) or graphs else None,
        cold_compile_s=warm.excess_s if compiles(spec) or graphs else None,
        num_warmup_steps=warm.num_steps,
        stable=stable,
        inputs_sha256=inputs_sha256,
        output_sum=output_sum,
        working_set_bytes=working_set,
        attention_kernels=attention_kernels([run]),
    )


def start_libraries(device: torch.device) -> None:
    """Loads what every first step would load (BLAS, the allocator's pool), to keep it out of compile time."""
    square = torch.ones(64, 64, device=device)
    (square @ square).sum().item()


def _whole_step(step: LayerStep) -> WholeStep:
    def run() -> Results:
        outputs = step()
        grads = [(name, grad) for name, grad in step.grads().items() if grad is not None]
        return [*named_tensors(outputs, "output"), *grads]

    inputs = tuple(tensor for _, tensor in named_tensors(step.inputs, ""))
    weights = (*step.module.parameters(), *step.module.buffers())
    return WholeStep(run=run, clear=step.clear_grads, state=(*weights, *inputs), inputs=inputs)


def _graph_timing(whole: WholeStep, step: LayerStep, *, clock: Clock[Any], num_samples: int) -> Timing:
    sleep = gpu_sleep()
    return time_step_graph(
        whole,
        direction=step.direction,
        device=step.target.device,
        clock=clock,
        num_samples=num_samples,
        hold_back=calibrate(sleep, clock=clock) if sleep is not None else None,
    )
