"""`perfkit`: the app, its commands, and the way in."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated, NoReturn

import typer

from perfkit.cli.boundary import raise_on_sigterm, run_guarded
from perfkit.cli.commands import (
    bench,
    compact_trace,
    doctor,
    finalize,
    ideal,
    investigate,
    log,
    new,
    peaks,
    profile,
    rank,
    recipes,
    trace,
    verify,
)
from perfkit.cli.sections import Sections
from perfkit.version import __version__

app = typer.Typer(
    name="perfkit",
    cls=Sections,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_COMMANDS: tuple[tuple[str, str, Callable[..., int]], ...] = (
    ("Investigate", "investigate", investigate.investigate),
    ("Investigate", "profile", profile.profile),
    ("Investigate", "ideal", ideal.ideal),
    ("Investigate", "rank", rank.rank),
    ("Investigate", "bench", bench.bench),
    ("Investigate", "verify", verify.verify),
    ("Investigate", "finalize", finalize.finalize),
    ("Investigate", "recipes", recipes.recipes),
    ("Notebook", "log", log.log),
    ("Traces", "compact-trace", compact_trace.compact_trace),
    ("Machine", "doctor", doctor.doctor),
    ("Machine", "peaks", peaks.peaks),
)
for _section, _name, _command in _COMMANDS:
    app.command(_name, rich_help_panel=_section)(_command)
app.add_typer(new.app, name="new", rich_help_panel="Notebook")
app.add_typer(trace.app, name="trace", rich_help_panel="Traces")


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"perfkit {__version__}")
        raise typer.Exit


@app.callback()
def perfkit(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Find out why a PyTorch model or Triton kernel is slow, and prove what made it faster.

    \b
    Start here:
      perfkit doctor                      is this machine fit for measuring?
      perfkit recipes                     what ships with perfkit
      perfkit investigate llama3-block    all stages, into reports/
      perfkit COMMAND -h                  options and an example of a command
    """


def run(args: list[str]) -> int:
    """Runs perfkit on these arguments and returns its exit code."""
    return run_guarded(app, args)


def main() -> NoReturn:
    """The console script."""
    raise_on_sigterm()
    sys.exit(run(sys.argv[1:]))
