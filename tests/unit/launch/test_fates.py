"""What happened to a child -> fate and reason, without any child."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from perfkit.launch.fates import Ending, describe_failure, judge
from perfkit.wire.codec import FORMAT_VERSION, encode
from perfkit.wire.payloads import StepTimes
from perfkit.wire.results import CLOSED_PIPE_EXIT, Failure, Reply

_SOUND = encode(Reply(payload=StepTimes(timings=())))


def _ending(data: bytes = b"", **changed: Any) -> Ending:
    given = {"exit_code": 0, "timed_out": False, "time_limit_s": 600.0} | changed
    return Ending(data, **given)


def _failure(kind: str, message: str, where: str = "") -> Failure:
    return Failure(kind=kind, message=message, where=where, traceback="")


def test_a_sound_reply_is_ok() -> None:
    verdict = judge(_ending(_SOUND))
    assert (verdict.fate, verdict.reason) == ("ok", "")
    assert verdict.reply.payload == StepTimes(timings=())


@pytest.mark.parametrize("changed", [{"exit_code": -9}, {"exit_code": 1}, {"timed_out": True}])
def test_a_sound_reply_counts_however_the_process_ended(changed: dict[str, Any]) -> None:
    assert judge(_ending(_SOUND, **changed)).fate == "ok"


def test_a_failure_keeps_its_details() -> None:
    failure = _failure("ValueError", "bad", "recipe.py:12 in build")
    verdict = judge(_ending(encode(Reply(failure=failure))))
    assert (verdict.fate, verdict.reason) == ("failed", "ValueError at recipe.py:12 in build: bad")
    assert verdict.reply.failure == failure


@pytest.mark.parametrize(
    ("ending", "fate", "reason"),
    [
        (_ending(timed_out=True, exit_code=-9), "timed_out", "The time limit of 600 s ran out."),
        (_ending(b'{"vers', timed_out=True), "timed_out", "The time limit of 600 s ran out."),
        (_ending(), "died", "Exited with code 0 without sending a result."),
        (_ending(exit_code=3), "died", "Exited with code 3 without sending a result."),
        (
            _ending(exit_code=-signal.SIGKILL),
            "died",
            "Killed by SIGKILL without sending a result; the kernel does this when memory runs out.",
        ),
        (_ending(exit_code=-signal.SIGTERM), "died", "Killed by SIGTERM without sending a result."),
        (_ending(exit_code=-63), "died", "Killed by signal 63 without sending a result."),
        (
            _ending(exit_code=CLOSED_PIPE_EXIT),
            "died",
            "The target closed the file descriptor that carries the result.",
        ),
        (_ending(encode(Reply())), "failed", "The child's answer holds neither a result nor a failure."),
    ],
)
def test_fates_without_a_sound_reply(ending: Ending, fate: str, reason: str) -> None:
    verdict = judge(ending)
    assert (verdict.fate, verdict.reason, verdict.reply.payload) == (fate, reason, None)


def test_a_torn_reply_of_a_killed_child_is_a_death() -> None:
    verdict = judge(_ending(_SOUND[:-5], exit_code=-signal.SIGSEGV))
    assert verdict.fate == "died"
    assert verdict.reason.startswith("Killed by SIGSEGV while sending its result;")


@pytest.mark.parametrize(
    "data",
    [b"\xff\x00", b"[]", b"null", _SOUND[:-5], b'{"version": 1, "payload": {"program": "nonsense"}}'],
)
def test_what_is_no_reply_is_a_failure_that_says_so(data: bytes) -> None:
    verdict = judge(_ending(data))
    assert verdict.fate == "failed"
    assert verdict.reason.startswith("The child's answer cannot be read: ")


@pytest.mark.parametrize("version", [FORMAT_VERSION + 1, FORMAT_VERSION - 1])
def test_a_reply_of_another_format_is_refused(version: int) -> None:
    verdict = judge(_ending(_SOUND.replace(b'"version":1', f'"version":{version}'.encode())))
    assert verdict.fate == "failed"
    assert f"format {version}" in verdict.reason


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        (_failure("OutOfMemoryError", "CUDA is full.", "a.py:3 in f"), "Out of memory at a.py:3 in f: CUDA"),
        (_failure("MemoryError", ""), "Out of memory: MemoryError"),
        (_failure("RuntimeError", "can't allocate memory: 9 bytes"), "Out of memory: c"),
        (_failure("RuntimeError", "Triton Error [CUDA]: out of memory"), "Out of memory: Triton"),
        (_failure("KeyError", ""), "KeyError"),
        (_failure("PerfkitError", "The recipe is odd. It has no build. Add one."), "The recipe is odd."),
    ],
)  # fmt: skip
def test_failures_as_one_line(failure: Failure, text: str) -> None:
    assert describe_failure(failure).startswith(text)


def test_a_long_message_is_cut_to_fit_a_table() -> None:
    text = describe_failure(_failure("ValueError", "first line\n" + "x" * 10_000))
    assert text.startswith("ValueError: first line xxx")
    assert text.endswith("...")
    assert len(text) < 250


def test_our_own_messages_are_whole_because_the_advice_comes_last() -> None:
    long = f"The recipe is odd. {'It has no build. ' * 30}Add one."
    assert describe_failure(_failure("PerfkitError", long)) == long
