"""What the shell offers after TARGET and EFFORT; nothing is imported from a recipe for it."""

from __future__ import annotations

from pathlib import Path


def complete_target(incomplete: str) -> list[str]:
    """Names of recipes, and of efforts below ./reports."""
    from perfkit.catalog.listing import recipe_files

    names = [path.stem for path in recipe_files()] + complete_effort(incomplete)
    return [name for name in names if name.startswith(incomplete)]


def complete_effort(incomplete: str) -> list[str]:
    """Names of efforts below ./reports."""
    from perfkit.catalog.efforts import effort_names

    return [name for name in effort_names(Path("reports")) if name.startswith(incomplete)]
