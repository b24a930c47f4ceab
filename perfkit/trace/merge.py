"""Puts the traces of several ranks on one clock and into one file, each rank's ids and pids its own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from perfkit.errors import PerfkitError, UsageError
from perfkit.trace.collectives import (
    CollectiveRow,
    Offsets,
    collective_rows,
    estimate_offsets,
    match_collectives,
)
from perfkit.trace.document import Document, RawObject, raw_json, raw_object
from perfkit.trace.events import Event, Place, device_args
from perfkit.trace.ranks import pipeline_order, rank_of
from perfkit.trace.reader import decode_events

PIDS_PER_RANK = 1000
_ID_ARGS = ("correlation", "External id", "external id")
_ID_ARG = re.compile(rb'"(correlation|External id|external id)"(\s*:\s*)(\d+)(?=\s*[,}])')
TRUSTED_RESIDUAL_NS = 1_000_000
"""Ends of one collective agree within tens of microseconds; a millisecond apart, two are paired wrongly."""


class RankRow(msgspec.Struct, frozen=True, kw_only=True):
    """What was done to one rank."""

    rank: int
    trace: str
    base_shift_ns: int
    """From the rank's own time base to the common one."""
    skew_ns: int
    """Clock error against the first rank that was taken off on top."""
    num_events: int


@dataclass(frozen=True, slots=True)
class Merged:
    """A merged trace that passed its own check."""

    header: RawObject
    raws: list[msgspec.Raw]
    ranks: list[RankRow]
    order_source: str
    offsets: Offsets
    collectives: list[CollectiveRow]
    warnings: list[str]


def merge(documents: Sequence[Document], *, skew: bool = True) -> Merged:
    """Merges the ranks. With `skew`, clocks are aligned on the ends of the collectives they share.

    Raises:
        UsageError: two traces are of one rank, or a rank is unknown.
        PerfkitError: only some traces have a time base, or the result failed its check.
    """
    by_rank = _by_rank(documents)
    order, source = pipeline_order(by_rank)
    base_ns, shift_ns = _base_shifts(by_rank)
    shared, warnings = match_collectives({rank: by_rank[rank].events for rank in order})
    shared = [replace(one, spans=_on_common_base(one.spans, shift_ns)) for one in shared]
    offsets = estimate_offsets(order, shared)
    skew_ns = dict(offsets.offset_ns)
    if not skew or offsets.residual_ns > TRUSTED_RESIDUAL_NS or not offsets.num_collectives:
        warnings += _why_no_skew(skew, offsets)
        skew_ns = dict.fromkeys(order, 0)
    stride = 1 + max(_largest_id(document.events) for document in documents)
    raws: list[msgspec.Raw] = []
    for place, rank in enumerate(order):
        move_ns = shift_ns[rank] - skew_ns[rank]
        raws += _moved_rank(by_rank[rank], rank=rank, place=place, shift_ns=move_ns, id_offset=place * stride)
    rows = [
        RankRow(
            rank=rank,
            trace=str(by_rank[rank].path),
            base_shift_ns=shift_ns[rank],
            skew_ns=skew_ns[rank],
            num_events=len(by_rank[rank].events),
        )
        for rank in order
    ]
    header = _header(by_rank, order, base_ns)
    return Merged(header, raws, rows, source, offsets, collective_rows(shared, skew_ns), warnings)


def _by_rank(documents: Sequence[Document]) -> dict[int, Document]:
    by_rank: dict[int, Document] = {}
    for document in documents:
        rank = rank_of(document)
        if rank in by_rank:
            raise UsageError(
                f"Cannot merge {document.path}.",
                why=f"{by_rank[rank].path} is of rank {rank} as well.",
                do="Give one trace per rank.",
            )
        by_rank[rank] = document
    return by_rank


def _base_shifts(by_rank: dict[int, Document]) -> tuple[int | None, dict[int, int]]:
    """The common time base (the smallest), and what to add to each rank's times, in nanoseconds."""
    bases = {rank: _base_ns(document) for rank, document in by_rank.items()}
    known = [base for base in bases.values() if base is not None]
    if not known:
        return None, dict.fromkeys(by_rank, 0)
    missing = [str(by_rank[rank].path) for rank, base in bases.items() if base is None]
    if missing:
        raise PerfkitError(
            "Cannot put the ranks on one clock.",
            why=f"{missing[0]} has no baseTimeNanoseconds, others do.",
            do="Merge traces of one profiler version.",
        )
    return min(known), {rank: (base or 0) - min(known) for rank, base in bases.items()}


def _base_ns(document: Document) -> int | None:
    raw = document.header.get("baseTimeNanoseconds")
    value = msgspec.json.decode(raw) if raw else None
    return value if isinstance(value, int) else None


def _on_common_base(
    spans: dict[int, tuple[int, int]], shift_ns: dict[int, int]
) -> dict[int, tuple[int, int]]:
    return {rank: (start + shift_ns[rank], end + shift_ns[rank]) for rank, (start, end) in spans.items()}


def _why_no_skew(skew: bool, offsets: Offsets) -> list[str]:
    if not skew:
        return []
    if not offsets.num_collectives:
        return ["The ranks share no collective: their clocks are taken as they are."]
    return [
        f"The ends of shared collectives disagree by {offsets.residual_ns / 1000:.1f} us after alignment: "
        "they are not the same ones, and the clocks are taken as they are."
    ]


