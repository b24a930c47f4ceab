"""Tells the slot's own processes on a GPU from foreign ones, inside containers too."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

INITIAL_PID_NAMESPACE = "pid:[4026531836]"
"""Inode of the host's own pid namespace: PROC_PID_INIT_INO in the kernel's include/linux/proc_ns.h."""


def sees_host_pids() -> bool:
    """Whether process ids mean the same here as on the host, which is where NVML takes them from."""
    try:
        return str(Path("/proc/self/ns/pid").readlink()) == INITIAL_PID_NAMESPACE
    except OSError:
        return True


class PidSorter:
    """Sorts the process ids of one GPU over the life of one slot, poll after poll.

    On the host the answer is plain: a process that does not belong to the slot is foreign. In a
    container NVML may report ids of the host, which name nobody here. There, an unknown id that was on
    the GPU before the slot reached it is foreign; the first unknown id that appears later is taken for
    the slot itself, and any further one is foreign.
    """

    def __init__(
        self,
        *,
        pid_is_ours: Callable[[int], bool],
        pid_exists: Callable[[int], bool],
        host_pids: bool,
    ) -> None:
        self._pid_is_ours = pid_is_ours
        self._pid_exists = pid_exists
        self._host_pids = host_pids
        self._ours: set[int] = set()
        self._foreign: list[int] = []
        self._num_polls = 0

    @property
    def foreign(self) -> tuple[int, ...]:
        """In the order in which they were seen."""
        return tuple(self._foreign)

    def see(self, pids: Iterable[int]) -> None:
        """Takes one poll into account; the first poll must come before the slot reaches the GPU."""
        for pid in pids:
            if pid in self._ours or pid in self._foreign:
                continue
            # An id once known as ours stays ours: the driver lists a process for a moment after its end.
            if self._pid_is_ours(pid) or self._stands_for_ours(pid):
                self._ours.add(pid)
            elif self._pid_exists(pid) or not self._host_pids:
                self._foreign.append(pid)
        self._num_polls += 1

    def _stands_for_ours(self, pid: int) -> bool:
        if self._host_pids or self._pid_exists(pid):
            return False
        return self._num_polls > 0 and not self._ours
