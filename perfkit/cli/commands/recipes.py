"""`perfkit recipes`."""

from __future__ import annotations

from typing import Any

from perfkit.cli.options import GENERAL, JSON, with_options
from perfkit.cli.running import run_verb


@with_options(JSON, GENERAL)
def recipes(**given: Any) -> int:
    """List the targets that ship with perfkit.

    Recipes are read as text; none is imported.

    \b
    Example:
      perfkit recipes --json
    """
    return run_verb("recipes", given)