def _largest_id(events: Sequence[Event]) -> int:
    largest = 0
    for event in events:
        args = device_args(event)
        for ident in (event.id, args.correlation, args.external):
            if isinstance(ident, int) and ident > largest:
                largest = ident
    return largest


def _moved_rank(
    document: Document, *, rank: int, place: int, shift_ns: int, id_offset: int
) -> list[msgspec.Raw]:
    """The rank's events with own pids and ids and shifted times, and the names of its processes."""
    used = {event.pid for event in document.events if event.ph != "M"}
    pids = {pid: place * PIDS_PER_RANK + n for n, pid in enumerate(sorted(used, key=_pid_key))}
    kept: list[Event] = []
    raws: list[msgspec.Raw] = []
    for event, raw in zip(document.events, document.raws, strict=True):
        if event.ph == "M" and (event.pid not in used or event.name.startswith("process_")):
            continue
        kept.append(event)
        raws.append(_moved_event(event, raw, pids=pids, rank=rank, shift_ns=shift_ns, id_offset=id_offset))
    _require_shifted(document, kept, raws, shift_ns=shift_ns)
    return _process_names(document, rank, pids) + raws


def _pid_key(pid: Place) -> tuple[bool, int, str]:
    """CPU processes first (their pids are large), then GPUs by index, then the profiler's own names."""
    return not isinstance(pid, int), -pid if isinstance(pid, int) and pid > 64 else 0, str(pid)


def _moved_event(
    event: Event, raw: msgspec.Raw, *, pids: dict[Place, int], rank: int, shift_ns: int, id_offset: int
) -> msgspec.Raw:
    keys = raw_object(raw) or {}
    keys["pid"] = raw_json(pids[event.pid])
    if event.ts is not None and event.ph != "M":
        keys["ts"] = _microseconds(event.start_ns + shift_ns)
    if event.id is not None:
        own = event.id + id_offset if isinstance(event.id, int) else f"rank {rank}: {event.id}"
        keys["id"] = raw_json(own)
    if id_offset and event.args:
        keys["args"] = msgspec.Raw(
            _ID_ARG.sub(lambda m: b'"%b"%b%d' % (m[1], m[2], int(m[3]) + id_offset), bytes(event.args))
        )
    return raw_json(keys)


def _microseconds(time_ns: int) -> msgspec.Raw:
    sign = "-" if time_ns < 0 else ""
    return msgspec.Raw(f"{sign}{abs(time_ns) // 1000}.{abs(time_ns) % 1000:03d}".encode())


def _process_names(document: Document, rank: int, pids: dict[Place, int]) -> list[msgspec.Raw]:
    named: dict[Place, dict[str, str]] = {pid: {} for pid in pids}
    for event in document.events:
        if event.ph == "M" and event.name in ("process_name", "process_labels") and event.pid in pids:
            args = msgspec.json.decode(event.args) if event.args else None
            if isinstance(args, dict):
                named[event.pid][event.name] = str(args.get("name", args.get("labels", "")))
    rows: list[msgspec.Raw] = []
    for pid, new in pids.items():
        place = {"ph": "M", "ts": 0, "pid": new, "tid": 0}
        name = " ".join(filter(None, (f"rank {rank}:", named[pid].get("process_name", ""), str(pid))))
        rows.append(raw_json({**place, "name": "process_name", "args": {"name": name}}))
        label = named[pid].get("process_labels", "")
        rows.append(raw_json({**place, "name": "process_labels", "args": {"labels": label}}))
        rows.append(raw_json({**place, "name": "process_sort_index", "args": {"sort_index": new}}))
    return rows


def _require_shifted(
    document: Document, before: Sequence[Event], raws: Sequence[msgspec.Raw], *, shift_ns: int
) -> None:
    after = decode_events(msgspec.Raw(b"[" + b",".join(raws) + b"]"))
    for old, new in zip(before, after, strict=True):
        same = (old.name, old.cat, old.ph, old.tid, old.dur_ns) == (
            new.name,
            new.cat,
            new.ph,
            new.tid,
            new.dur_ns,
        )
        moved = old.ts is None or old.ph == "M" or new.start_ns == old.start_ns + shift_ns
        if not (same and moved and _plain_args(old) == _plain_args(new)):
            raise PerfkitError(
                f"Merging {document.path} went wrong; nothing was written.",
                why=f"The check of the result found that {old.name!r} at {old.ts} us changed.",
                do="Report this together with the trace.",
            )


def _fixed(event: Event) -> tuple[object, ...]:
    return event.name, event.cat, event.ph, event.tid, event.dur_ns, _plain_args(event)


def _plain_args(event: Event) -> dict[str, bytes] | bytes:
    keys = raw_object(event.args)
    if keys is None:
        return bytes(event.args)
    return {name: bytes(value) for name, value in keys.items() if name not in _ID_ARGS}


def _header(by_rank: dict[int, Document], order: Sequence[int], base_ns: int | None) -> RawObject:
    header: RawObject = {"schemaVersion": raw_json(1), "displayTimeUnit": raw_json("ms")}
    if base_ns is not None:
        header["baseTimeNanoseconds"] = raw_json(base_ns)
    ranks = [
        {"rank": rank, "path": by_rank[rank].path.name, "header": by_rank[rank].header} for rank in order
    ]
    return header | {"perfkit": raw_json({"merged_ranks": ranks})}
