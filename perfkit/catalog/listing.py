"""The recipes that ship with perfkit, found and read without importing any."""

from __future__ import annotations

from pathlib import Path

from perfkit.places import recipes_dir
from perfkit.recipe import Recipe, is_recipe, read_recipe

_FOLDERS = ("layers", "kernels", "patterns")


def recipe_files(root: Path | None = None) -> tuple[Path, ...]:
    """Every recipe file, by folder and name. Helper files have no `kind` or start with an underscore.

    Raises:
        UsageError: a file is not valid Python.
    """
    base = recipes_dir() if root is None else root
    found = [path for folder in _FOLDERS for path in sorted((base / folder).glob("*.py"))]
    return tuple(path for path in found if not path.name.startswith("_") and is_recipe(path))


def list_recipes(root: Path | None = None) -> tuple[Recipe, ...]:
    """All recipes, by folder and name.

    Raises:
        UsageError: a recipe breaks the contract of recipes; the message names file and line.
    """
    return tuple(read_recipe(path) for path in recipe_files(root))
