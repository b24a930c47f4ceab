"""Arrows between the sends, receives and computations of pipeline stages, within a rank and across ranks."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from perfkit.trace.document import raw_json
from perfkit.trace.events import ANNOTATION_CATS, LAUNCH_CATS, RANGE_CATS, Event, Place, device_args
from perfkit.trace.groups import COMPUTE, LaneSettings
from perfkit.trace.lanes import Lane, Row
from perfkit.trace.steps import STEP_PREFIX

MARKER_CAT = "perfkit_marker"
MARKER_US = 0.5
ARROW_CAT = "pipeline"
_COMPUTE_OPS = {"F": ("F",), "B": ("B", "I", "W")}
"""Computations of a direction in the order of looking: a zero-bubble I may launch nothing, and W all."""
_NEXT_STAGE = {"F": 1, "B": -1}

Key = tuple[int, int, str, int, int]
"""Step, stage, operation, microbatch (-1: none), occurrence within the step."""


@dataclass(frozen=True, slots=True)
class _Action:
    pid: Place
    slices: list[int]
    """Positions of the device slices that were launched in the annotation's window, by start."""


class PipelineSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What was matched and drawn."""

    pp_annotations: int
    pp_send_recv_matched: int
    pp_send_recv_unmatched: int | None
    """Sends without a receive and receives without a send; None for a single rank, where all are open."""
    pp_local_arrows: dict[str, int]
    pp_receives_posted_early: int
    """Receives whose kernel started before that of their send: their arrows end on a marker."""
    pp_causality_violations: int
    """Receives that ended before their send began: the clocks disagree."""
    clock_skew_bounds_us: dict[str, float]
    """Smallest receive end minus send end, per direction between two processes; half the difference of the
    two directions estimates the clock skew."""


@dataclass(slots=True)
class _Drawing:
    raws: list[msgspec.Raw] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    gaps_ns: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    next_id: int = 0

    def arrow(self, name: str, start: tuple[Row, Event], end: tuple[Row, msgspec.Raw]) -> None:
        """From the start of a slice to a time on another row."""
        self.next_id += 1
        shared = {"cat": ARROW_CAT, "name": name, "id": self.next_id}
        (pid, tid), event = start
        self.raws.append(raw_json({"ph": "s", **shared, "pid": pid, "tid": tid, "ts": event.ts}))
        (pid, tid), ts = end
        self.raws.append(raw_json({"ph": "f", "bp": "e", **shared, "pid": pid, "tid": tid, "ts": ts}))


def draw_pipeline(
    events: Sequence[Event],
    *,
    settings: LaneSettings,
    lane_of: Mapping[int, Lane],
    row_of: Callable[[int], Row],
    across_ranks: bool,
) -> tuple[list[msgspec.Raw], PipelineSummary]:
    """Arrow events, and marker slices at the ends of receives; none when there are no pipeline annotations.

    `row_of` gives the final row of a slice. Only with `across_ranks` are sends joined with receives.
    """
    actions = _actions(events, settings)
    largest = max((e.id for e in events if isinstance(e.id, int)), default=0)
    drawing = _Drawing(next_id=largest)
    _draw_local(actions, events, lane_of, row_of, drawing)
    _draw_unshards(actions, events, lane_of, row_of, drawing)
    unmatched = _draw_messages(actions, events, row_of, drawing) if across_ranks else None
    bounds = {pair: min(gaps) / 1000 for pair, gaps in sorted(drawing.gaps_ns.items())}
    local = ("recv_to_compute", "compute_to_send", "unshard_to_compute")
    return drawing.raws, PipelineSummary(
        pp_annotations=len(actions),
        pp_send_recv_matched=drawing.counts["matched"],
        pp_send_recv_unmatched=unmatched,
        pp_local_arrows={name: drawing.counts[name] for name in local},
        pp_receives_posted_early=drawing.counts["early"],
        pp_causality_violations=drawing.counts["violations"],
        clock_skew_bounds_us=bounds,
    )


def _actions(events: Sequence[Event], settings: LaneSettings) -> dict[Key, _Action]:
    pattern = re.compile(settings.annotation_pattern)
    found = [
        (event, match)
        for event in events
        if event.cat in ANNOTATION_CATS and event.is_slice and (match := pattern.search(event.name))
    ]
    if not found:
        return {}
    steps = _steps(events)
    launched = _launched(events)
    seen: Counter[tuple[int, int, str, int]] = Counter()
    actions: dict[Key, _Action] = {}
    for event, match in sorted(found, key=lambda pair: pair[0].start_ns):
        microbatch = match["microbatch"]
        step = next((n for start, end, n in steps[event.pid] if start <= event.start_ns < end), -1)
        op = settings.operations.get(match["op"], match["op"])
        key = step, int(match["stage"]), op, int(microbatch) if microbatch else -1
        times = launched[event.pid]
        inside = times[bisect_left(times, (event.start_ns, -1)) : bisect_left(times, (event.end_ns, -1))]
        slices = sorted((index for _, index in inside), key=lambda index: events[index].start_ns)
        actions[*key, seen[key]] = _Action(event.pid, slices)
        seen[key] += 1
    return actions


def _steps(events: Sequence[Event]) -> Mapping[Place, list[tuple[int, int, int]]]:
    steps: dict[Place, list[tuple[int, int, int]]] = defaultdict(list)
    for event in events:
        if event.cat in RANGE_CATS and event.is_slice and event.name.startswith(STEP_PREFIX):
            number = event.name.removeprefix(STEP_PREFIX)
            if number.isdigit():
                steps[event.pid].append((event.start_ns, event.end_ns, int(number)))
    return steps


def _launched(events: Sequence[Event]) -> Mapping[Place, list[tuple[int, int]]]:
    """Per process: (start of the launch call, position of the device slice), by time."""
    calls: dict[int | str, Event] = {}
    for event in events:
        if event.cat in LAUNCH_CATS and event.is_slice:
            correlation = device_args(event).correlation
            if correlation is not None:
                calls.setdefault(correlation, event)
    launched: dict[Place, list[tuple[int, int]]] = defaultdict(list)
    for index, event in enumerate(events):
        if event.is_measured:
            call = calls.get(device_args(event).correlation or -1)
            if call is not None:
                launched[call.pid].append((call.start_ns, index))
    for times in launched.values():
        times.sort()
    return launched


def _draw_local(
    actions: Mapping[Key, _Action],
    events: Sequence[Event],
    lane_of: Mapping[int, Lane],
    row_of: Callable[[int], Row],
    drawing: _Drawing,
) -> None:
    for (step, stage, op, microbatch, number), action in actions.items():
        kind, _, direction = op.partition("_")
        if kind not in ("SEND", "RECV") or not action.slices:
            continue
        computed = _computed(actions, (step, stage, direction, microbatch, number), lane_of)
        if not computed:
            continue
        message = action.slices[0]
        if kind == "RECV":
            pair, name = (message, computed[0]), "recv_to_compute"
        else:
            pair, name = (computed[-1], message), "compute_to_send"
        _join(name, pair, events, row_of, drawing)


def _computed(actions: Mapping[Key, _Action], key: Key, lane_of: Mapping[int, Lane]) -> list[int]:
    """Compute slices of the first computation of this direction that launched any."""
    step, stage, direction, microbatch, number = key
    for op in _COMPUTE_OPS.get(direction, ()):
        action = actions.get((step, stage, op, microbatch, number))
        slices = [i for i in action.slices if lane_of[i].group == COMPUTE] if action else []
        if slices:
            return slices
    return []


def _join(
    name: str, pair: tuple[int, int], events: Sequence[Event], row_of: Callable[[int], Row], drawing: _Drawing
) -> None:
    one, two = pair
    drawing.arrow(name, (row_of(one), events[one]), (row_of(two), raw_json(events[two].ts)))
    drawing.counts[name] += 1


def _draw_unshards(
    actions: Mapping[Key, _Action],
    events: Sequence[Event],
    lane_of: Mapping[int, Lane],
    row_of: Callable[[int], Row],
    drawing: _Drawing,
) -> None:
    """All-gathers of an UNSHARD on the first two all-gather lanes, to the next computation of the stage."""
    first_lane = {index for index, lane in lane_of.items() if lane.group == COMPUTE and lane.number == 0}
    starts: dict[tuple[Place, int], list[int]] = defaultdict(list)
    for (_, stage, op, _, _), action in actions.items():
        own = [index for index in action.slices if index in first_lane]
        if op in ("F", "B", "I", "W") and own:
            starts[action.pid, stage].append(own[0])
    for (_, stage, op, _, _), action in actions.items():
        gathers = [i for i in action.slices if lane_of[i].group == "all_gather" and lane_of[i].number < 2]
        if op != "UNSHARD" or not gathers:
            continue
        gather = gathers[-1]
        later = [i for i in starts[action.pid, stage] if events[i].start_ns >= events[gather].start_ns]
        if later:
            first = min(later, key=lambda index: events[index].start_ns)
            _join("unshard_to_compute", (gather, first), events, row_of, drawing)


def _draw_messages(
    actions: Mapping[Key, _Action],
    events: Sequence[Event],
    row_of: Callable[[int], Row],
    drawing: _Drawing,
) -> int:
    """Joins sends with receives; returns how many halves found no partner."""
    marker_tid = _free_tids(events, row_of)
    open_receives = {key for key in actions if key[2].startswith("RECV_")}
    unmatched, marked = 0, set[Row]()
    for key in [key for key in actions if key[2].startswith("SEND_")]:
        step, stage, op, microbatch, number = key
        direction = op.removeprefix("SEND_")
        partner = step, stage + _NEXT_STAGE[direction], f"RECV_{direction}", microbatch, number
        if partner not in open_receives:
            unmatched += 1
            continue
        open_receives.remove(partner)
        drawing.counts["matched"] += 1
        send, receive = actions[key], actions[partner]
        if send.slices and receive.slices:
            label = f"received {direction}{microbatch} of stage {stage}"
            device = events[receive.slices[-1]].pid
            row = device, marker_tid[device]
            source, arrived = send.slices[0], events[receive.slices[-1]]
            _mark(label, events[source], arrived, row, drawing)
            drawing.arrow(label, (row_of(source), events[source]), (row, _end_us(arrived)))
            marked.add(row)
    for pid, tid in sorted(marked, key=str):
        place = {"ph": "M", "ts": 0, "pid": pid, "tid": tid}
        drawing.raws.append(raw_json({**place, "name": "thread_name", "args": {"name": "receives done"}}))
    return unmatched + len(open_receives)


def _mark(label: str, send: Event, receive: Event, row: Row, drawing: _Drawing) -> None:
    """The marker at the receive's end, and what the pair says about the clocks."""
    pid, tid = row
    place: dict[str, object] = {"ph": "X", "cat": MARKER_CAT, "pid": pid, "tid": tid, "dur": MARKER_US}
    drawing.raws.append(raw_json({**place, "name": label, "ts": _end_us(receive)}))
    drawing.counts["early"] += receive.start_ns < send.start_ns
    drawing.counts["violations"] += receive.end_ns < send.start_ns
    drawing.gaps_ns[f"{send.pid} -> {receive.pid}"].append(receive.end_ns - send.end_ns)


def _end_us(event: Event) -> msgspec.Raw:
    return msgspec.Raw(f"{event.end_ns // 1000}.{event.end_ns % 1000:03d}".encode())


def _free_tids(events: Sequence[Event], row_of: Callable[[int], Row]) -> Mapping[Place, int]:
    free: dict[Place, int] = defaultdict(lambda: 1)
    for index, event in enumerate(events):
        pid, tid = row_of(index)
        for taken in (tid, event.tid):
            if isinstance(taken, int) and taken >= free[pid]:
                free[pid] = taken + 1
    return free
