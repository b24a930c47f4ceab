"""Runs the command line in this process, with a stage of the test's own in place of the real one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from perfkit.cli import main, running
from perfkit.stages.answer import StageReport
from perfkit.stages.request import StageRequest

Work = Callable[[StageRequest, Callable[[str], None]], StageReport]


@dataclass
class Outcome:
    """What one command did."""

    code: int
    out: str
    err: str


@dataclass
class CommandLine:
    """Calls `perfkit`, and remembers which stage was asked for and with what."""

    capsys: pytest.CaptureFixture[str]
    work: Work = field(default=lambda request, say: StageReport(headline="done"))
    verb: str = ""
    request: StageRequest | None = None

    def __call__(self, *args: str) -> Outcome:
        code = main.run(list(args))
        out, err = self.capsys.readouterr()
        return Outcome(code, out, err)

    def asked(self, *args: str) -> StageRequest:
        """The request that these arguments become."""
        outcome = self(*args)
        assert outcome.code == 0, outcome.err
        assert self.request is not None
        return self.request

    def stage(self, verb: str) -> Callable[..., StageReport]:
        """Stands in for the lookup of a stage."""

        def run(request: StageRequest, *, say: Callable[[str], None]) -> StageReport:
            self.verb, self.request = verb, request
            return self.work(request, say)

        return run


def fake_stages(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    """A command line whose stages do what the test says."""
    line = CommandLine(capsys)
    monkeypatch.setattr(running, "_stage", line.stage)
    return line
