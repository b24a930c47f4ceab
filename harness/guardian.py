"""A tiny process that ends everything a child started, once the parent is gone or asks for it.

It is forked before torch is loaded, leaves the child's session, and blocks on the lifeline, whose other
end only the parent holds. It outlives a kill -9 of the parent, of the child and of both. A descendant
is known by its session, its ancestry or the marker in its environment; the marker also finds those that
took a session of their own and whose parents are dead.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Set
from pathlib import Path
from typing import NamedTuple, NoReturn

_PATIENCE_S = 15.0
"""Give up on processes that the kernel does not let go, as with a hung device driver."""
_FIRST_PAUSE_S = 0.001
_LONGEST_PAUSE_S = 0.1
_GONE = "ZX"


class Quarry(NamedTuple):
    """Whom a guardian looks for."""

    leader: int
    """Pid of the child, which leads its own session and group."""
    born: int
    """When the child started; nothing older can descend from it."""
    marker: bytes
    """`NAME=value`, in the environment of every descendant."""


class Process(NamedTuple):
    """One line of /proc."""

    pid: int
    state: str
    parent: int
    group: int
    session: int
    started: int
    """Clock ticks since boot; with the pid it names a process for good."""


def start(*, lifeline_fd: int, all_clear_fd: int, other_fd: int, marker: bytes, scratch: str) -> None:
    """Forks the guardian of this process, and closes the two descriptors that only it needs.

    `other_fd` is closed in the guardian; `scratch` is a folder to remove at the end. It is forked
    twice, so that it is no child that the target could wait for or that a walk of the tree shows.

    Raises:
        RuntimeError: the system refuses another process.
    """
    quarry = Quarry(os.getpid(), _birth(os.getpid()), marker)
    middle = os.fork()
    if middle == 0:
        status = 1
        try:
            os.setsid()
            if os.fork() == 0:
                _detach(other_fd)
                _guard(quarry, lifeline_fd=lifeline_fd, scratch=scratch)
            status = 0
        finally:
            os._exit(status)
    if os.waitpid(middle, 0)[1] != 0:
        raise RuntimeError("the guardian process could not be started")
    os.close(lifeline_fd)
    os.close(all_clear_fd)


def end_descendants(leader: int) -> None:
    """Kills what descends from this process, as long as ancestry can still be seen.

    Once the child is gone, a process with a session of its own and an emptied environment is a stranger.
    The guardian is none of them: it was forked twice.
    """
    for pid in _with_offspring(_processes(), {leader}) - {leader}:
        _kill(pid)


def _detach(other_fd: int) -> None:
    """Drops the log and the result pipe, and ignores what a terminal or a job runner may send."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    os.close(other_fd)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nowhere, fd)
    os.close(nowhere)
    os.chdir("/")


def _guard(quarry: Quarry, *, lifeline_fd: int, scratch: str) -> NoReturn:
    """Waits for the lifeline to end, then cleans up; the all-clear is given by exiting."""
    try:
        while os.read(lifeline_fd, 1):
            pass
        _end_all(quarry)
        import shutil  # only now: its own imports would delay every start

        shutil.rmtree(scratch, ignore_errors=True)
    finally:
        os._exit(0)


def _end_all(quarry: Quarry) -> None:
    """Kills until a look around finds nobody: a process may fork while it is being looked for."""
    pause_s, deadline = _FIRST_PAUSE_S, time.monotonic() + _PATIENCE_S
    known: set[tuple[int, int]] = set()
    while time.monotonic() < deadline:
        alive = find_family(_processes(), quarry, known)
        known.update((p.pid, p.started) for p in alive)
        for process in alive:
            _kill(process.pid)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(quarry.leader, signal.SIGKILL)
        if not alive:
            return
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def find_family(processes: list[Process], quarry: Quarry, known: Set[tuple[int, int]]) -> list[Process]:
    """The living processes of the child's family, the child included and the guardian left out.

    `known` holds (pid, started) of members found before, whose ancestors may be gone by now.
    """
    candidates = [p for p in processes if p.started >= quarry.born and p.pid != os.getpid()]
    family = _with_offspring(candidates, {p.pid for p in candidates if _is_family(p, quarry, known)})
    return [p for p in candidates if p.pid in family and p.state not in _GONE]


def _with_offspring(processes: list[Process], pids: set[int]) -> set[int]:
    """The given pids, their children, the children of those, and so on."""
    family, fresh = set(pids), set(pids)
    while fresh:
        fresh = {p.pid for p in processes if p.parent in fresh} - family
        family |= fresh
    return family


def _is_family(process: Process, quarry: Quarry, known: Set[tuple[int, int]]) -> bool:
    return (
        quarry.leader in (process.pid, process.group, process.session)
        or (process.pid, process.started) in known
        or quarry.marker in _variables(process.pid)
    )


def _variables(pid: int) -> list[bytes]:
    """The `NAME=value` entries that a process was started with; none for other users' processes."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _processes() -> list[Process]:
    """All processes; none where there is no /proc, and the group alone is killed then."""
    proc = Path("/proc")
    entries = [entry.name for entry in proc.iterdir()] if proc.is_dir() else []
    found = []
    for name in entries:
        if name.isdigit() and (process := _look_at(int(name))) is not None:
            found.append(process)
    return found


def _look_at(pid: int) -> Process | None:
    """The fields of /proc/<pid>/stat (proc_pid_stat(5)); the command may hold spaces and brackets."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes().decode("ascii", "replace")
    except OSError:
        return None
    state, *numbers = text[text.rindex(")") + 1 :].split()
    parent, group, session = (int(n) for n in numbers[:3])
    return Process(pid, state, parent, group, session, started=int(numbers[18]))


def _birth(pid: int) -> int:
    process = _look_at(pid)
    return process.started if process is not None else 0
