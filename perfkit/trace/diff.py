"""Compares the device work of two traces, each difference judged against the spread between steps."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Literal

import msgspec
import numpy as np

from perfkit.trace.columns import ColumnBuilder, Columns, Kind
from perfkit.trace.events import Event
from perfkit.trace.families import family_of

Match = Literal["name", "pattern", "family", "only in A", "only in B"]
Verdict = Literal["slower", "faster", "within spread", "not judged"]

_INDUCTOR_NUMBER = re.compile(r"^(triton_[a-z]+_fused_.*?|triton_[a-z]+_fused)_\d+$")
_TEMPLATE = re.compile(r"<.*>|\(.*\)$", re.DOTALL)
_TILES = re.compile(r"\d+x\d+(x\d+)*|(?<=_)\d+(?=_|$)")


class DiffRow(msgspec.Struct, frozen=True, kw_only=True):
    """Kernels that correspond to each other. Times are per step, in nanoseconds."""

    name: str
    match: Match
    """How they were paired: equal names; names equal but for numbers, tiles and template arguments; or one
    family of work (other fusion, other vendor)."""
    a_ns: float
    """Mean over the steps, so that the rows add up to the total."""
    b_ns: float
    difference_ns: float
    spread_ns: int
    """The larger of the two ranges between steps."""
    a_calls: float
    b_calls: float
    verdict: Verdict


class TraceDiff(msgspec.Struct, frozen=True, kw_only=True):
    """Two traces; the rows add up to the totals."""

    a: str
    b: str
    a_steps: int
    """Steps that were used; the first of three or more is left out as warm-up."""
    b_steps: int
    total: DiffRow
    rows: tuple[DiffRow, ...]


class _Work:
    """Per-step times and calls of one trace, by kind of slice."""

    def __init__(self, columns: Columns) -> None:
        self.kinds = columns.kinds
        launched_ns = columns.launched_ns
        windows = [(launched_ns >= start) & (launched_ns < end) for _, start, end in columns.steps]
        windows = [window for window in windows if window.any()]
        if not columns.steps and columns.num_slices:
            windows = [np.full(columns.num_slices, True)]
        windows = windows[1:] if len(windows) >= 3 else windows
        self.num_steps = len(windows)
        number = len(columns.kinds)
        duration_ns = columns.end_ns - columns.start_ns
        self.times_ns = np.zeros((len(windows), number))
        self.calls = np.zeros((len(windows), number))
        for step, window in enumerate(windows):
            kind = columns.kind[window]
            self.times_ns[step] = np.bincount(kind, weights=duration_ns[window], minlength=number)
            self.calls[step] = np.bincount(kind, minlength=number)


def diff(a: Iterable[Iterable[Event]], b: Iterable[Iterable[Event]], *, names: tuple[str, str]) -> TraceDiff:
    """The comparison of two traces that arrive in batches.

    Kernels are paired by name, what is left by pattern, and what is left then by family; the rest is in one
    trace only. A difference counts when it is larger than the range between steps of either trace; with
    fewer than two steps in one of them it is not judged.
    """
    one, two = _Work(_columns(a)), _Work(_columns(b))
    rows = [_row(one, two, key, match, *members) for key, match, members in _pairs(one.kinds, two.kinds)]
    everything = (list(range(len(one.kinds))), list(range(len(two.kinds))))
    return TraceDiff(
        a=names[0],
        b=names[1],
        a_steps=one.num_steps,
        b_steps=two.num_steps,
        total=_row(one, two, "all device work", "name", *everything),
        rows=tuple(sorted(rows, key=lambda row: (-abs(row.difference_ns), row.name))),
    )


def pattern_of(name: str) -> str:
    """A kernel name without what changes between compilations: numbers, tile sizes, template arguments."""
    inductor = _INDUCTOR_NUMBER.match(name)
    if inductor:
        return inductor[1]
    return _TILES.sub("#", _TEMPLATE.sub("", name))


def _columns(batches: Iterable[Iterable[Event]]) -> Columns:
    builder = ColumnBuilder()
    for events in batches:
        builder.add(events)
    return builder.build()


def _pairs(a: list[Kind], b: list[Kind]) -> list[tuple[str, Match, tuple[list[int], list[int]]]]:
    left, right = set(range(len(a))), set(range(len(b)))
    found: list[tuple[str, Match, tuple[list[int], list[int]]]] = []
    levels: tuple[tuple[Match, Callable[[Kind], str]], ...] = (
        ("name", lambda kind: kind.name),
        ("pattern", lambda kind: pattern_of(kind.name)),
        ("family", lambda kind: family_of(kind.name, cat=kind.cat).value),
    )
    for match, key_of in levels:
        ours, theirs = _grouped(a, left, key_of), _grouped(b, right, key_of)
        for key in sorted(ours.keys() & theirs.keys()):
            if match == "family" and key == "unclassified":  # two unknown kernels have nothing in common
                continue
            found.append((key, match, (ours[key], theirs[key])))
            left -= set(ours[key])
            right -= set(theirs[key])
    found += [(key, "only in A", (members, [])) for key, members in _grouped(a, left, levels[0][1]).items()]
    found += [(key, "only in B", ([], members)) for key, members in _grouped(b, right, levels[0][1]).items()]
    return found


def _grouped(kinds: list[Kind], members: set[int], key_of: Callable[[Kind], str]) -> Mapping[str, list[int]]:
    groups: dict[str, list[int]] = defaultdict(list)
    for index in sorted(members):
        groups[key_of(kinds[index])].append(index)
    return groups


def _row(one: _Work, two: _Work, name: str, match: Match, a: list[int], b: list[int]) -> DiffRow:
    times_a, times_b = one.times_ns[:, a].sum(axis=1), two.times_ns[:, b].sum(axis=1)
    a_ns, b_ns = _mean(times_a), _mean(times_b)
    spread_ns = max(_range(times_a), _range(times_b))
    return DiffRow(
        name=name,
        match=match,
        a_ns=a_ns,
        b_ns=b_ns,
        difference_ns=b_ns - a_ns,
        spread_ns=spread_ns,
        a_calls=_mean(one.calls[:, a].sum(axis=1)),
        b_calls=_mean(two.calls[:, b].sum(axis=1)),
        verdict=_verdict(b_ns - a_ns, spread_ns, min(one.num_steps, two.num_steps)),
    )


def _verdict(difference_ns: float, spread_ns: int, num_steps: int) -> Verdict:
    if num_steps < 2:
        return "not judged"
    if abs(difference_ns) <= spread_ns:
        return "within spread"
    return "slower" if difference_ns > 0 else "faster"


def _mean(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
    return float(np.mean(values)) if len(values) else 0.0


def _range(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> int:
    return int(values.max() - values.min()) if len(values) else 0
