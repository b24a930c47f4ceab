"""The checks that look at the GPU through NVML."""

from __future__ import annotations

import os

from perfkit.machine.finding import Check, CheckFunction
from perfkit.machine.state import MachineState
from perfkit.stats import format_bytes


def check_gpu(state: MachineState) -> Check:
    """Whether there is a GPU to measure on, and whether it can be watched."""
    if state.gpu is not None:
        gpu = state.gpu
        memory = f", {format_bytes(gpu.memory_bytes)}" if gpu.memory_bytes else ""
        found = f"{state.device} is {gpu.name}{memory}, driver {state.gpus.driver or 'unknown'}"
        return Check(name="GPU", state="good", found=found)
    if state.device != "cpu":
        return Check(
            name="GPU",
            state="warn",
            found=f"{state.device} is not watched: {state.gpus.why_not}",
            do="Make NVML available (libnvidia-ml.so.1), or nothing tells when others use the GPU.",
        )
    if state.gpus.gpus:
        return Check(name="GPU", state="good", found="the CPU was asked for; GPUs are left alone")
    why = f" ({state.gpus.why_not})" if state.gpus.why_not else ""
    return Check(
        name="GPU",
        state="warn",
        found=f"none{why}",
        do="Numbers hold for this CPU only; run on a GPU machine before drawing conclusions about one.",
    )


def check_processes(state: MachineState) -> Check | None:
    """Other processes on the GPU."""
    if state.gpu is None:
        return None
    if state.gpu.process_ids is None:
        return Check(
            name="GPU processes",
            state="warn",
            found="this driver does not list them",
            do="Make sure by other means that nobody else uses the GPU.",
        )
    others = [pid for pid in state.gpu.process_ids if pid != os.getpid()]
    if not others:
        return Check(name="GPU processes", state="good", found="none")
    pids = ", ".join(str(pid) for pid in others)
    return Check(
        name="GPU processes",
        state="bad",
        found=f"{len(others)} on the GPU (pid {pids})",
        do="Stop them, or choose another GPU with --device; slots beside them count as contaminated.",
    )


def check_slowdown(state: MachineState) -> Check | None:
    """Thermal and hardware slowdown."""
    if state.gpu is None:
        return None
    heat = "" if state.gpu.temperature_c is None else f" at {state.gpu.temperature_c} C"
    if not state.gpu.slowdown_reasons:
        return Check(name="GPU slowdown", state="good", found=f"none{heat}")
    return Check(
        name="GPU slowdown",
        state="bad",
        found=f"{', '.join(state.gpu.slowdown_reasons)}{heat}",
        do="Let the GPU cool down, or have its cooling and power supply looked at.",
    )


def check_clocks(state: MachineState) -> Check | None:
    """Clocks and persistence mode: facts that explain drift between the first and the later slots."""
    gpu = state.gpu
    if gpu is None or (gpu.sm_clock_mhz is None and gpu.persistence is None):
        return None
    clock = "unknown" if gpu.sm_clock_mhz is None else f"{gpu.sm_clock_mhz} MHz"
    most = "" if gpu.max_sm_clock_mhz is None else f" of at most {gpu.max_sm_clock_mhz} MHz"
    found = f"SM clock {clock}{most} now"
    if gpu.persistence is not False:
        return Check(name="GPU clocks", state="good", found=found)
    return Check(
        name="GPU clocks",
        state="warn",
        found=f"{found}; persistence mode is off",
        do="sudo nvidia-smi -pm 1 spares every fresh process the set-up of the driver.",
    )


GPU_CHECKS: tuple[CheckFunction, ...] = (check_gpu, check_processes, check_slowdown, check_clocks)
