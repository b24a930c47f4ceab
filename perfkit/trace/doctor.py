"""Says what is wrong with a trace: whether it loads, its numbers hold, and a viewer shows all of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from perfkit.trace.columns import ColumnBuilder
from perfkit.trace.document import with_fields
from perfkit.trace.events import MEASURED_CATS, Event
from perfkit.trace.groups import is_on_device
from perfkit.trace.lanes import count_crossing
from perfkit.trace.mending import Change, mend
from perfkit.trace.reader import decode_events
from perfkit.trace.refusals import cannot_unpack

Fault = Literal["file", "number", "viewer", "note"]
"""What suffers: the file does not load, a number is wrong, a viewer hides something, or nothing (normal)."""
_INT64 = range(-(2**63), 2**63)


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing about a trace."""

    fault: Fault
    what: str
    count: int
    where: str
    """Byte offset, or number of the first event concerned."""
    advice: str


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """All findings, worst first, and the mended trace where there is one."""

    findings: tuple[Finding, ...]
    loadable: bool
    """False when nothing made the file readable."""
    header: dict[str, msgspec.Raw]
    raws: list[msgspec.Raw]
    """The events as they would be written by a repair."""

    @property
    def is_healthy(self) -> bool:
        """Nothing but notes."""
        return all(finding.fault == "note" for finding in self.findings)


def diagnose(path: Path) -> Diagnosis:
    """Reads the file in whatever state it is.

    Raises:
        PerfkitError: it cannot be opened at all.
    """
    try:
        mended = mend(path.read_bytes())
    except OSError as error:
        raise cannot_unpack(path, error) from error
    findings = list(_text_findings(mended.changes))
    if mended.text is None:
        findings.append(
            _finding("file", "this is not a trace, or too damaged to be one", 1, "", "Profile again.")
        )
        return Diagnosis(findings=tuple(findings), loadable=False, header={}, raws=[])
    header, events_json = _parts(mended.text)
    events = decode_events(events_json)
    raws = msgspec.json.decode(events_json, type=list[msgspec.Raw])
    findings += [*_time_findings(events), *_device_findings(events), *_header_findings(header, events)]
    repaired = [raw for event, raw in zip(events, raws, strict=True) if not _is_lost(event)]
    order = {"file": 0, "number": 1, "viewer": 2, "note": 3}
    return Diagnosis(
        findings=tuple(sorted(findings, key=lambda f: order[f.fault])),
        loadable=True,
        header=header,
        raws=[_with_whole_times(raw) for raw in repaired],
    )


def _parts(text: bytes) -> tuple[dict[str, msgspec.Raw], msgspec.Raw]:
    if text.lstrip().startswith(b"["):
        return {}, msgspec.Raw(text)
    header = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    return header, header.pop("traceEvents")


def _finding(fault: Fault, what: str, count: int, where: str, advice: str) -> Finding:
    return Finding(fault=fault, what=what, count=count, where=where, advice=advice)


def _text_findings(changes: Iterable[Change]) -> Iterable[Finding]:
    first: dict[str, tuple[int, int]] = {}
    for change in changes:
        byte, count = first.get(change.what, (change.byte, 0))
        first[change.what] = (byte, count + 1)
    for what, (byte, count) in first.items():
        yield _finding("file", what, count, f"byte {byte}", "--repair does this.")


def _is_lost(event: Event) -> bool:
    return event.ph == "X" and event.ts is None


def _with_whole_times(raw: msgspec.Raw) -> msgspec.Raw:
    event = msgspec.json.decode(raw, type=Event)
    return with_fields(raw, dur=0) if event.ph == "X" and (event.dur is None or event.dur < 0) else raw


def _time_findings(events: Sequence[Event]) -> Iterable[Finding]:
    slices = [(i, e) for i, e in enumerate(events) if e.ph == "X"]
    repaired = "--repair sets the duration to 0."
    checks: tuple[tuple[Fault, str, list[int], str], ...] = (
        ("number", "slices without a start", [i for i, e in slices if e.ts is None], "--repair drops them."),
        ("number", "slices without a duration", [i for i, e in slices if e.dur is None], repaired),
        ("number", "negative durations", [i for i, e in slices if (e.dur or 0) < 0], repaired),
        (
            "viewer",
            "negative start times",
            [i for i, e in enumerate(events) if (e.ts or 0) < 0],
            "Profile again.",
        ),
        (
            "note",
            "device slices of zero duration",
            [i for i, e in slices if e.dur == 0 and e.cat in MEASURED_CATS],
            "Shorter than the clock's grain; they count as calls, not as time.",
        ),
        (
            "viewer",
            "integers beyond 64 bits",
            [i for i, e in enumerate(events) if any(_is_huge(v) for v in (e.pid, e.tid, e.id))],
            "Viewers read other ids there.",
        ),
    )
    for fault, what, places, advice in checks:
        if places:
            yield _finding(fault, what, len(places), f"event {places[0]}", advice)


def _is_huge(value: object) -> bool:
    return isinstance(value, int) and value not in _INT64


def _device_findings(events: Sequence[Event]) -> Iterable[Finding]:
    crossing = count_crossing(e for e in events if is_on_device(e.cat) and e.is_slice)
    if crossing:
        advice = "The numbers are right. `perfkit compact-trace` gives each a row of its own."
        yield _finding(
            "viewer", "slices that viewers before Perfetto 57.1 drop", crossing, "device rows", advice
        )
    builder = ColumnBuilder()
    builder.add(events)
    columns = builder.build()
    unlinked = int((columns.launch < 0).sum())
    if unlinked and columns.launch_names:
        advice = "They cannot be attributed to the code that launched them."
        yield _finding(
            "number", "device slices whose launch call is missing", unlinked, "device rows", advice
        )
    used = set(columns.launch.tolist())
    idle = sum("aunchKernel" in name and i not in used for i, name in enumerate(columns.launch_names))
    if idle and columns.num_slices:
        advice = "The capture window was cut, or device activity was lost."
        yield _finding("number", "kernel launches without a kernel", idle, "CPU rows", advice)
    yield from _flow_findings(events)


def _flow_findings(events: Sequence[Event]) -> Iterable[Finding]:
    starts = {(e.id, e.cat, e.name) for e in events if e.ph == "s"}
    ends = {(e.id, e.cat, e.name) for e in events if e.ph == "f"}
    normal = "Normal for calls without device work; viewers ignore them."
    if ends - starts:
        yield _finding("note", "flow ends without a start", len(ends - starts), "", normal)
    if starts - ends:
        yield _finding("note", "flow starts without an end", len(starts - ends), "", normal)


def _header_findings(header: dict[str, msgspec.Raw], events: Sequence[Event]) -> Iterable[Finding]:
    if "baseTimeNanoseconds" not in header:
        advice = "Ranks can still be merged when all lack it."
        yield _finding("note", "no baseTimeNanoseconds", 1, "header", advice)
    named = {(e.pid, e.tid) for e in events if e.ph == "M" and e.name == "thread_name"}
    rows = {(e.pid, e.tid) for e in events if e.cat in MEASURED_CATS}
    if rows - named:
        yield _finding(
            "note", "device rows without a name", len(rows - named), "metadata", "Viewers number them."
        )
