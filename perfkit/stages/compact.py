"""compact-trace: a copy of a trace whose device rows are few and have a meaning."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from perfkit.stages.answer import StageReport
from perfkit.trace.compact import Compacted, compact
from perfkit.trace.document import read_document
from perfkit.trace.groups import DEFAULT_LANES, read_lane_settings
from perfkit.trace.native import write_native
from perfkit.trace.output import require_writable, stem_of, write_json
from perfkit.trace.reader import decode_events

_SUFFIXES = {"json": ".json.gz", "perfetto": ".pftrace"}


def compact_trace(
    path: Path,
    *,
    out: Path | None = None,
    form: Literal["json", "perfetto"] = "json",
    overwrite: bool = False,
    lanes: Path | None = None,
    tolerance_ns: int = 0,
    force: bool = False,
) -> StageReport:
    """Writes `<name>_compacted.json.gz` (or `.pftrace`) beside the trace, or `out`; answers with a summary.

    `lanes` is a TOML file of lane settings; `tolerance_ns` lets slices of a lane overlap by that much;
    `force` packs even where that makes more rows.

    Raises:
        UsageError: the output exists, is the input, or the lane settings are wrong.
        PerfkitError: the trace cannot be read, the output cannot be written, or the check failed.
    """
    settings = DEFAULT_LANES if lanes is None else read_lane_settings(lanes)
    target = out or path.with_name(f"{stem_of(path)}_compacted{_SUFFIXES[form]}")
    require_writable(target, inputs=[path], overwrite=overwrite)
    compacted = compact(read_document(path), settings=settings, tolerance_ns=tolerance_ns, force=force)
    warnings = [] if compacted.summary.packed else [f"The rows were kept: {compacted.summary.reason}."]
    warnings += _write(target, compacted, form=form)
    summary = msgspec.to_builtins(compacted.summary)
    return StageReport(
        document={"mode": "single", "inputs": [str(path)], "output": str(target), **summary},
        files=(target,),
        warnings=tuple(warnings),
    )


def _write(target: Path, compacted: Compacted, *, form: Literal["json", "perfetto"]) -> list[str]:
    if form == "json":
        write_json(target, header=compacted.header, raws=compacted.raws)
        return []
    events = decode_events(msgspec.Raw(b"[" + b",".join(compacted.raws) + b"]"))
    skipped = write_native(target, header=compacted.header, events=events)
    left = "have no native form and were left out"
    return [f"{number} events of phase {phase!r} {left}." for phase, number in skipped.items()]
