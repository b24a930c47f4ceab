"""Compaction: device rows repacked into lanes with a meaning. For looking at, never for measuring."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from perfkit.trace.document import Document, RawObject, raw_json, raw_object
from perfkit.trace.events import ANNOTATION_CATS
from perfkit.trace.groups import LaneSettings
from perfkit.trace.lanes import ANNOTATION_GROUP, GPU_ANNOTATION_CAT, LanePlan, Row, plan_lanes
from perfkit.trace.moving import move_to_lanes
from perfkit.trace.pipeline import PipelineSummary, draw_pipeline
from perfkit.trace.validate import require_disjoint, require_unchanged

NOTE = "Rows were repacked by perfkit for reading. Measure from the original trace."


class CompactSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What compaction did; printed as JSON."""

    measured_slices: int
    original_streams: int
    """Rows of device slices before."""
    compacted_lanes: int
    """Rows of device slices after."""
    packed: bool
    """False when the rows were kept, because packing would not have made fewer."""
    reason: str
    """Why the rows were packed or kept."""
    lanes_by_group: dict[str, int]
    slices_by_group: dict[str, int]
    annotation_lanes: int
    annotations_kept: int
    """GPU annotations, all of which are in the output."""
    annotations_cpu_only: int
    """CPU annotations whose name no GPU annotation has."""
    flows_moved: int
    flows_unbound: int
    """Flow ends on a device row that touch no slice; left as they were."""
    overlapping_slices: int
    """Slices that cross an earlier one of their original stream: viewers before Perfetto 57.1 drop them."""
    max_overlap_ns_tolerated: int
    """Largest overlap within a lane; 0 unless a tolerance was asked for."""
    validated: bool


@dataclass(frozen=True, slots=True)
class Compacted:
    """A compacted trace that passed its own checks."""

    header: RawObject
    raws: list[msgspec.Raw]
    summary: CompactSummary
    pipeline: PipelineSummary


def compact(
    document: Document,
    *,
    settings: LaneSettings,
    tolerance_ns: int = 0,
    force: bool = False,
    across_ranks: bool = False,
) -> Compacted:
    """Packs the device slices into lanes, unless that would make more rows than there were.

    With `across_ranks` the document is a merge of pipeline ranks, and sends are joined with receives.
    Slices that cross on one stream are packed all the same, since viewers before Perfetto 57.1 drop them.

    Raises:
        PerfkitError: the result failed its own check.
    """
    plan = plan_lanes(document.events, settings=settings, tolerance_ns=tolerance_ns)
    pack, reason = _whether_to_pack(document, plan, force=force)
    arrows, pipeline = draw_pipeline(
        document.events,
        settings=settings,
        lane_of=plan.lane_of,
        row_of=_final_row(document, plan, packed=pack),
        across_ranks=across_ranks,
    )
    header = {**document.header, "perfkit": _note(document)}
    if not pack:
        summary = _summary(document, plan, packed=False, reason=reason)
        return Compacted(header, [*document.raws, *arrows], summary, pipeline)
    moved = move_to_lanes(document.events, document.raws, plan)
    after = require_unchanged(document, moved.raws)
    rows: set[Row] = {(lane.pid, lane.tid) for lane in plan.lanes if lane.group != ANNOTATION_GROUP}
    overlap_ns = require_disjoint(document.path, after, rows, tolerance_ns=tolerance_ns)
    summary = msgspec.structs.replace(
        _summary(document, plan, packed=True, reason=reason),
        flows_moved=moved.num_flows_moved,
        flows_unbound=moved.num_flows_unbound,
        max_overlap_ns_tolerated=overlap_ns,
    )
    return Compacted(header, [*moved.raws, *arrows], summary, pipeline)


def _note(document: Document) -> msgspec.Raw:
    """The warning, beside what a merge has already written under this key."""
    merged = raw_object(document.header.get("perfkit", msgspec.Raw())) or {}
    return raw_json({**merged, "note": NOTE})


def _final_row(document: Document, plan: LanePlan, *, packed: bool) -> Callable[[int], Row]:
    def row_of(index: int) -> Row:
        lane = plan.lane_of.get(index) if packed else None
        event = document.events[index]
        return (event.pid, event.tid) if lane is None else (lane.pid, lane.tid)

    return row_of


def _whether_to_pack(document: Document, plan: LanePlan, *, force: bool) -> tuple[bool, str]:
    if not plan.original_rows:
        return False, "the trace has no device slices"
    before, after = _num_rows(document, plan), len(plan.lanes)
    if force:
        return True, "forced"
    if after <= before:
        return True, f"{before} rows become {after}"
    if plan.crossing:
        return True, f"{plan.crossing} slices overlap on one stream, and older viewers drop them"
    return False, f"nothing to pack: {before} rows would become {after}"


def _num_rows(document: Document, plan: LanePlan) -> int:
    return len({(document.events[i].pid, document.events[i].tid) for i in plan.lane_of})


def _summary(document: Document, plan: LanePlan, *, packed: bool, reason: str) -> CompactSummary:
    lanes = [lane for lane in plan.lanes if lane.group != ANNOTATION_GROUP]
    slices = Counter(lane.group for lane in plan.lane_of.values())
    names = {event.name for event in document.events if event.cat == GPU_ANNOTATION_CAT}
    return CompactSummary(
        measured_slices=sum(event.is_measured for event in document.events),
        original_streams=len(plan.original_rows),
        compacted_lanes=len(lanes) if packed else len(plan.original_rows),
        packed=packed,
        reason=reason,
        lanes_by_group=dict(Counter(lane.group for lane in lanes)) if packed else {},
        slices_by_group={group: number for group, number in slices.items() if group != ANNOTATION_GROUP},
        annotation_lanes=len(plan.lanes) - len(lanes) if packed else 0,
        annotations_kept=slices[ANNOTATION_GROUP],
        annotations_cpu_only=sum(
            event.cat in ANNOTATION_CATS and event.name not in names for event in document.events
        ),
        flows_moved=0,
        flows_unbound=0,
        overlapping_slices=plan.crossing,
        max_overlap_ns_tolerated=0,
        validated=True,
    )
