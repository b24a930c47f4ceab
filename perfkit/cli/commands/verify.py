"""`perfkit verify`."""

from __future__ import annotations

from typing import Any

from perfkit.cli.options import (
    CASES,
    GENERAL,
    MEASURING,
    OUTPUT,
    SUBJECTS,
    TABLES,
    VARIANTS,
    TargetOrEffort,
    with_options,
)
from perfkit.cli.running import run_verb


@with_options(MEASURING, CASES, SUBJECTS, TABLES, VARIANTS, OUTPUT, GENERAL)
def verify(target: TargetOrEffort, **given: Any) -> int:
    """Check outputs and gradients against eager and a float64 reference.

    Ends with 3 when something is out of tolerance, and with 4 when that could not be decided.

    \b
    Example:
      perfkit verify rms-norm --providers target
    """
    return run_verb("verify", given, target=target)
