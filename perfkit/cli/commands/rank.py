"""`perfkit rank`."""

from __future__ import annotations

from typing import Any

from perfkit.cli.options import CASES, GENERAL, MEASURING, OUTPUT, TABLES, TargetOrEffort, with_options
from perfkit.cli.running import run_verb


@with_options(MEASURING, CASES, TABLES, OUTPUT, GENERAL)
def rank(target: TargetOrEffort, **given: Any) -> int:
    """Order the islands by the time that could be saved.

    Names their source lines, and marks what is not worth the work. Writes candidates.csv.

    \b
    Example:
      perfkit rank llama3-block --cases tiny
    """
    return run_verb("rank", given, target=target)
