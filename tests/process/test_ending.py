"""Signals and closed pipes, on a real perfkit process whose stage waits for a line on stdin."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.process

WAITING = """
import signal, sys
from perfkit.cli import main, running
from perfkit.stages.answer import StageReport

def stage(request, *, say):
    request.progress(1, 3, "first")
    try:
        say("ready")
        sys.stdin.readline()
        say("going on")
        return StageReport(headline="done\\n" * 100_000)
    finally:
        say("cleaned up")

# A background job of a shell without job control inherits an ignored SIGINT.
signal.signal(signal.SIGINT, signal.default_int_handler)
running._stage = lambda verb: stage
sys.argv = ["perfkit", "bench", "x"]
main.main()
"""


def started() -> subprocess.Popen[str]:
    """A perfkit that has finished one unit of three and waits."""
    process = subprocess.Popen(
        [sys.executable, "-c", WAITING],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": ""},
    )
    assert process.stderr is not None
    assert process.stderr.readline() == "[1/3] first\n"
    assert process.stderr.readline() == "ready\n"
    return process


@pytest.mark.parametrize(
    ("number", "code", "word"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")],
)
def test_a_signal_cleans_up_and_says_how_to_continue(number: signal.Signals, code: int, word: str) -> None:
    process = started()
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert out == ""
    assert err == (f"cleaned up\n1 of 3 are done and kept\n{word}; run the same command to continue\n")


def test_a_closed_stdout_ends_silently() -> None:
    process = started()
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    process.stdin.write("\n")
    process.stdin.close()
    assert process.stderr.read() == "going on\ncleaned up\n"
    process.stderr.close()
    assert process.wait(timeout=60) == 0


def test_a_closed_stderr_does_not_stop_the_work() -> None:
    process = started()
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stderr.close()
    process.stdin.write("\n")
    process.stdin.close()
    assert process.stdout.read().startswith("done\n")
    process.stdout.close()
    assert process.wait(timeout=60) == 0
