"""`perfkit peaks`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from perfkit.cli.options import DEVICE, GENERAL, JSON, PROCESS, with_options
from perfkit.cli.running import run_verb

Refresh = Annotated[bool, typer.Option("--refresh", help="Measure again although the cache has an answer.")]


@with_options(DEVICE, PROCESS, JSON, GENERAL)
def peaks(refresh: Refresh = False, **given: Any) -> int:
    """Measure what this device can do: bandwidths, GEMM rates, launch floor.

    The answer is cached by device, driver and torch version.

    \b
    Example:
      perfkit peaks --refresh
    """
    return run_verb("peaks", given, refresh=refresh)
