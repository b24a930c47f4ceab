"""`perfkit log`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from perfkit.cli.options import FOLDER, GENERAL, EffortName, with_options
from perfkit.cli.running import run_verb

Entry = Annotated[str, typer.Argument(metavar="TEXT", help="The entry.", show_default=False)]


@with_options(FOLDER, GENERAL)
def log(effort: EffortName, text: Entry, **given: Any) -> int:
    """Add a dated entry to the devlog of an effort.

    \b
    Example:
      perfkit log llama3-block-cpu "a fused residual add did not pay: see v2"
    """
    return run_verb("log", given, target=effort, text=text)
