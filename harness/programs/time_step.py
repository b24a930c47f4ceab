"""Times one subject on one case: launch, CUDA graph, kernels, memory, compile cost."""

from __future__ import annotations

from pathlib import Path

from perfkit.wire.environment import Environment
from perfkit.wire.payloads import StepTimes
from perfkit.wire.spec import Spec

from .. import environment
from ..assemble import assemble
from ..kernel_step import KernelStep
from ..step import LayerStep
from ..time_kernel import time_kernel
from ..time_layer import time_layer


def run(spec: Spec, *, slot_dir: Path) -> tuple[StepTimes, Environment]:
    """Measures the spec's subject; leaves no file.

    Raises:
        PerfkitError: the target breaks its contract, or cannot be timed honestly.
    """
    _, times, found = measure(spec)
    return times, found


def measure(spec: Spec) -> tuple[LayerStep | KernelStep, StepTimes, Environment]:
    """The measurement, and the warm step that it leaves behind."""
    environment.settle(spec)
    step = assemble(spec)
    times = time_kernel(step, spec) if isinstance(step, KernelStep) else time_layer(step, spec)
    found = environment.read_environment(spec, device=step.target.device, target_file=step.target.file)
    return step, times, found
