"""Runs one program in a fresh process and sends exactly one reply, whatever the target does."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from pathlib import Path
from typing import NoReturn

from perfkit.wire.codec import decode, encode
from perfkit.wire.results import CLOSED_PIPE_EXIT, Reply
from perfkit.wire.spec import Spec

from .failures import describe
from .guardian import end_descendants


class ResultPipe:
    """The write end of the private pipe, which forked children lose and which can be used once."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._owner = os.getpid()
        self._identity = _identity(fd)
        os.register_at_fork(after_in_child=self._close)

    def send(self, reply: bytes) -> None:
        """Writes the whole reply and closes the pipe.

        Raises:
            OSError: the target closed the descriptor, or put another file in its place.
        """
        if os.getpid() != self._owner or _identity(self._fd) != self._identity:
            raise OSError("the result pipe is gone")
        left = memoryview(reply)
        while left:
            left = left[os.write(self._fd, left) :]
        self._close()

    def _close(self) -> None:
        with contextlib.suppress(OSError):
            if _identity(self._fd) == self._identity:
                os.close(self._fd)


def main(*, slot_dir: Path, result_fd: int) -> NoReturn:
    """Reads `spec.json`, runs its program, replies, and leaves at once."""
    leader = os.getpid()
    pipe = ResultPipe(result_fd)
    spec = decode((slot_dir / "spec.json").read_bytes(), Spec)
    status = CLOSED_PIPE_EXIT
    try:
        pipe.send(_answer(spec, slot_dir))
        status = 0
    finally:
        _leave(status, leader)


def _leave(status: int, leader: int) -> NoReturn:
    """Ends the process so that no atexit hook, thread or native library of the target has a say."""
    try:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        if os.getpid() == leader:
            end_descendants(leader)
    finally:
        os._exit(status)


def _answer(spec: Spec, slot_dir: Path) -> bytes:
    """The encoded reply: what the program answered or what it raised, sys.exit() included."""
    try:
        program = importlib.import_module(f".programs.{spec.program}", __package__)
        payload, environment = program.run(spec, slot_dir=slot_dir)
        return encode(Reply(payload=payload, environment=environment))
    except BaseException as error:  # noqa: BLE001 - the boundary: nothing may end without a reply
        return encode(Reply(failure=describe(error)))


def _identity(fd: int) -> tuple[int, int]:
    found = os.fstat(fd)
    return found.st_dev, found.st_ino
