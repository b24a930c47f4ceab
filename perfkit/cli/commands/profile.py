"""`perfkit profile`."""

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
def profile(target: TargetOrEffort, **given: Any) -> int:
    """Show where the time of a step goes.

    A layer is run as each tree (eager, regions, block), a kernel through each provider, in fresh
    processes. Writes profile.md into the effort.

    \b
    Example:
      perfkit profile llama3-block --cases tiny --trees eager,block
      perfkit profile path/to/model.py:make_layer --case tokens=4096
    """
    return run_verb("profile", given, target=target)
