"""The messages with which a trace is refused: what is wrong, where, and what to do."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from perfkit.errors import PerfkitError

_BYTE = re.compile(r"\(byte (\d+)\)")
_DOCTOR = "Run `perfkit trace doctor {}` to see what is wrong and whether it can be repaired."


def malformed(path: Path, error: msgspec.DecodeError, *, offset: int = 0) -> PerfkitError:
    """The JSON is damaged. `offset` is where the text that was being decoded begins in the file."""
    text = _BYTE.sub(lambda match: f"(byte {int(match[1]) + offset})", str(error))
    return PerfkitError(f"Cannot read {path}.", why=f"The JSON is damaged: {text}.", do=_DOCTOR.format(path))


def error_byte(error: msgspec.DecodeError) -> int | None:
    """Where in the decoded text msgspec stopped; None when it does not say (truncated, wrong type)."""
    match = _BYTE.search(str(error))
    return int(match[1]) if match else None


def cannot_unpack(path: Path, error: Exception) -> PerfkitError:
    """The file cannot be opened, or its gzip data is damaged."""
    if isinstance(error, OSError) and error.errno is not None:
        why, do = f"{error.strerror}.", "Give the path of a profiler trace (.json or .json.gz)."
    else:
        why, do = f"The gzip data is damaged ({error}).", _DOCTOR.format(path)
    return PerfkitError(f"Cannot read {path}.", why=why, do=do)


def not_utf8(path: Path, position: int) -> PerfkitError:
    """A byte sequence near `position` is not UTF-8."""
    return PerfkitError(
        f"Cannot read {path}.", why=f"It is not UTF-8 text (near byte {position}).", do=_DOCTOR.format(path)
    )


def not_a_trace(path: Path) -> PerfkitError:
    """Legal JSON of another kind."""
    return PerfkitError(
        f"Cannot read {path}.",
        why="It is JSON, but neither an object with `traceEvents` nor a list of events.",
        do="Give a trace that torch.profiler exported (export_chrome_trace).",
    )
