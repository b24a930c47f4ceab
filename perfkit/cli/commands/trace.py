"""`perfkit trace doctor|summary|merge|trim|diff`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from perfkit.cli.commands.compact_trace import Lanes, Overwrite
from perfkit.cli.options import GENERAL, JSON, with_options
from perfkit.cli.running import bounds, run_tool
from perfkit.cli.sections import Sections

app = typer.Typer(cls=Sections, rich_markup_mode=None, pretty_exceptions_enable=False, no_args_is_help=True)

Trace = Annotated[
    Path, typer.Argument(metavar="PATH", help="A profiler trace, .json or .json.gz.", show_default=False)
]
Traces = Annotated[
    list[Path], typer.Argument(metavar="PATH...", help="Profiler traces, one per rank.", show_default=False)
]
Output = Annotated[
    Path, typer.Option("-o", "--output", metavar="FILE", help="Where to write.", show_default=False)
]
Repair = Annotated[
    Path | None,
    typer.Option("--repair", metavar="FILE", help="Write a copy that loads.", show_default=False),
]
Steps = Annotated[
    str | None, typer.Option("--steps", metavar="A:B", help="Profiler steps A to B-1.", show_default=False)
]
Time = Annotated[
    str | None,
    typer.Option("--time", metavar="A:B", help="Microseconds from the first slice.", show_default=False),
]
Annotation = Annotated[
    str,
    typer.Option(
        "--annotation", metavar="RE", help="What lies inside annotations that match.", show_default=False
    ),
]
Cats = Annotated[
    list[str] | None,
    typer.Option("--cat", metavar="CAT", help="Events of a category. Can be repeated.", show_default=False),
]
NoSkew = Annotated[bool, typer.Option("--no-skew", help="Trust the clocks; estimate no skew between them.")]
Other = Annotated[
    Path, typer.Argument(metavar="OTHER", help="The trace compared with it.", show_default=False)
]


@app.callback()
def trace() -> None:
    """Read, repair, cut, merge and compare profiler traces.

    \b
    Example:
      perfkit trace summary trace.json.gz
    """


@app.command()
@with_options(JSON, GENERAL)
def doctor(path: Trace, repair: Repair = None, overwrite: Overwrite = False, **given: Any) -> int:
    """Say what is wrong with a trace, and where.

    Ends with 3 when something is wrong.

    \b
    Example:
      perfkit trace doctor trace.json --repair repaired.json.gz
    """
    from perfkit.stages.trace_doctor import examine_trace

    return run_tool("trace doctor", given, lambda: examine_trace(path, repair=repair, overwrite=overwrite))


@app.command()
@with_options(JSON, GENERAL)
def summary(paths: Traces, lanes: Lanes = None, **given: Any) -> int:
    """Busy, idle, overlap and exposed communication, per family, step and rank.

    \b
    Example:
      perfkit trace summary rank0_trace.json.gz rank1_trace.json.gz
    """
    from perfkit.stages.trace_summary import summarise_traces

    return run_tool("trace summary", given, lambda: summarise_traces(paths, lanes=lanes))


@app.command()
@with_options(JSON, GENERAL)
def merge(
    paths: Traces, output: Output, no_skew: NoSkew = False, overwrite: Overwrite = False, **given: Any
) -> int:
    """Put the traces of several ranks on one clock, into one file.

    \b
    Example:
      perfkit trace merge rank0_trace.json.gz rank1_trace.json.gz -o merged.json.gz
    """
    from perfkit.stages.trace_merge import merge_traces

    return run_tool(
        "trace merge",
        given,
        lambda: merge_traces(paths, out=output, skew=not no_skew, overwrite=overwrite),
    )


@app.command()
@with_options(JSON, GENERAL)
def trim(
    path: Trace,
    output: Output,
    steps: Steps = None,
    time: Time = None,
    annotation: Annotation = "",
    cat: Cats = None,
    overwrite: Overwrite = False,
    **given: Any,
) -> int:
    """Cut a part out of a trace, whatever its size.

    \b
    Example:
      perfkit trace trim trace.json.gz --steps 2:4 -o steps.json.gz
    """
    from perfkit.stages.trace_trim import trim_trace

    first_last = bounds("--steps", steps, int)
    between_us = bounds("--time", time, float)
    return run_tool(
        "trace trim",
        given,
        lambda: trim_trace(
            path,
            out=output,
            steps=first_last,
            time_us=between_us,
            annotation=annotation,
            cats=frozenset(cat or ()),
            overwrite=overwrite,
        ),
    )


@app.command()
@with_options(JSON, GENERAL)
def diff(path: Trace, other: Other, **given: Any) -> int:
    """Compare the kernels of two traces, against the spread between steps.

    \b
    Example:
      perfkit trace diff before.json.gz after.json.gz
    """
    from perfkit.stages.trace_diff import diff_traces

    return run_tool("trace diff", given, lambda: diff_traces(path, other))
