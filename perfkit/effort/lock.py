"""One perfkit process per effort: a lock file that names its holder and dies with it."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from perfkit.errors import PerfkitError


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds the lock at `path` for the duration of the block.

    The kernel's lock (flock) decides, so a holder that was killed leaves nothing to clean up; the text in the
    file (pid and start time) is for the message alone. Child processes do not inherit the lock.

    Raises:
        PerfkitError: another live process holds it.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(handle, 200, 0).decode(errors="replace").strip() or "an unnamed process"
            raise PerfkitError(
                f"Another perfkit is working in {path.parent}.",
                why=f"Its lock is held by {holder}.",
                do="Wait for it to end, or choose another folder with --effort or --out.",
            ) from None
        started = datetime.now().astimezone().isoformat(timespec="seconds")
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"pid {os.getpid()}, started {started}\n".encode(), 0)
        yield
        os.ftruncate(handle, 0)
    finally:
        os.close(handle)
