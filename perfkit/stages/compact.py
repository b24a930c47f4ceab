"""compact-trace: a copy of a trace whose device rows are few and have a meaning."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec

from perfkit.errors import UsageError
from perfkit.stages.answer import StageReport
from perfkit.trace.compact import Compacted, compact
from perfkit.trace.document import Document, read_document
from perfkit.trace.groups import DEFAULT_LANES, read_lane_settings
from perfkit.trace.merge import merge
from perfkit.trace.native import write_native
from perfkit.trace.output import require_writable, stem_of, write_json
from perfkit.trace.ranks import GLOBAL_RANK
from perfkit.trace.reader import decode_events

Form = Literal["json", "perfetto"]
_SUFFIXES = {"json": ".json.gz", "perfetto": ".pftrace"}


def compact_trace(
    path: Path,
    *,
    out: Path | None = None,
    merge_pp_ranks: bool = False,
    form: Form = "json",
    overwrite: bool = False,
    lanes: Path | None = None,
    tolerance_ns: int = 0,
    force: bool = False,
) -> StageReport:
    """Writes `<name>_compacted.json.gz` (or `.pftrace`) beside the trace, or `out`; answers with a summary.

    With `merge_pp_ranks` the path is a folder: every `rank*_trace.json[.gz]` in it goes into
    `pp_traces_merged_compacted.json.gz` there, sends joined with their receives. `lanes` is a TOML file of
    lane settings; `tolerance_ns` lets slices of a lane overlap by that much; `force` packs even where that
    makes more rows.

    Raises:
        UsageError: the output exists, is an input, nothing is found, or the lane settings are wrong.
        PerfkitError: a trace cannot be read, the output cannot be written, or the check failed.
    """
    settings = DEFAULT_LANES if lanes is None else read_lane_settings(lanes)
    inputs = _rank_traces(path) if merge_pp_ranks else [path]
    name = "pp_traces_merged" if merge_pp_ranks else stem_of(path)
    target = out or (path if merge_pp_ranks else path.parent) / f"{name}_compacted{_SUFFIXES[form]}"
    require_writable(target, inputs=inputs, overwrite=overwrite)
    document, about_ranks, warnings = _read(path, inputs, merge_pp_ranks=merge_pp_ranks)
    compacted = compact(
        document, settings=settings, tolerance_ns=tolerance_ns, force=force, across_ranks=merge_pp_ranks
    )
    warnings += [*_warnings(compacted), *_write(target, compacted, form=form)]
    return StageReport(
        document={
            "mode": "merge" if merge_pp_ranks else "single",
            "inputs": [str(one) for one in inputs],
            "output": str(target),
            **msgspec.to_builtins(compacted.summary),
            **msgspec.to_builtins(compacted.pipeline),
            **about_ranks,
            "warnings": warnings,
        },
        files=(target,),
        warnings=tuple(warnings),
    )


def _rank_traces(folder: Path) -> list[Path]:
    found = sorted([*folder.glob("rank*_trace.json"), *folder.glob("rank*_trace.json.gz")])
    if not found:
        raise UsageError(
            f"Nothing to merge in {folder}.",
            why="No file in it is named rank*_trace.json or rank*_trace.json.gz.",
            do="Give the folder that holds the traces of all ranks.",
        )
    return found


def _read(
    path: Path, inputs: list[Path], *, merge_pp_ranks: bool
) -> tuple[Document, dict[str, Any], list[str]]:
    documents = [read_document(one) for one in inputs]
    if not merge_pp_ranks:
        return documents[0], {}, []
    merged = merge(documents, skew=False)
    events = decode_events(msgspec.Raw(b"[" + b",".join(merged.raws) + b"]"))
    about = {
        "rank_order": [row.rank for row in merged.ranks],
        "rank_order_source": merged.order_source,
        "rank_shift_ns": {str(row.rank): row.base_shift_ns for row in merged.ranks},
    }
    warnings = list(merged.warnings)
    if merged.order_source == GLOBAL_RANK:
        warnings.append("No pipeline group is recorded: the ranks are stacked by global rank.")
    return Document(path, merged.header, events, merged.raws), about, warnings


def _warnings(compacted: Compacted) -> list[str]:
    found = [] if compacted.summary.packed else [f"The rows were kept: {compacted.summary.reason}."]
    pipeline = compacted.pipeline
    if pipeline.pp_send_recv_unmatched:
        found.append(
            f"{pipeline.pp_send_recv_unmatched} sends or receives have no partner: was the capture cut?"
        )
    if pipeline.pp_causality_violations:
        found.append(
            f"{pipeline.pp_causality_violations} receives end before their send begins: the clocks disagree."
        )
    return found


def _write(target: Path, compacted: Compacted, *, form: Form) -> list[str]:
    if form == "json":
        write_json(target, header=compacted.header, raws=compacted.raws)
        return []
    events = decode_events(msgspec.Raw(b"[" + b",".join(compacted.raws) + b"]"))
    skipped = write_native(target, header=compacted.header, events=events)
    left = "have no native form and were left out"
    return [f"{number} events of phase {phase!r} {left}." for phase, number in skipped.items()]
