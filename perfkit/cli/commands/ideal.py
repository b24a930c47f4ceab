"""`perfkit ideal`."""

from __future__ import annotations

from typing import Any

from perfkit.cli.options import CASES, GENERAL, MEASURING, OUTPUT, TABLES, TargetOrEffort, with_options
from perfkit.cli.running import run_verb


@with_options(MEASURING, CASES, TABLES, OUTPUT, GENERAL)
def ideal(target: TargetOrEffort, **given: Any) -> int:
    """Show how far each part of a layer is from what the hardware allows.

    Counts the bytes and FLOPs of the eager step, cuts it into islands that one kernel could be, and sets
    their measured time beside their floor at this device's measured peaks. Writes ideal.csv.

    \b
    Example:
      perfkit ideal llama3-block --cases tiny
    """
    return run_verb("ideal", given, target=target)
