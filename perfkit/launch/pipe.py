"""Reads a child's reply while waiting for its end, without trusting end-of-file."""

from __future__ import annotations

import os
import selectors
from collections.abc import Callable
from dataclasses import dataclass, field

_CHUNK_BYTES = 1 << 20
_LONGEST_WAIT_S = 1.0
"""A wait is cut into pieces, so that the limit holds where the clock and the kernel's timer disagree."""


@dataclass(frozen=True, slots=True)
class Collected:
    """What a child sent until it ended, or until its time ran out."""

    data: bytes
    timed_out: bool


@dataclass(slots=True)
class _Inbox:
    """The bytes read so far from a non-blocking pipe."""

    fd: int
    chunks: list[bytes] = field(default_factory=list)
    closed: bool = False

    def drain(self) -> None:
        """Reads what is there now, and notes the end of the pipe where it is seen."""
        while not self.closed:
            try:
                chunk = os.read(self.fd, _CHUNK_BYTES)
            except BlockingIOError:
                return
            self.chunks.append(chunk)
            self.closed = not chunk


def collect(result_fd: int, exit_fd: int, *, limit_s: float, clock: Callable[[], float]) -> Collected:
    """Everything that arrives on `result_fd` before `exit_fd` says that the child ended.

    The end of the child decides, not the end of the pipe: a grandchild may hold the pipe for ever, and
    a child may close it and live on. Whatever an ended child wrote lies in the pipe already, so one
    more reading without waiting gets all of it.
    """
    os.set_blocking(result_fd, False)
    inbox = _Inbox(result_fd)
    deadline = clock() + limit_s
    with selectors.DefaultSelector() as selector:
        selector.register(result_fd, selectors.EVENT_READ)
        selector.register(exit_fd, selectors.EVENT_READ)
        while (left_s := deadline - clock()) > 0:
            ready = {key.fd for key, _ in selector.select(min(left_s, _LONGEST_WAIT_S))}
            inbox.drain()
            if exit_fd in ready:
                return Collected(b"".join(inbox.chunks), timed_out=False)
            if inbox.closed and result_fd in ready:
                selector.unregister(result_fd)
    return Collected(b"".join(inbox.chunks), timed_out=True)
