"""`perfkit investigate`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

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

Until = Annotated[
    str | None,
    typer.Option("--until", metavar="STAGE", help="The last stage to run. [default: finalize]"),
]
Ask = Annotated[bool, typer.Option("--ask", help="Show each stage's result and wait for an answer.")]


@with_options(MEASURING, CASES, SUBJECTS, TABLES, VARIANTS, OUTPUT, GENERAL)
def investigate(target: TargetOrEffort, until: Until = None, ask: Ask = False, **given: Any) -> int:
    """Run all stages on a target, or go on with an effort.

    profile, ideal, rank, bench, verify, finalize, in this order. What is recorded already is not measured
    again, so the same command continues after an interruption. The report is findings.md.

    \b
    Example:
      perfkit investigate llama3-block
      perfkit investigate rms-norm --until bench --quick
    """
    return run_verb("investigate", given, target=target, until=until, ask=ask)
