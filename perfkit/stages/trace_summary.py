"""trace summary: exact device times of one or more traces."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from perfkit.stages.answer import StageReport, Table
from perfkit.stages.trace_merge import collective_table
from perfkit.trace.collectives import CollectiveRow
from perfkit.trace.document import read_document
from perfkit.trace.groups import DEFAULT_LANES, read_lane_settings
from perfkit.trace.merge import merge
from perfkit.trace.ranks import distributed_info, rank_of
from perfkit.trace.stream import stream_trace
from perfkit.trace.summary import DeviceSummary, PartRow, TraceSummary, summarise


def summarise_traces(paths: Sequence[Path], *, lanes: Path | None = None) -> StageReport:
    """One summary per trace; several ranks of one run also show the collectives that they share.

    `lanes` is a TOML file of lane settings (see `read_lane_settings`).

    Raises:
        PerfkitError: a file cannot be read, or is malformed.
        UsageError: the lane settings are wrong.
    """
    settings = DEFAULT_LANES if lanes is None else read_lane_settings(lanes)
    summaries = [
        summarise((b.events for b in stream_trace(path)), trace=str(path), settings=settings)
        for path in paths
    ]
    collectives, problems = _across_ranks(paths)
    tables = [table for summary in summaries for table in _tables(summary)]
    return StageReport(
        tables=(*tables, collective_table(collectives)) if collectives else tuple(tables),
        document={"traces": summaries, "collectives": collectives},
        warnings=(*problems, *(warning for summary in summaries for warning in _warnings(summary))),
    )


def _across_ranks(paths: Sequence[Path]) -> tuple[list[CollectiveRow], list[str]]:
    """The collectives that the traces share, when they are of different ranks."""
    if len(paths) < 2:
        return [], []
    documents = [read_document(path) for path in paths]
    if any(not isinstance(distributed_info(one).get("rank"), int) for one in documents):
        return [], ["Collectives are not compared: not every trace says of which rank it is."]
    ranks = [rank_of(one) for one in documents]
    if len(set(ranks)) < len(ranks):
        return [], ["Collectives are not compared: several traces are of one rank."]
    merged = merge(documents)
    return merged.collectives, merged.warnings


def _tables(summary: TraceSummary) -> list[Table]:
    tables = []
    for device in summary.devices:
        tables.append(_window_table(summary, device))
        tables.append(_part_table("family", device.families, device))
        tables.append(_part_table("lane group", device.groups, device))
    if summary.steps:
        tables.append(_step_table(summary))
    if summary.graph_launches:
        rows = tuple((r.call, str(r.slices_per_launch), str(r.num_launches)) for r in summary.graph_launches)
        tables.append(
            Table(title="Graph launches", columns=("call", "slices per launch", "launches"), rows=rows)
        )
    return tables


def _window_table(summary: TraceSummary, device: DeviceSummary) -> Table:
    parts = {
        "busy": device.busy_ns,
        "idle": device.idle_ns,
        "compute": device.compute_ns,
        "communication": device.communication_ns,
        "communication under compute": device.overlap_ns,
        "exposed communication": device.exposed_communication_ns,
    }
    return Table(
        title=f"{summary.trace}: device {device.device}, {device.num_slices} slices on "
        f"{device.num_streams} stream(s), window {_ms(device.window_ns)} ms",
        columns=("part", "ms", "% of window"),
        rows=tuple((name, _ms(ns), _percent(ns, device.window_ns)) for name, ns in parts.items()),
        notes=("The window runs from the first device slice to the end of the last; busy + idle = window.",),
    )


def _part_table(what: str, parts: Sequence[PartRow], device: DeviceSummary) -> Table:
    return Table(
        title=f"By {what}",
        columns=(what, "slices", "summed ms", "covered ms", "% of window"),
        rows=tuple(
            (
                p.name,
                str(p.num_slices),
                _ms(p.summed_ns),
                _ms(p.covered_ns),
                _percent(p.covered_ns, device.window_ns),
            )
            for p in parts
        ),
    )


def _step_table(summary: TraceSummary) -> Table:
    spreads = ", ".join(
        f"{name.removesuffix('_ns')} {spread.range_percent:.1f}%"
        for name, spread in summary.step_spread.items()
    )
    return Table(
        title="By profiler step (slices count where they were launched)",
        columns=("step", "CPU ms", "slices", "summed ms", "busy ms", "span ms"),
        rows=tuple(
            (s.name, _ms(s.cpu_ns), str(s.num_slices), _ms(s.summed_ns), _ms(s.busy_ns), _ms(s.span_ns))
            for s in summary.steps
        ),
        notes=(f"Spread between steps, (max - min) / median: {spreads}.",) if spreads else (),
    )


def _warnings(summary: TraceSummary) -> list[str]:
    lost = summary.unattributed
    counted = (
        (lost.num_without_launch, lost.without_launch_ns, "have no launch call in the trace"),
        (lost.num_unclassified, lost.unclassified_ns, "are of no known family"),
        (lost.num_outside_steps, lost.outside_steps_ns, "were launched outside the profiler steps"),
    )
    found = [f"{summary.trace}: {n} slices ({_ms(ns)} ms) {what}." for n, ns, what in counted if n]
    if not summary.devices:
        found.append(f"{summary.trace} has no device slices: there is nothing to summarise.")
    return found


def _ms(time_ns: int) -> str:
    return f"{time_ns / 1e6:.3f}"


def _percent(part_ns: int, whole_ns: int) -> str:
    return f"{100 * part_ns / whole_ns:.3f}" if whole_ns else "-"
