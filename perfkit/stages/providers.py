"""Which providers of a kernel can be timed here: libraries that are missing, and devices that do not fit."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

from perfkit.catalog import Resolved
from perfkit.errors import UsageError
from perfkit.stages.request import StageRequest

_ALWAYS_THERE = frozenset({"torch", "triton"})


def usable_providers(
    resolved: Resolved, request: StageRequest, *, device: str, timed: bool = True
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(providers to run, a sentence for each one left out).

    A provider that was asked for by name is never left out silently. `timed` is False for verify, which
    runs the kernel under test on a CPU too, in the interpreter.

    Raises:
        UsageError: a provider asked for by name that cannot be timed here.
    """
    libraries = _imports_by_function(resolved.file)
    usable, notes = [], []
    for name in resolved.providers:
        why = _why_not(name, libraries.get(f"provider_{name}", ()), device=device, timed=timed)
        if not why:
            usable.append(name)
        elif request.providers is None:
            notes.append(f"Provider {name} is left out: {why}.")
        else:
            raise UsageError(
                f"Provider {name} cannot be {'timed' if timed else 'run'} here.",
                why=f"{why[0].upper()}{why[1:]}.",
                do="Leave it out of --providers.",
            )
    return tuple(usable), tuple(notes)


def _why_not(name: str, libraries: tuple[str, ...], *, device: str, timed: bool) -> str:
    if name == "target" and device == "cpu" and timed:
        return "a CPU runs Triton kernels in the interpreter, whose time says nothing; verify checks it there"
    for library in libraries:
        if importlib.util.find_spec(library) is None:
            return f"{library} is not installed"
        if device == "cpu":
            return f"{library} is a GPU library"
    return ""


def _imports_by_function(file: Path) -> dict[str, tuple[str, ...]]:
    """Function -> top-level packages that its body imports, torch and Triton aside."""
    found: dict[str, tuple[str, ...]] = {}
    for node in ast.parse(file.read_bytes()).body:
        if isinstance(node, ast.FunctionDef):
            names = [name for inner in ast.walk(node) for name in _imported(inner)]
            found[node.name] = tuple(n for n in dict.fromkeys(names) if n not in _ALWAYS_THERE)
    return found


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name.partition(".")[0] for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
        return [node.module.partition(".")[0]]
    return []
