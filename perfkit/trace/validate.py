"""Checks a rewritten trace against its original before anything is written: nothing measured may change."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from perfkit.errors import PerfkitError
from perfkit.trace.document import Document, raw_object
from perfkit.trace.events import Event, nanoseconds
from perfkit.trace.lanes import Row
from perfkit.trace.moving import PLACEMENT_ARGS
from perfkit.trace.reader import decode_events

_CHECKED_AT_ONCE = 50_000
_PLACEMENT = re.compile(rb'"(?:stream|original_stream|original_tid)"\s*:\s*[^,}]*,?')
"""Placement arguments as text. Taking them out of flat arguments leaves equal text only where all else is
equal; where it does not (they came last, say), the arguments are compared key by key."""


def require_unchanged(document: Document, raws: Sequence[msgspec.Raw]) -> list[Event]:
    """The slices that were rewritten, read back from their new text, once they are proven to be the same.

    What was not rewritten is the very text of the original. Every other slice must come out in the same
    order with the same name, category, pid, ts, dur and arguments, apart from those that say where it lies.

    Raises:
        PerfkitError: one does not; the fault is perfkit's, and no file is written.
    """
    written, known = {id(raw) for raw in raws}, {id(raw) for raw in document.raws}
    pairs = zip(document.events, document.raws, strict=True)
    old = [event for event, raw in pairs if event.is_slice and id(raw) not in written]
    rewritten = [raw for raw in raws if id(raw) not in known]
    new: list[Event] = []
    for start in range(0, len(rewritten), _CHECKED_AT_ONCE):
        text = b",".join(rewritten[start : start + _CHECKED_AT_ONCE])
        new.extend(event for event in decode_events(msgspec.Raw(b"[" + text + b"]")) if event.is_slice)
    if len(old) != len(new):
        raise _broken(document.path, f"{len(old)} slices went in and {len(new)} came out")
    for one, two in zip(old, new, strict=True):
        if not (_same_measurement(one, two) and _same_arguments(one, two)):
            raise _broken(document.path, f"slice {one.name!r} at {one.ts} us changed")
    return new


def _same_measurement(one: Event, two: Event) -> bool:
    return (
        one.name == two.name
        and one.cat == two.cat
        and one.pid == two.pid
        and nanoseconds(one.ts) == nanoseconds(two.ts)
        and nanoseconds(one.dur) == nanoseconds(two.dur)
    )


def require_disjoint(path: Path, events: Sequence[Event], rows: set[Row], *, tolerance_ns: int) -> int:
    """The largest overlap, in nanoseconds, between measured slices of one lane.

    Raises:
        PerfkitError: it is more than the tolerance.
    """
    slices = sorted(
        (e.start_ns, e.end_ns, index)
        for index, e in enumerate(events)
        if (e.pid, e.tid) in rows and e.is_measured
    )
    reached_ns: dict[Row, int] = {}
    largest_ns = 0
    for start_ns, end_ns, index in slices:
        row = events[index].pid, events[index].tid
        reached = reached_ns.get(row, start_ns)
        overlap_ns = min(reached, end_ns) - start_ns
        largest_ns = max(largest_ns, overlap_ns)
        if overlap_ns > tolerance_ns:
            what = f"two slices of one lane overlap by {overlap_ns} ns at {events[index].ts} us"
            raise _broken(path, what)
        reached_ns[row] = max(reached, end_ns)
    return largest_ns


def _same_arguments(one: Event, two: Event) -> bool:
    before, after = bytes(one.args), bytes(two.args)
    flat = before.count(b"{") <= 1 and after.count(b"{") <= 1
    if flat and _PLACEMENT.sub(b"", before) == _PLACEMENT.sub(b"", after):
        return True
    old, new = _arguments(one), _arguments(two)
    return old is not None and old == new


def _arguments(event: Event) -> dict[str, bytes] | None:
    keys = {} if bytes(event.args) == b"null" else raw_object(event.args)
    if keys is None:
        return None
    return {name: bytes(value) for name, value in keys.items() if name not in PLACEMENT_ARGS}


def _broken(path: Path, what: str) -> PerfkitError:
    return PerfkitError(
        f"Compacting {path} went wrong; nothing was written.",
        why=f"The check of the result found that {what}.",
        do="Use the original trace, and report this together with it.",
    )
