"""trace trim: the part of a trace that matters, whatever the size of the whole."""

from __future__ import annotations

from pathlib import Path

from perfkit.errors import UsageError
from perfkit.stages.answer import StageReport
from perfkit.trace.output import require_writable, write_json
from perfkit.trace.trim import Cut, count_kept, trim


def trim_trace(
    path: Path,
    *,
    out: Path,
    steps: tuple[int, int] | None = None,
    time_us: tuple[float, float] | None = None,
    annotation: str = "",
    cats: frozenset[str] = frozenset(),
    overwrite: bool = False,
) -> StageReport:
    """Writes the kept events to `out` (gzipped if it ends in `.gz`); conditions that are given must all hold.

    Raises:
        UsageError: no condition is given, nothing matches, or the output exists.
        PerfkitError: the trace cannot be read, or the output cannot be written.
    """
    require_writable(out, inputs=[path], overwrite=overwrite)
    if steps is None and time_us is None and not annotation and not cats:
        raise UsageError(
            f"Cannot trim {path}.",
            why="No condition was given.",
            do="Give --steps 2:4, --time A:B, --annotation REGEX or --cat CATEGORY.",
        )
    trimmed = trim(path, Cut(steps=steps, time_us=time_us, annotation=annotation, cats=cats))
    counts = [0]
    write_json(out, header=trimmed.header, raws=count_kept(trimmed.raws, counts))
    window = trimmed.window_ns
    return StageReport(
        headline=f"{counts[0]} events kept in {out}.",
        document={
            "input": str(path),
            "output": str(out),
            "num_events": counts[0],
            "window_ns": None if window is None else list(window),
        },
        files=(out,),
    )
