"""A command line with fake stages, called from an empty folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command_line import CommandLine, fake_stages


@pytest.fixture
def perfkit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> CommandLine:
    """Runs commands with fake stages; no settings of this repository apply."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NO_COLOR", raising=False)
    return fake_stages(monkeypatch, capsys)
