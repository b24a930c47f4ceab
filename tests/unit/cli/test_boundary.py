"""Every failure leaves as one message and the right exit code, without a traceback."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from perfkit.cli.boundary import Terminated
from perfkit.errors import ExitCode, PerfkitError, UsageError
from perfkit.places import cache_dir
from perfkit.stages.answer import StageReport
from perfkit.stages.request import StageRequest
from tests.support.command_line import CommandLine, Outcome


def failing(perfkit: CommandLine, error: BaseException, *flags: str) -> Outcome:
    def work(request: StageRequest, say: object) -> StageReport:
        request.progress(2, 5, "eager tiny")
        raise error

    perfkit.work = work
    outcome = perfkit("bench", "x", *flags)
    assert outcome.out == ""
    assert "--debug" in flags or "Traceback" not in outcome.err
    return outcome


def test_an_error_has_three_parts_in_order(perfkit: CommandLine) -> None:
    error = PerfkitError("It broke.", why="It was old [bold].", do="Buy a new one.")
    outcome = failing(perfkit, error, "-q")
    assert outcome.code == ExitCode.FAILED
    assert outcome.err == "perfkit: It broke.\n  It was old [bold].\n  Buy a new one.\n"


def test_a_usage_error_ends_with_2(perfkit: CommandLine) -> None:
    assert failing(perfkit, UsageError("a.", why="b.", do="c.")).code == ExitCode.USAGE


def test_ctrl_c_ends_with_130_and_says_how_to_continue(perfkit: CommandLine) -> None:
    outcome = failing(perfkit, KeyboardInterrupt())
    assert outcome.code == ExitCode.INTERRUPTED
    assert outcome.err.endswith("2 of 5 are done and kept\ninterrupted; run the same command to continue\n")


def test_sigterm_ends_with_143(perfkit: CommandLine) -> None:
    outcome = failing(perfkit, Terminated(), "-q")
    assert outcome.code == ExitCode.TERMINATED
    assert outcome.err == "terminated; run the same command to continue\n"


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (errno.ENOSPC, "Cannot write some/file.\n  The disk is full.\n"),
        (errno.EACCES, "Cannot use some/file.\n  Permission denied.\n"),
        (errno.EROFS, "Cannot use some/file.\n  Read-only file system.\n"),
    ],
)
def test_a_disk_that_refuses_is_no_fault_of_perfkit(perfkit: CommandLine, number: int, expected: str) -> None:
    import os

    outcome = failing(perfkit, OSError(number, os.strerror(number), "some/file"))
    assert outcome.code == ExitCode.FAILED
    assert expected in outcome.err
    assert not (cache_dir() / "crashes").exists()


def test_a_bug_is_logged_and_the_screen_names_the_log(perfkit: CommandLine) -> None:
    outcome = failing(perfkit, ValueError("boo\nhoo"), "-q")
    assert outcome.code == ExitCode.FAILED
    (log,) = (cache_dir() / "crashes").iterdir()
    assert "ValueError: boo\nhoo" in log.read_text()
    assert outcome.err == (
        "perfkit: Something went wrong inside perfkit.\n  ValueError: boo hoo\n"
        f"  This is a fault of perfkit. Please report it together with {log}.\n"
    )


def test_a_broken_pipe_inside_a_stage_is_not_taken_for_a_reader_who_left(perfkit: CommandLine) -> None:
    outcome = failing(perfkit, BrokenPipeError(errno.EPIPE, "Broken pipe"))
    assert outcome.code == ExitCode.FAILED
    assert "a pipe to a child process broke" in outcome.err


def test_debug_shows_the_traceback(perfkit: CommandLine) -> None:
    assert "Traceback (most recent call last)" in failing(perfkit, ValueError("boo"), "--debug").err


def test_a_log_that_cannot_be_written_does_not_hide_the_bug(
    perfkit: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PERFKIT_CACHE_DIR", str(tmp_path / "file"))
    outcome = failing(perfkit, ValueError("boo"))
    assert "ValueError: boo" in outcome.err
    assert "run again with --debug" in outcome.err
