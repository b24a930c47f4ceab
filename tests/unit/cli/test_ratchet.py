"""The command line grows on purpose only: each command and option is listed, explained and tested.

To accept a change, run `UPDATE_GOLDEN=1 pytest tests/unit/cli/test_ratchet.py` and give its reason in
CHANGELOG.md.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from perfkit.cli.main import app
from perfkit.cli.settings import SETTINGS

ROOT = Path(__file__).resolve().parents[3]
GOLDEN = ROOT / "tests" / "golden" / "command_line.txt"


def walk(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Every command that does something, by its words."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from walk(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


COMMANDS = dict(walk(typer.main.get_command(app)))


def spelled(parameter: Any) -> str:
    """`TARGET`, `-q/--quiet` or `--graph/--no-graph`."""
    if parameter.param_type_name == "argument":
        return str(parameter.metavar)
    return "/".join((*parameter.opts, *parameter.secondary_opts))


def test_every_command_and_option_is_listed() -> None:
    found = "".join(
        f"{name}\n" + "".join(f"    {spelled(parameter)}\n" for parameter in command.params)
        for name, command in COMMANDS.items()
    )
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(found)
    assert found == GOLDEN.read_text()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_help_with_an_example(name: str) -> None:
    command = COMMANDS[name]
    assert re.search(rf"^ +perfkit {name}\b.*$", command.help, re.M), "no example"
    assert all(parameter.help for parameter in command.params), "an option without help"
    first = command.help.splitlines()[0]
    assert first.endswith(".")
    assert len(first) < 80


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_a_section_in_the_readme(name: str) -> None:
    assert f"\n### perfkit {name}\n" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_a_test(name: str) -> None:
    here = Path(__file__).parent
    tests = "".join((here / file).read_text() for file in ("test_commands.py", "test_trace_commands.py"))
    assert re.search(rf"^def test_{re.sub('[ -]', '_', name)}(_|\b)", tests, re.M)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_is_documented(name: str) -> None:
    assert f"`{name}`" in (ROOT / "README.md").read_text()


def test_help_has_sections_and_cuts_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    from perfkit.cli import main

    assert main.run(["-h"]) == 0
    text = capsys.readouterr().out
    headings = [line for line in text.splitlines() if re.fullmatch(r"[A-Z]\w+:", line)]
    assert headings == ["Options:", "Investigate:", "Notebook:", "Traces:", "Machine:"]
    assert "..." not in text.partition("Options:")[2]
    assert all(f"\n  {name.split()[0]} " in text for name in COMMANDS)


def test_every_command_shows_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    from perfkit.cli import main

    for name in COMMANDS:
        assert main.run([*name.split(), "-h"]) == 0
        assert "Example:" in capsys.readouterr().out
