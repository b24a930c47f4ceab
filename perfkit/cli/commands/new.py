"""`perfkit new variant`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from perfkit.cli.options import FOLDER, GENERAL, EffortName, with_options
from perfkit.cli.running import run_verb
from perfkit.cli.sections import Sections

app = typer.Typer(cls=Sections, rich_markup_mode=None, pretty_exceptions_enable=False, no_args_is_help=True)

Replaces = Annotated[
    list[str] | None,
    typer.Option(
        "--replaces",
        metavar="MODULE",
        help="A dotted module to start from, in place of the target's own source. Can be repeated.",
        show_default=False,
    ),
]

Hypothesis = Annotated[
    str | None,
    typer.Option("--hypothesis", metavar="TEXT", help="What should get faster, and why.", show_default=False),
]


@app.callback()
def new() -> None:
    """Make a new variant.

    \b
    Example:
      perfkit new variant llama3-block-cpu
    """


@app.command()
@with_options(FOLDER, GENERAL)
def variant(
    effort: EffortName, replaces: Replaces = None, hypothesis: Hypothesis = None, **given: Any
) -> int:
    """Make the next variant of an effort: the source to change, and a notebook.

    Write the hypothesis and the predicted number into notes.md before the first run.

    \b
    Example:
      perfkit new variant llama3-block-cpu
      perfkit bench llama3-block-cpu --variants v0,v1
    """
    stated = {"replaces": tuple(replaces or ()), "text": hypothesis or ""}
    return run_verb("new_variant", given, target=effort, **stated)
