"""The one place where an exception becomes a message and an exit code."""

from __future__ import annotations

import errno
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import Any

from perfkit.errors import ExitCode, PerfkitError
from perfkit.places import cache_dir

_FULL = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)


class Terminated(BaseException):
    """SIGTERM arrived. Not an Exception, so that only `finally` blocks see it on its way out."""


def raise_on_sigterm() -> None:
    """Lets SIGTERM unwind the stack, so that children end and files close; a second one ends at once."""

    def handle(signum: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        raise Terminated

    signal.signal(signal.SIGTERM, handle)


def run_guarded(app: Callable[..., Any], args: Sequence[str]) -> int:
    """Runs the Typer app on these arguments and returns the exit code, whatever happens inside."""
    from perfkit.cli.ui import show_error, show_line

    try:
        code = int(app(args=list(args), prog_name="perfkit", standalone_mode=False) or ExitCode.GOOD)
    except PerfkitError as error:
        show_error(error)
        return error.exit_code
    except _typer_errors() as error:
        shown: Any = error
        shown.show()
        return int(shown.exit_code)
    except Terminated:
        show_line("terminated; run the same command to continue")
        return ExitCode.TERMINATED
    except Exception as error:  # noqa: BLE001 - the boundary: every failure leaves as a message
        show_error(_explained(error))
        if "--debug" in args:
            show_line(traceback.format_exc())
        return ExitCode.FAILED
    if code == ExitCode.INTERRUPTED:
        # Typer turns KeyboardInterrupt into this code and says nothing.
        show_line("interrupted; run the same command to continue")
    return code


def _typer_errors() -> type[Exception]:
    """The class of Typer's errors that print themselves: usage, where to find help, what is wrong.

    It is ClickException of the Click inside Typer, which has no public name in every version we allow; an
    ancestor of BadParameter, which has.
    """
    from typer import BadParameter

    return next(kind for kind in reversed(BadParameter.__mro__) if hasattr(kind, "show"))


def _explained(error: Exception) -> PerfkitError:
    if isinstance(error, OSError) and error.errno in _FULL:
        return PerfkitError(
            f"Cannot write {error.filename or 'a file'}.",
            why="The disk is full.",
            do="Free some space and run the same command: it continues where it stopped.",
        )
    if isinstance(error, OSError) and error.errno in _FORBIDDEN:
        return PerfkitError(
            f"Cannot use {error.filename or 'a file'}.",
            why=f"{error.strerror}.",
            do="Change its permissions, or choose another folder with --out.",
        )
    return PerfkitError(
        "Something went wrong inside perfkit.",
        why=f"{type(error).__name__}: {' '.join(str(error).split())[:500]}",
        do=f"This is a fault of perfkit. {_logged()}",
    )


def _logged() -> str:
    """Writes the traceback to a log file and says where. Failing at that must not hide the error itself."""
    text = f"perfkit {' '.join(sys.argv[1:])}\n\n{traceback.format_exc()}"
    stamp = datetime.now().astimezone().strftime("%Y%m%dT%H%M%S")
    path = cache_dir() / "crashes" / f"{stamp}-{os.getpid()}.log"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text)
    except OSError as problem:
        return f"Its log could not be written to {path} ({problem.strerror}): run again with --debug."
    return f"Please report it together with {path}."
