"""The import contract where no linter reaches: harness, recipes, and the ASCII rule."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HARNESS_MAY = {"perfkit.wire", "perfkit.errors", "perfkit.recipe", "torch", "triton"}
RECIPES_MAY = {"torch", "triton", "liger_kernel"}


def imported(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.lineno, node.module


def outside(name: str, allowed: set[str]) -> bool:
    if name.partition(".")[0] in sys.stdlib_module_names:
        return False
    return not any(name == module or name.startswith(f"{module}.") for module in allowed)


def files(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


@pytest.mark.parametrize("path", files("harness"), ids=lambda p: str(p.relative_to(ROOT)))
def test_the_harness_imports_only_itself_the_wire_and_torch(path: Path) -> None:
    assert [f"{line}: {name}" for line, name in imported(path) if outside(name, HARNESS_MAY)] == []


@pytest.mark.parametrize("path", files("recipes"), ids=lambda p: str(p.relative_to(ROOT)))
def test_recipes_import_nothing_of_ours(path: Path) -> None:
    beside = {other.stem for other in path.parent.glob("*.py")}
    assert [f"{line}: {name}" for line, name in imported(path) if outside(name, RECIPES_MAY | beside)] == []


@pytest.mark.parametrize("folder", ["perfkit", "harness", "recipes", "tests"])
def test_sources_are_ascii(folder: str) -> None:
    wrong = [str(path) for path in files(folder) if not path.read_bytes().isascii()]
    assert wrong == []


def test_modules_stay_short() -> None:
    long = {
        str(path.relative_to(ROOT)): count
        for folder in ("perfkit", "harness")
        for path in files(folder)
        if (count := len(path.read_text().splitlines())) > 400
    }
    assert long == {}
