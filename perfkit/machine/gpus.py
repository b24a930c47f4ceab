"""Which GPUs this machine has and what they are doing, from NVML: no CUDA context is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from perfkit.machine.nvml import Nvml, NvmlUnavailable, as_text, open_nvml


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuState:
    """One GPU as NVML sees it now; None and "" where the driver does not tell."""

    index: int
    """NVML index, in PCI order; CUDA may number the same GPUs otherwise."""
    name: str
    uuid: str
    memory_bytes: int | None = None
    free_bytes: int | None = None
    process_ids: tuple[int, ...] | None = None
    slowdown_reasons: tuple[str, ...] = ()
    sm_clock_mhz: int | None = None
    max_sm_clock_mhz: int | None = None
    temperature_c: int | None = None
    persistence: bool | None = None
    utilization_percent: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpus:
    """All GPUs of this machine, or why they cannot be seen."""

    watched: bool
    why_not: str = ""
    driver: str = ""
    gpus: tuple[GpuState, ...] = ()


def list_gpus(bindings: Any | None = None) -> Gpus:
    """The GPUs in NVML order; `watched` is False, with the reason, where there is no NVML.

    Args:
        bindings: a stand-in for pynvml.
    """
    try:
        with open_nvml(bindings) as nvml:
            count = nvml.ask(nvml.bindings.nvmlDeviceGetCount) or 0
            return Gpus(
                watched=True,
                driver=as_text(nvml.ask(nvml.bindings.nvmlSystemGetDriverVersion)),
                gpus=tuple(_state(nvml, index) for index in range(count)),
            )
    except NvmlUnavailable as error:
        return Gpus(watched=False, why_not=str(error))


def _state(nvml: Nvml, index: int) -> GpuState:
    bindings, handle = nvml.bindings, nvml.handle(index)
    memory = nvml.ask(bindings.nvmlDeviceGetMemoryInfo, handle)
    persistence = nvml.ask(bindings.nvmlDeviceGetPersistenceMode, handle)
    utilization = nvml.ask(bindings.nvmlDeviceGetUtilizationRates, handle)
    return GpuState(
        index=index,
        name=as_text(nvml.ask(bindings.nvmlDeviceGetName, handle)),
        uuid=as_text(nvml.ask(bindings.nvmlDeviceGetUUID, handle)),
        memory_bytes=None if memory is None else int(memory.total),
        free_bytes=None if memory is None else int(memory.free),
        process_ids=nvml.process_ids(handle),
        slowdown_reasons=nvml.slowdown_reasons(handle),
        sm_clock_mhz=nvml.sm_clock_mhz(handle),
        max_sm_clock_mhz=nvml.ask(bindings.nvmlDeviceGetMaxClockInfo, handle, bindings.NVML_CLOCK_SM),
        temperature_c=nvml.temperature_c(handle),
        persistence=None if persistence is None else bool(persistence),
        utilization_percent=None if utilization is None else int(utilization.gpu),
    )
