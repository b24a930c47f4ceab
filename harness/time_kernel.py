"""Times one provider of a kernel: forward, backward and both, with a cold and with a warm cache."""

from __future__ import annotations

from typing import Any

from perfkit.errors import PerfkitError
from perfkit.wire.payloads import Direction, StepTimes, Work
from perfkit.wire.spec import Case, Spec

from .assemble import compiles
from .calling import call_with_case
from .capture import Results, WholeStep
from .checksum import position_weighted_sum
from .clocks import clock_for
from .kernel_bench import KernelBench
from .kernel_step import KernelStep
from .kernels_seen import attention_kernels
from .memory import storage_bytes
from .nonfinite import check_results
from .seeding import seed_everything
from .tensors import DTYPES, digest_state, named_tensors
from .time_layer import start_libraries
from .torch_private import count_interpreted_launches
from .trees import num_graphs, require_graphs


def time_kernel(step: KernelStep, spec: Spec) -> StepTimes:
    """Measures every direction of one provider.

    CUDA: each call starts with the L2 flushed (cold) or as the call before left it (warm), and the GPU
    is held back until the host has enqueued the whole call, so a launch time is the time from its first
    kernel to its last on the GPU, plus what lies between two events with nothing between them. CPU:
    host time, warm. Backward's forward, and clearing gradients, are outside every number.

    Raises:
        PerfkitError: Triton's interpreter would be timed, the provider is not installed, nothing was
            compiled, or a result holds NaN or infinity.
    """
    device, measure = step.target.device, spec.measure
    inputs_sha256 = digest_state(None, step.inputs)
    start_libraries(device)
    _refuse_interpreter(step, spec)
    bench = KernelBench(step=step, spec=spec, device=device, clock=clock_for(device))
    warm = bench.warm_up()
    if compiles(spec):
        require_graphs(f"{step.target.name} as {spec.subject.label}")
    graphs = num_graphs()
    memory = bench.peak_memory()
    whole = _whole_step(step)
    seed_everything(measure.seed)
    results = whole.run()
    check_results(results, spec, step.target)
    output_sum = position_weighted_sum(tensor for _, tensor in results)
    working_set = storage_bytes([*whole.state, *(tensor for _, tensor in results)])
    del results
    step.clear_grads()
    timings = bench.launch_timings()
    stable = warm.stable and num_graphs() == graphs
    if device.type == "cuda" and measure.graph:
        timings += bench.graph_timings(whole)
    runs = tuple(bench.kernel_run(direction) for direction in step.directions)
    return StepTimes(
        timings=tuple(timings),
        kernel_runs=runs,
        peak_memory_bytes=memory.peak_bytes,
        resident_memory_bytes=memory.resident_bytes,
        num_graphs=graphs if compiles(spec) or graphs else None,
        cold_compile_s=None if step.provider == "eager" else warm.excess_s,
        num_warmup_steps=warm.num_steps,
        stable=stable,
        inputs_sha256=inputs_sha256,
        output_sum=output_sum,
        working_set_bytes=working_set,
        attention_kernels=attention_kernels(runs),
        work=declared_work(step, spec),
    )


def declared_work(step: KernelStep, spec: Spec) -> tuple[Work, ...]:
    """What the recipe's optional `work` says about this case, per direction that the provider has."""
    function = getattr(step.target.recipe_module, "work", None)
    if function is None or spec.case is None:
        return ()
    dtype = DTYPES[spec.dtype]
    case = Case(name=spec.case.name, values={**spec.case.values, "itemsize": dtype.itemsize})
    found = call_with_case(function, case=case, device=step.target.device, dtype=dtype)
    try:
        return tuple(_work_of(direction, found) for direction in step.directions if direction in found)
    except (TypeError, KeyError, ValueError) as error:
        raise PerfkitError(
            f"The function work of {step.target.file} returned something else than work.",
            why=f"Reading it failed with {type(error).__name__}: {error}.",
            do='Return {"forward": {"read": ..., "written": ..., "flops": ...}, ...}.',
        ) from error


def _work_of(direction: Direction, found: Any) -> Work:
    declared = found[direction]
    return Work(
        direction=direction,
        num_read_bytes=int(declared["read"]),
        num_written_bytes=int(declared["written"]),
        num_flops=int(declared["flops"]),
    )


def _whole_step(step: KernelStep) -> WholeStep:
    def run() -> Results:
        outputs = step.call(step.directions[-1])
        grads = [(name, grad) for name, grad in step.grads().items() if grad is not None]
        return [*named_tensors(outputs, "output"), *grads]

    inputs = tuple(tensor for _, tensor in named_tensors(step.inputs, ""))
    return WholeStep(run=run, clear=step.clear_grads, state=inputs, inputs=inputs)


def _refuse_interpreter(step: KernelStep, spec: Spec) -> None:
    """Triton's CPU interpreter shows what a kernel computes; its times say nothing about the kernel."""
    if step.target.device.type != "cpu" or step.provider in ("eager", "compile"):
        return
    with count_interpreted_launches() as launches:
        step.forward()
    if launches[0]:
        raise PerfkitError(
            f"{step.target.name} ({spec.subject.label}) is not timed on the CPU.",
            why="It is a Triton kernel, which runs there in Triton's interpreter only.",
            do="Measure it with --device cuda; on the CPU, perfkit verify checks its results.",
        )
