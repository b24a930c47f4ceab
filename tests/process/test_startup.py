"""The command line starts without the heavy libraries, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

HEAVY = {"torch", "triton", "numpy", "pandas", "scipy", "rich", "matplotlib", "optuna"}


def loaded_by(*args: str, cwd: Path) -> set[str]:
    """Top-level modules in memory after `perfkit ARGS`."""
    code = (
        "import sys\n"
        "from perfkit.cli.main import run\n"
        f"code = run({list(args)!r})\n"
        "print('\\n@', *sorted({name.partition('.')[0] for name in sys.modules}))\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True, check=True)
    return set(done.stdout.rpartition("@")[2].split())


@pytest.mark.parametrize("args", [("--help",), ("bench", "--help"), ("--version",)])
def test_help_loads_nothing_heavy(args: tuple[str, ...], tmp_path: Path) -> None:
    loaded = loaded_by(*args, cwd=tmp_path)
    assert "typer" in loaded
    assert not loaded & HEAVY
    # The list of commands needs neither; running a command does, since Typer and the wire use them.
    assert args[0] != "--help" or not loaded & {"pydantic", "msgspec"}


@pytest.mark.parametrize("args", [("recipes",), ("recipes", "--json"), ("bench", "x", "--show-config")])
def test_listing_loads_nothing_that_measures(args: tuple[str, ...], tmp_path: Path) -> None:
    assert not loaded_by(*args, cwd=tmp_path) & HEAVY
