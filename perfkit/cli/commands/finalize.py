"""`perfkit finalize`."""

from __future__ import annotations

from typing import Any

from perfkit.cli.options import CASES, DEVICE, DTYPE, GENERAL, OUTPUT, TABLES, TargetOrEffort, with_options
from perfkit.cli.running import run_verb


@with_options(DEVICE, DTYPE, CASES, TABLES, OUTPUT, GENERAL)
def finalize(target: TargetOrEffort, **given: Any) -> int:
    """Write the findings report, the PR texts and the plots.

    Uses what the effort has recorded and measures nothing. Writes findings.md, pr/ and plots/.

    \b
    Example:
      perfkit finalize llama3-block
    """
    return run_verb("finalize", given, target=target)
