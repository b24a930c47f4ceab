"""What is imported is declared, and what is declared is used and pinned for set-up."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

from tests.unit.test_imports import files, imported

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
IMPORT_NAME = {"nvidia-ml-py": "pynvml", "pillow": "PIL"}
"""Where the name to import differs from the name to install."""


def declared(requirements: list[str]) -> set[str]:
    return {re.split(r"[<>=!;\[ ]", requirement)[0].lower() for requirement in requirements}


def third_party() -> set[str]:
    names = {
        name.partition(".")[0]
        for folder in ("perfkit", "harness")
        for path in files(folder)
        for _, name in imported(path)
    }
    return {name for name in names if name not in sys.stdlib_module_names and name != "perfkit"}


def test_imports_and_dependencies_are_the_same() -> None:
    wanted = {IMPORT_NAME.get(name, name) for name in declared(PROJECT["dependencies"])}
    # protobuf comes with perfetto, whose builders hand out its messages.
    assert third_party() - {"google"} == wanted


def test_set_up_pins_every_dependency() -> None:
    pinned = {line.partition("==")[0].lower() for line in (ROOT / "constraints.txt").read_text().splitlines()}
    needed = declared(PROJECT["dependencies"] + PROJECT["optional-dependencies"]["dev"])
    assert needed <= pinned
