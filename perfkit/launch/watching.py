"""What `run_slot` asks of whoever watches the device while a slot runs."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Protocol

from perfkit.wire.results import Watch


class DeviceWatch(Protocol):
    """Polls a device in a thread of its own between `__enter__` and `__exit__`."""

    def __enter__(self) -> object:
        """Starts polling."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> bool | None:
        """Stops polling; returns only after the thread ended."""

    def report(self) -> Watch:
        """What was seen; asked for once, after `__exit__`."""
        ...


WatchFactory = Callable[[Callable[[int], bool]], DeviceWatch]
"""Receives `pid_is_ours`, which is True for the child and for every process that descends from it."""
