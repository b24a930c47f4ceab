"""Toy slots for process tests: a harness folder with hostile programs, and bounded waits."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from perfkit.places import harness_dir
from perfkit.wire.spec import Case, Spec

_TOYS = Path(__file__).parent / "toy_harness" / "programs"
_LIMIT_S = 20.0


def toy_harness(folder: Path) -> Path:
    """The real harness files with the toy programs in place of the real ones."""
    folder.mkdir()
    for file in harness_dir().glob("*.py"):
        shutil.copy(file, folder)
    shutil.copytree(_TOYS, folder / "programs", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def toy_spec(behaviour: str) -> Spec:
    """A spec whose case names what the toy program does."""
    case = Case(name=behaviour, values={})
    return Spec(program="time_step", device="cpu", case=case, time_limit_s=60.0)


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Polls until the condition holds, and fails with `what` when it does not in time."""
    deadline = time.monotonic() + _LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, f"not within {_LIMIT_S:g} s: {what}"
        time.sleep(0.01)


def clock_that_ends_when(file: Path) -> Callable[[], float]:
    """A clock on which any time limit is over as soon as `file` is there, however slow the machine is."""
    return lambda: time.monotonic() + (1e9 if file.exists() else 0.0)


def read_pid(file: Path) -> int:
    """The pid that a toy left, as soon as it is there."""
    wait_until(file.exists, f"{file.name} appears")
    return int(file.read_text())


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie that nobody reaped does not."""
    try:
        return psutil.Process(pid).status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.NoSuchProcess:
        return False


def processes_of(folder: Path) -> list[str]:
    """Living processes that were started for a slot in `folder`, by their arguments or environment."""
    return [line for process in psutil.process_iter() if (line := _mentions(process, str(folder)))]


def _mentions(process: psutil.Process, text: str) -> str:
    if process.pid == os.getpid():
        return ""
    try:
        said = [*process.cmdline(), *process.environ().values()]
        alive = process.status() != psutil.STATUS_ZOMBIE
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return ""
    return f"{process.pid} {said[:4]}" if alive and any(text in word for word in said) else ""
