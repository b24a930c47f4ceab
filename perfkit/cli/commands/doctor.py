"""`perfkit doctor`."""

from __future__ import annotations

from typing import Any

from perfkit.cli.options import DEVICE, GENERAL, JSON, with_options
from perfkit.cli.running import run_verb


@with_options(DEVICE, JSON, GENERAL)
def doctor(**given: Any) -> int:
    """Say what would spoil a measurement on this machine, and what to do.

    Ends with 3 when something is wrong, and with 4 when a check could not be made.

    \b
    Example:
      perfkit doctor --device cuda:0
    """
    return run_verb("doctor", given)
