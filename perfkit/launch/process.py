"""Spawns a child in its own session, and ends it together with everything that it started."""

from __future__ import annotations

import contextlib
import io
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from perfkit.errors import PerfkitError
from perfkit.launch.environment import MARKER

_CLEANUP_LIMIT_S = 20.0
"""How long the guardian may take to end all descendants and to remove the scratch folder."""
_KERNEL_LIMIT_S = 30.0
"""How long the kernel may take to let go of a killed process; with a hung device driver it never does."""


@dataclass(frozen=True, slots=True)
class ChildEnds:
    """The descriptors that a child inherits."""

    result_fd: int
    """Where the reply goes."""
    lifeline_fd: int
    """Its end of file tells the guardian that the parent is gone, or wants everything gone."""
    all_clear_fd: int
    """Held open by the guardian until its work is done."""


@dataclass(frozen=True, slots=True)
class Child:
    """A running child, and what its parent waits on."""

    process: subprocess.Popen[bytes]
    marker: str
    result_fd: int
    exit_fd: int
    """Becomes readable when the child ended."""
    _seen: set[int] = field(default_factory=set)

    def owns(self, pid: int) -> bool:
        """Whether a process is the child or descends from it; stays True after that process ended."""
        if pid not in self._seen and (_in_session(pid, self.process.pid) or _carries(pid, self.marker)):
            self._seen.add(pid)
        return pid in self._seen


@contextlib.contextmanager
def child_process(
    command: Callable[[ChildEnds], list[str]], *, environment: Mapping[str, str], log_file: Path
) -> Iterator[Child]:
    """Runs a child for as long as the block lasts; nothing that it started outlives the block.

    Raises:
        PerfkitError: the process cannot be started, or the kernel does not let it end.
    """
    with contextlib.ExitStack() as stack:
        result, reply_end = _pipe(stack)
        lifeline_end, lifeline = _pipe(stack)
        all_clear, all_clear_end = _pipe(stack)
        handed = (reply_end, lifeline_end, all_clear_end)
        ends = ChildEnds(*(end.fileno() for end in handed))
        process = _spawn(command(ends), environment=environment, log_file=log_file, ends=ends)
        try:
            for end in handed:
                end.close()
            yield Child(process, environment[MARKER], result.fileno(), _exit_fd(process.pid, stack))
        finally:
            lifeline.close()
            _end(process, all_clear)


def _pipe(stack: contextlib.ExitStack) -> tuple[io.FileIO, io.FileIO]:
    """The read end and the write end of a pipe; the stack closes those that are still open."""
    read_fd, write_fd = os.pipe()
    return (
        stack.enter_context(io.FileIO(read_fd, "rb")),
        stack.enter_context(io.FileIO(write_fd, "wb")),
    )


def _spawn(
    command: list[str], *, environment: Mapping[str, str], log_file: Path, ends: ChildEnds
) -> subprocess.Popen[bytes]:
    try:
        with log_file.open("wb") as log:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                pass_fds=(ends.result_fd, ends.lifeline_fd, ends.all_clear_fd),
                start_new_session=True,
            )
    except OSError as error:
        raise PerfkitError(
            "Cannot start the process of a slot.",
            why=f"{error}.",
            do=f"Check free memory, the process limit (ulimit -u) and the space at {log_file.parent}.",
        ) from error


def _exit_fd(pid: int, stack: contextlib.ExitStack) -> int:
    """A descriptor that becomes readable when our child `pid` ends; the stack closes it."""
    if sys.platform == "linux":
        return stack.enter_context(io.FileIO(os.pidfd_open(pid), "rb")).fileno()
    queue = select.kqueue()
    stack.callback(queue.close)
    queue.control([select.kevent(pid, select.KQ_FILTER_PROC, select.KQ_EV_ADD, select.KQ_NOTE_EXIT)], 0)
    return queue.fileno()


def _end(process: subprocess.Popen[bytes], all_clear: io.FileIO) -> None:
    """Waits for the guardian, kills what is left of the group, and only then reaps.

    Until it is reaped, the child's pid keeps the group's number from being given to strangers.
    """
    waiting = select.poll()
    waiting.register(all_clear, select.POLLIN)
    waiting.poll(_CLEANUP_LIMIT_S * 1000)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    try:
        process.wait(_KERNEL_LIMIT_S)
    except subprocess.TimeoutExpired as error:
        raise PerfkitError(
            f"Process {process.pid} of a slot does not end.",
            why="It was killed, but the kernel still holds it, as it does when a device driver hangs.",
            do="Look at dmesg and nvidia-smi; the machine may need a restart.",
        ) from error


def _in_session(pid: int, leader: int) -> bool:
    try:
        return os.getsid(pid) == leader
    except OSError:
        return False


def _carries(pid: int, marker: str) -> bool:
    try:
        return f"{MARKER}={marker}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False
