"""Polls one GPU while a slot runs: who else is on it, and whether it kept its clocks."""

from __future__ import annotations

import contextlib
import statistics
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

from perfkit.machine.nvml import Nvml, NvmlUnavailable, open_nvml
from perfkit.machine.pids import PidSorter, sees_host_pids
from perfkit.wire.results import Watch

POLL_INTERVAL_S = 0.25
"""Short enough to meet a foreign process in any slot; a poll costs NVML about a millisecond."""


def _pid_exists(pid: int) -> bool:
    import psutil

    return bool(psutil.pid_exists(pid))


class NvmlWatch:
    """Watches the GPU of one NVML index between `__enter__` and `__exit__`, in a thread of its own.

    The first poll happens inside `__enter__` and the last inside `__exit__`, so even the shortest slot
    is polled twice. Without NVML the report says "not watched", and why.
    """

    def __init__(
        self,
        device_index: int,
        *,
        pid_is_ours: Callable[[int], bool],
        interval_s: float = POLL_INTERVAL_S,
        bindings: Any | None = None,
        wait: Callable[[float], bool] | None = None,
        pid_exists: Callable[[int], bool] = _pid_exists,
        host_pids: bool | None = None,
    ) -> None:
        """Prepares the watch; nothing is opened yet.

        Args:
            device_index: NVML index, see `perfkit.machine.device.find_gpu`.
            bindings: a stand-in for pynvml.
            wait: waits for so many seconds and says whether to stop; by default a real wait.
            host_pids: whether process ids here are those of the host; found out by default.
        """
        self._device_index = device_index
        self._interval_s = interval_s
        self._bindings = bindings
        self._stop = threading.Event()
        self._wait = wait or self._stop.wait
        self._pids = PidSorter(
            pid_is_ours=pid_is_ours,
            pid_exists=pid_exists,
            host_pids=sees_host_pids() if host_pids is None else host_pids,
        )
        self._resources = contextlib.ExitStack()
        self._thread: threading.Thread | None = None
        self._why_not = ""
        self._num_polls = 0
        self._lists_processes = True
        self._busy_clocks_mhz: list[int] = []
        self._temperatures_c: list[int] = []
        self._slowdown_reasons: dict[str, None] = {}

    def __enter__(self) -> NvmlWatch:
        """Polls once and starts the thread."""
        try:
            nvml = self._resources.enter_context(open_nvml(self._bindings))
            handle = nvml.handle(self._device_index)
        except NvmlUnavailable as error:
            self._resources.close()
            self._why_not = str(error)
            return self
        self._poll(nvml, handle)
        self._thread = threading.Thread(target=self._run, args=(nvml, handle), name="nvml-watch", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """Ends the thread, which polls a last time, and waits for it."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self._resources.close()

    def report(self) -> Watch:
        """What was seen."""
        if self._why_not:
            return Watch(watched=False, why_not=self._why_not)
        return Watch(
            watched=True,
            why_not="" if self._lists_processes else "this driver does not list the processes of the GPU",
            num_polls=self._num_polls,
            foreign_pids=self._pids.foreign,
            sm_clock_mhz=_low_middle_high(self._busy_clocks_mhz),
            temperature_c=_low_middle_high(self._temperatures_c),
            slowdown_reasons=tuple(self._slowdown_reasons),
        )

    def _run(self, nvml: Nvml, handle: Any) -> None:
        stopped = False
        while not stopped:
            stopped = self._wait(self._interval_s)
            self._poll(nvml, handle)

    def _poll(self, nvml: Nvml, handle: Any) -> None:
        pids = nvml.process_ids(handle)
        self._lists_processes = self._lists_processes and pids is not None
        self._pids.see(pids or ())
        self._slowdown_reasons.update(dict.fromkeys(nvml.slowdown_reasons(handle)))
        utilization = nvml.ask(nvml.bindings.nvmlDeviceGetUtilizationRates, handle)
        clock = nvml.sm_clock_mhz(handle)
        # An idle GPU lowers its clock by itself; that says nothing about the measurement.
        if clock is not None and utilization is not None and utilization.gpu > 0:
            self._busy_clocks_mhz.append(clock)
        if (temperature := nvml.temperature_c(handle)) is not None:
            self._temperatures_c.append(temperature)
        self._num_polls += 1


def watch_device(device_index: int) -> Callable[[Callable[[int], bool]], NvmlWatch]:
    """The factory that `perfkit.launch.run_slot` takes: `pid_is_ours` -> a watch of that NVML index."""

    def start(pid_is_ours: Callable[[int], bool]) -> NvmlWatch:
        return NvmlWatch(device_index, pid_is_ours=pid_is_ours)

    return start


def _low_middle_high(values: list[int]) -> tuple[int, ...]:
    if not values:
        return ()
    return min(values), round(statistics.median(values)), max(values)
