"""The one error class that users see, and the exit codes of the command line."""

from __future__ import annotations

import enum


class ExitCode(enum.IntEnum):
    """What a perfkit process ends with; see DESIGN of the command line in README.md."""

    GOOD = 0
    FAILED = 1
    USAGE = 2
    NEGATIVE = 3
    INCONCLUSIVE = 4
    INTERRUPTED = 130
    TERMINATED = 143


class PerfkitError(Exception):
    """A failure that the user can act on: what happened, why, and what to do about it.

    The three parts are sentences without a trailing newline. `do` comes last on the screen,
    because that is where the eye lands.
    """

    def __init__(self, what: str, *, why: str, do: str, exit_code: ExitCode = ExitCode.FAILED) -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.do = do
        self.exit_code = exit_code

    def __str__(self) -> str:
        return f"{self.what} {self.why} {self.do}"


class UsageError(PerfkitError):
    """The command line, a setting or a declaration is wrong; exit code 2."""

    def __init__(self, what: str, *, why: str, do: str) -> None:
        super().__init__(what, why=why, do=do, exit_code=ExitCode.USAGE)
