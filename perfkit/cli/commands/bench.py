"""`perfkit bench`."""

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
def bench(target: TargetOrEffort, **given: Any) -> int:
    """Time variants, trees and providers against each other.

    Every number comes from a fresh process; the processes are interleaved, and their order is reversed
    each round. Writes comparison.md and benchmarks/*.csv.

    \b
    Example:
      perfkit bench llama3-block --variants v0,v1 --replicates 5
    """
    return run_verb("bench", given, target=target)
