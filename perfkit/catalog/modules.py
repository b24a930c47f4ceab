"""Finds the file of a dotted module without importing anything of it."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from perfkit.errors import UsageError


def is_dotted(text: str) -> bool:
    """Whether the text could name a module: `package.module`."""
    return bool(text) and all(part.isidentifier() for part in text.split("."))


def find_module(dotted: str, *, root: Path) -> Path:
    """The file that `import dotted` would load, looking below `root` first.

    `importlib.util.find_spec` imports the parents of a dotted name, and so their libraries; walking down
    their search locations does not.

    Raises:
        UsageError: there is no such module, or it has no file.
    """
    first, *rest = dotted.split(".")
    spec = PathFinder.find_spec(first, [str(root)]) or importlib.util.find_spec(first)
    walked = first
    for part in rest:
        locations = None if spec is None else spec.submodule_search_locations
        if spec is None or locations is None:
            break
        walked = f"{walked}.{part}"
        spec = _below(walked, locations)
    if spec is None or walked != dotted:
        raise UsageError(
            f"There is no module {dotted}.",
            why=f"Found no {walked} below {root} or in this Python environment."
            if spec is None
            else f"{walked} is a module, not a package.",
            do="Check the name, start from the folder that holds the package, or name file.py:callable.",
        )
    if spec.origin is None or not Path(spec.origin).is_file():
        raise UsageError(
            f"The module {dotted} has no file.",
            why="It is a folder without __init__.py, or built into Python.",
            do="Name the module that defines the target.",
        )
    return Path(spec.origin).resolve()


def _below(dotted: str, locations: Sequence[str]) -> ModuleSpec | None:
    return PathFinder.find_spec(dotted, list(locations))
