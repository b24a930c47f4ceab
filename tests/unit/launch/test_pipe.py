"""Reading a reply while waiting for an end, with plain pipes in place of a child."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from perfkit.launch.pipe import Collected, collect


class Pipes:
    """A result pipe, and a second pipe whose end of file stands for the end of the child."""

    def __init__(self) -> None:
        self.result_fd, self.reply_end = os.pipe()
        self.exit_fd, self.life = os.pipe()
        self._open = {self.result_fd, self.reply_end, self.exit_fd, self.life}

    def close(self, *fds: int) -> None:
        for fd in fds or tuple(self._open):
            self._open.discard(fd)
            os.close(fd)

    def collect(self, clock: Callable[[], float] = lambda: 0.0, *, limit_s: float = 60.0) -> Collected:
        return collect(self.result_fd, self.exit_fd, limit_s=limit_s, clock=clock)


@pytest.fixture
def pipes() -> Iterator[Pipes]:
    pipes = Pipes()
    yield pipes
    pipes.close()


def test_all_that_was_written_before_the_end_is_read(pipes: Pipes) -> None:
    os.write(pipes.reply_end, b"reply")
    pipes.close(pipes.reply_end, pipes.life)
    assert pipes.collect() == Collected(b"reply", timed_out=False)


def test_a_pipe_that_a_grandchild_holds_does_not_delay_the_end(pipes: Pipes) -> None:
    os.write(pipes.reply_end, b"reply")
    pipes.close(pipes.life)
    assert pipes.collect() == Collected(b"reply", timed_out=False)


def _counting_clock(step_s: float, after: Callable[[int], object] = lambda call: None) -> Callable[[], float]:
    """A clock that advances by `step_s` at each look, and lets the test act at each look."""
    looks = iter(range(1_000_000))

    def clock() -> float:
        look = next(looks)
        after(look)
        return look * step_s

    return clock


def test_the_end_of_the_pipe_is_not_the_end_of_the_child(pipes: Pipes) -> None:
    pipes.close(pipes.reply_end)
    clock = _counting_clock(1.0, lambda look: look == 2 and pipes.close(pipes.life))
    assert pipes.collect(clock) == Collected(b"", timed_out=False)
    assert clock() > 2.0


def test_the_limit_ends_the_wait_and_keeps_what_came(pipes: Pipes) -> None:
    clock = _counting_clock(1.0, lambda look: os.write(pipes.reply_end, b"x"))
    collected = pipes.collect(clock, limit_s=5.0)
    assert collected.timed_out
    assert set(collected.data) == {ord("x")}


def test_what_is_larger_than_the_pipe_is_read_while_waiting(pipes: Pipes) -> None:
    sent: list[bytes] = []

    def write_or_end(look: int) -> None:
        if look < 50:
            sent.append(bytes([look]) * 30_000)
            os.write(pipes.reply_end, sent[-1])
        elif look == 50:
            pipes.close(pipes.life)

    collected = pipes.collect(_counting_clock(0.1, write_or_end))
    assert collected == Collected(b"".join(sent), timed_out=False)
