"""What happened to a child -> the fate of its slot, and one sentence that says why."""

from __future__ import annotations

import signal
from dataclasses import dataclass

import msgspec

from perfkit.wire.codec import FORMAT_VERSION, decode
from perfkit.wire.results import CLOSED_PIPE_EXIT, Failure, Fate, Reply

_LONGEST_MESSAGE = 200
_OUT_OF_MEMORY_KINDS = ("OutOfMemoryError", "MemoryError")
_OUT_OF_MEMORY_WORDS = ("out of memory", "can't allocate memory", "cannot allocate memory")
_OWN_ERRORS = ("PerfkitError", "UsageError")
_SIGNAL_HINTS = {
    signal.SIGKILL: "; the kernel does this when memory runs out",
    signal.SIGSEGV: "; native code touched invalid memory, the log says where",
    signal.SIGABRT: "; native code gave up, the log says why",
    signal.SIGBUS: "; often /dev/shm or a disk is full",
}


_NO_REPLY = Reply()


@dataclass(frozen=True, slots=True)
class Ending:
    """How a child ended, as its parent saw it."""

    data: bytes
    """All that came through the result pipe."""
    exit_code: int
    """Negative: the number of the signal that ended it."""
    timed_out: bool
    time_limit_s: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """A fate, and the reply where there was a sound one."""

    fate: Fate
    reason: str = ""
    reply: Reply = _NO_REPLY


class _Versioned(msgspec.Struct):
    version: int = 0


def judge(ending: Ending) -> Verdict:
    """The fate of a slot. A sound reply counts, however the process ended after sending it."""
    try:
        version = decode(ending.data, _Versioned).version
        if version != FORMAT_VERSION:
            return Verdict("failed", _other_version(version))
        reply = decode(ending.data, Reply)
    except msgspec.MsgspecError as error:
        return _without_reply(ending, error)
    if reply.failure is not None:
        return Verdict("failed", describe_failure(reply.failure), reply)
    if reply.payload is None:
        return Verdict("failed", "The child's answer holds neither a result nor a failure.", reply)
    return Verdict("ok", reply=reply)


def describe_failure(failure: Failure) -> str:
    """One line: what was raised, with which message, and where in the user's code."""
    where = f" at {failure.where}" if failure.where else ""
    if failure.kind in _OWN_ERRORS and not is_out_of_memory(failure):
        # Whole, since what to do about it comes last.
        return " ".join(failure.message.split())
    message = _one_line(failure.message)
    if is_out_of_memory(failure):
        return f"Out of memory{where}: {message or failure.kind}"
    return f"{failure.kind}{where}: {message}" if message else f"{failure.kind}{where}"


def is_out_of_memory(failure: Failure) -> bool:
    """Whether the host or the device ran out of memory, whichever library noticed it."""
    message = failure.message.lower()
    return failure.kind in _OUT_OF_MEMORY_KINDS or any(words in message for words in _OUT_OF_MEMORY_WORDS)


def _without_reply(ending: Ending, error: msgspec.MsgspecError) -> Verdict:
    """The fate of a child that sent nothing sound; a torn reply is the mark of a death, not of a fault."""
    if ending.timed_out:
        return Verdict("timed_out", f"The time limit of {ending.time_limit_s:g} s ran out.")
    sending = "while sending its result" if ending.data else "without sending a result"
    if ending.exit_code < 0:
        name, hint = _signal_text(-ending.exit_code)
        return Verdict("died", f"Killed by {name} {sending}{hint}.")
    if ending.data:
        return Verdict("failed", f"The child's answer cannot be read: {_one_line(str(error))}")
    if ending.exit_code == CLOSED_PIPE_EXIT:
        return Verdict("died", "The target closed the file descriptor that carries the result.")
    return Verdict("died", f"Exited with code {ending.exit_code} {sending}.")


def _signal_text(number: int) -> tuple[str, str]:
    """A signal's name, and what usually sends it."""
    try:
        known = signal.Signals(number)
    except ValueError:
        return f"signal {number}", ""
    return known.name, _SIGNAL_HINTS.get(known, "")


def _other_version(version: int) -> str:
    return (
        f"The child's answer has format {version}, this perfkit reads {FORMAT_VERSION}: "
        "harness and perfkit come from different installations."
    )


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_MESSAGE else line[: _LONGEST_MESSAGE - 3] + "..."
