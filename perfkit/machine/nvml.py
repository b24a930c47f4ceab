"""The NVML library behind one door: opened when there is one, and a reason when there is none."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")

SLOWDOWN_BITS = {
    "hardware slowdown": "HwSlowdown",
    "software thermal slowdown": "SwThermalSlowdown",
    "hardware thermal slowdown": "HwThermalSlowdown",
    "hardware power brake": "HwPowerBrakeSlowdown",
}
"""Clock event reasons that spoil a measurement. The software power cap and application clocks are not
among them: they are how a healthy GPU runs under load."""


class NvmlUnavailable(Exception):  # noqa: N818 - a state of the machine, handled by every caller, not a fault
    """There is no NVML here, or it refuses to start; the message says why."""


@dataclass(frozen=True, slots=True)
class Nvml:
    """An initialised NVML (the pynvml module, or a stand-in with the same functions)."""

    bindings: Any

    def ask(self, query: Callable[..., T], *arguments: Any) -> T | None:
        """The answer of one query, or None where this GPU or driver does not support it."""
        try:
            return query(*arguments)
        except self.bindings.NVMLError:
            return None

    def handle(self, index: int) -> Any:
        """The device of that NVML index.

        Raises:
            NvmlUnavailable: there is no such device, or it fell off the bus.
        """
        try:
            return self.bindings.nvmlDeviceGetHandleByIndex(index)
        except self.bindings.NVMLError as error:
            raise NvmlUnavailable(f"NVML knows no GPU {index} ({error})") from error

    def process_ids(self, handle: Any) -> tuple[int, ...] | None:
        """Processes with a compute context on the device; None where the driver does not tell."""
        found = self.ask(self.bindings.nvmlDeviceGetComputeRunningProcesses, handle)
        return None if found is None else tuple(int(process.pid) for process in found)

    def slowdown_reasons(self, handle: Any) -> tuple[str, ...]:
        """Which of SLOWDOWN_BITS are set now."""
        bindings = self.bindings
        mask = self.ask(bindings.nvmlDeviceGetCurrentClocksThrottleReasons, handle) or 0
        return tuple(
            words
            for words, name in SLOWDOWN_BITS.items()
            if mask & int(getattr(bindings, f"nvmlClocksThrottleReason{name}"))
        )

    def sm_clock_mhz(self, handle: Any) -> int | None:
        """SM clock now."""
        return self.ask(self.bindings.nvmlDeviceGetClockInfo, handle, self.bindings.NVML_CLOCK_SM)

    def temperature_c(self, handle: Any) -> int | None:
        """Temperature of the GPU die."""
        bindings = self.bindings
        return self.ask(bindings.nvmlDeviceGetTemperature, handle, bindings.NVML_TEMPERATURE_GPU)


@contextlib.contextmanager
def open_nvml(bindings: Any | None = None) -> Iterator[Nvml]:
    """NVML between its init and its shutdown.

    Args:
        bindings: a stand-in for pynvml.

    Raises:
        NvmlUnavailable: no NVIDIA driver here, or one that does not answer.
    """
    bindings = _pynvml() if bindings is None else bindings
    try:
        bindings.nvmlInit()
    except bindings.NVMLError as error:
        raise NvmlUnavailable(f"NVML does not start: {error}") from error
    try:
        yield Nvml(bindings)
    finally:
        with contextlib.suppress(bindings.NVMLError):
            bindings.nvmlShutdown()


def _pynvml() -> Any:
    import pynvml

    return pynvml


def as_text(value: str | bytes | None) -> str:
    """NVML strings: bytes in old bindings, text in new ones, absent where not supported."""
    if value is None:
        return ""
    return value.decode() if isinstance(value, bytes) else value
