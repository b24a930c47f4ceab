"""`perfkit compact-trace`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from perfkit.cli.options import GENERAL, with_options
from perfkit.cli.running import one_of, run_tool

TraceOrFolder = Annotated[
    Path,
    typer.Argument(
        metavar="PATH",
        help="A profiler trace; with --merge-pp-ranks the folder of rank*_trace.json[.gz].",
        show_default=False,
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        metavar="FILE",
        help="Where to write. [default: beside the trace]",
        show_default=False,
    ),
]
MergeRanks = Annotated[
    bool, typer.Option("--merge-pp-ranks", help="Merge the traces of all pipeline ranks into one timeline.")
]
Form = Annotated[str, typer.Option("--format", metavar="json|perfetto", help="What to write.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the output where it exists.")]
Lanes = Annotated[
    Path | None,
    typer.Option(
        "--lanes",
        metavar="FILE",
        help="TOML: groups, order, labels and the annotation pattern.",
        show_default=False,
    ),
]
Tolerance = Annotated[
    int, typer.Option("--tolerance-ns", min=0, help="Slices of one lane may overlap by that much.")
]
Force = Annotated[bool, typer.Option("--force", help="Pack even where that makes more rows.")]


@with_options(GENERAL)
def compact_trace(
    path: TraceOrFolder,
    output: Output = None,
    merge_pp_ranks: MergeRanks = False,
    form: Form = "json",
    overwrite: Overwrite = False,
    lanes: Lanes = None,
    tolerance_ns: Tolerance = 0,
    force: Force = False,
    **given: Any,
) -> int:
    """Pack the kernels of a trace into a few rows with a meaning.

    A copy for looking: measure from the original. Prints a JSON summary.

    \b
    Example:
      perfkit compact-trace trace.json.gz
      perfkit compact-trace profile_trace/iteration_10 --merge-pp-ranks --format perfetto
    """
    from perfkit.stages.compact import compact_trace as compact

    return run_tool(
        "compact-trace",
        {**given, "json": True},
        lambda: compact(
            path,
            out=output,
            merge_pp_ranks=merge_pp_ranks,
            form="perfetto" if one_of("--format", form, ("json", "perfetto")) == "perfetto" else "json",
            overwrite=overwrite,
            lanes=lanes,
            tolerance_ns=tolerance_ns,
            force=force,
        ),
    )
