"""Whole-line appends, and reading only what was appended whole."""

from __future__ import annotations

import os
from pathlib import Path


def append_line(path: Path, line: bytes) -> None:
    """Appends one line and its newline; a torn line that a killed writer left behind is cut off first.

    Raises:
        OSError: the disk is full or the file read-only; the file ends where it ended before.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        end = _end_of_whole_lines(handle)
        os.ftruncate(handle, end)
        os.lseek(handle, end, os.SEEK_SET)
        try:
            _write_all(handle, line + b"\n")
            os.fsync(handle)
        except OSError:
            os.ftruncate(handle, end)
            raise
    finally:
        os.close(handle)


def whole_lines(path: Path) -> list[bytes]:
    """The complete lines of a file, without newlines; a torn last line is left out, no file has none."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return []
    return [line for line in data.split(b"\n")[:-1] if line.strip()]


def _write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def _end_of_whole_lines(handle: int) -> int:
    position = os.fstat(handle).st_size
    chunk_size = 1 << 16
    while position > 0:
        start = max(0, position - chunk_size)
        chunk = os.pread(handle, position - start, start)
        newline = chunk.rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        position = start
    return 0
