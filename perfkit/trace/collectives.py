"""Collectives that several ranks share: how their clocks differ, who waited, and for whom.

A collective ends on all its ranks at nearly the same time, while it starts on each when that rank arrives.
So the ends give the clock offsets, and on aligned clocks the starts give the waiting.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from perfkit.trace.events import Event, device_args
from perfkit.trace.groups import COMMUNICATION_GROUPS, DEFAULT_LANES

ALIGNING_GROUPS = frozenset({"all_gather", "reduce_scatter", "all_reduce", "all_to_all"})
"""Collectives that no rank can leave before every rank has arrived."""
POINT_TO_POINT = "send_recv"

Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Shared:
    """One collective as each rank saw it: rank -> (start, end) in nanoseconds."""

    group: str
    number: int
    """Place among the collectives of its kind and process group."""
    spans: dict[int, tuple[int, int]]


class CollectiveRow(msgspec.Struct, frozen=True, kw_only=True):
    """One shared collective on aligned clocks."""

    group: str
    number: int
    waiting_ns: int
    """Last start minus first start: what the first rank waited for the last."""
    transfer_ns: int
    """Shortest duration over the ranks: that of a rank which waited least."""
    end_spread_ns: int
    """How far the ends disagree: what is left of the clock error."""
    late_rank: int
    """The rank that started last."""


@dataclass(frozen=True, slots=True)
class Offsets:
    """Clock offset of each rank against the first one, in nanoseconds; subtract it to align."""

    offset_ns: dict[int, int]
    num_collectives: int
    residual_ns: int
    """Median over the collectives used of the spread of their ends after alignment."""
    unreached: tuple[int, ...]
    """Ranks that share no collective with the others; their offset is 0 by assumption."""


def match_collectives(ranks: Mapping[int, Sequence[Event]]) -> tuple[list[Shared], list[str]]:
    """The n-th collective of a kind and process group on one rank is the n-th on every other one.

    Also returns a sentence for each kind whose number differs between ranks: those are left out, because
    a capture that was cut would pair the wrong ones.
    """
    seen: dict[Key, dict[int, list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
    for rank, events in ranks.items():
        for event in sorted((e for e in events if e.is_measured), key=lambda e: e.start_ns):
            args = device_args(event)
            collective = args.collective or ""
            group = DEFAULT_LANES.group_of(event.name, cat=event.cat, collective=collective)
            if group in COMMUNICATION_GROUPS:
                members = str(args.process_group or "")
                seen[group, collective, members][rank].append((event.start_ns, event.end_ns))
    shared: list[Shared] = []
    problems: list[str] = []
    for (group, _, members), spans in sorted(seen.items()):
        counts = {rank: len(found) for rank, found in spans.items()}
        if len(counts) < 2:
            continue
        if len(set(counts.values())) > 1:
            problems.append(f"{group} {members}: ranks hold different numbers of them ({counts}); left out")
            continue
        for number in range(next(iter(counts.values()))):
            shared.append(Shared(group, number, {rank: found[number] for rank, found in spans.items()}))
    return shared, problems


def estimate_offsets(ranks: Sequence[int], shared: Sequence[Shared]) -> Offsets:
    """Offsets from the ends of shared collectives; from SendRecv kernels only where there is nothing else.

    Each rank is linked to one whose offset is known by the median of the differences of their ends.
    """
    used = [s for s in shared if s.group in ALIGNING_GROUPS] or [
        s for s in shared if s.group == POINT_TO_POINT
    ]
    offset_ns = {ranks[0]: 0}
    frontier = [ranks[0]]
    while frontier:
        known = frontier.pop(0)
        for rank in ranks:
            ends = [
                (s.spans[rank][1], s.spans[known][1]) for s in used if rank in s.spans and known in s.spans
            ]
            if rank in offset_ns or not ends:
                continue
            offset_ns[rank] = offset_ns[known] + round(float(np.median([a - b for a, b in ends])))
            frontier.append(rank)
    unreached = tuple(rank for rank in ranks if rank not in offset_ns)
    offset_ns.update((rank, 0) for rank in unreached)
    spreads = [row.end_spread_ns for row in collective_rows(used, offset_ns)]
    return Offsets(offset_ns, len(used), round(float(np.median(spreads))) if spreads else 0, unreached)


def collective_rows(shared: Sequence[Shared], offset_ns: Mapping[int, int]) -> list[CollectiveRow]:
    """Waiting and transfer of each collective once the offsets are taken off."""
    rows = []
    for one in shared:
        starts = {rank: start - offset_ns[rank] for rank, (start, _) in one.spans.items()}
        ends = [end - offset_ns[rank] for rank, (_, end) in one.spans.items()]
        rows.append(
            CollectiveRow(
                group=one.group,
                number=one.number,
                waiting_ns=max(starts.values()) - min(starts.values()),
                transfer_ns=min(end - start for start, end in one.spans.values()),
                end_spread_ns=max(ends) - min(ends),
                late_rank=max(starts, key=lambda rank: (starts[rank], -rank)),
            )
        )
    return rows
