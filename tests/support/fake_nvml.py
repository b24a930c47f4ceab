"""A stand-in for the pynvml module: GPUs as plain data, changed between polls by the test."""

# ruff: noqa: N815 - the names are those of pynvml

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any


class FakeNvmlError(Exception):
    """Stands for pynvml.NVMLError."""


class FakeGpu:
    """One GPU; every attribute may be changed while it is watched, and None means "not supported"."""

    def __init__(self, name: str = "NVIDIA H200", uuid: str = "GPU-aaaa", **state: Any) -> None:
        self.name = name
        self.uuid = uuid
        self.pids: Sequence[int] | None = state.get("pids", ())
        self.reasons: int | None = state.get("reasons", 0)
        self.utilization: int | None = state.get("utilization", 0)
        self.clock_mhz: int | None = state.get("clock_mhz", 1980)
        self.temperature_c: int | None = state.get("temperature_c", 40)
        self.persistence: int | None = state.get("persistence", 1)


class FakeNvml:
    """Has the functions and constants of pynvml that perfkit.machine uses."""

    NVMLError = FakeNvmlError
    NVML_CLOCK_SM = 1
    NVML_TEMPERATURE_GPU = 0
    nvmlClocksThrottleReasonGpuIdle = 0x1
    nvmlClocksThrottleReasonSwPowerCap = 0x4
    nvmlClocksThrottleReasonHwSlowdown = 0x8
    nvmlClocksThrottleReasonSwThermalSlowdown = 0x20
    nvmlClocksThrottleReasonHwThermalSlowdown = 0x40
    nvmlClocksThrottleReasonHwPowerBrakeSlowdown = 0x80

    def __init__(self, *gpus: FakeGpu, why_not: str = "") -> None:
        self.gpus = gpus
        self.why_not = why_not
        self.num_open = 0

    def nvmlInit(self) -> None:
        if self.why_not:
            raise FakeNvmlError(self.why_not)
        self.num_open += 1

    def nvmlShutdown(self) -> None:
        self.num_open -= 1

    def nvmlSystemGetDriverVersion(self) -> bytes:
        return b"570.1"

    def nvmlDeviceGetCount(self) -> int:
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> FakeGpu:
        if index >= len(self.gpus):
            raise FakeNvmlError("Invalid Argument")
        return self.gpus[index]

    def nvmlDeviceGetName(self, gpu: FakeGpu) -> str:
        return gpu.name

    def nvmlDeviceGetUUID(self, gpu: FakeGpu) -> str:
        return gpu.uuid

    def nvmlDeviceGetMemoryInfo(self, gpu: FakeGpu) -> SimpleNamespace:
        return SimpleNamespace(total=141 * 2**30, free=140 * 2**30)

    def nvmlDeviceGetComputeRunningProcesses(self, gpu: FakeGpu) -> list[SimpleNamespace]:
        return [SimpleNamespace(pid=pid) for pid in _supported(gpu.pids)]

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, gpu: FakeGpu) -> int:
        return int(_supported(gpu.reasons))

    def nvmlDeviceGetUtilizationRates(self, gpu: FakeGpu) -> SimpleNamespace:
        return SimpleNamespace(gpu=_supported(gpu.utilization), memory=0)

    def nvmlDeviceGetClockInfo(self, gpu: FakeGpu, kind: int) -> int:
        return int(_supported(gpu.clock_mhz))

    def nvmlDeviceGetMaxClockInfo(self, gpu: FakeGpu, kind: int) -> int:
        return 1980

    def nvmlDeviceGetTemperature(self, gpu: FakeGpu, sensor: int) -> int:
        return int(_supported(gpu.temperature_c))

    def nvmlDeviceGetPersistenceMode(self, gpu: FakeGpu) -> int:
        return int(_supported(gpu.persistence))


def _supported(value: Any) -> Any:
    if value is None:
        raise FakeNvmlError("Not Supported")
    return value
