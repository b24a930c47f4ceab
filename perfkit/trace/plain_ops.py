"""CPU ops of an unlabelled run, matched to the labels of a labelled one by the order of their names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from perfkit.trace.events import RANGE_CATS, Event
from perfkit.trace.nesting import innermost
from perfkit.trace.optimes import self_times
from perfkit.trace.reader import Trace
from perfkit.trace.steps import ops_in_steps

TIMED = "pk:timed"
"""Range around each call of a plain CPU profile; the first call is the profiler's own warm-up."""

LabelledOp = tuple[int, str]
"""Label, and the name of the outermost op inside it."""

TimedOp = tuple[int | None, str, int]
"""Label (None: under none), name, own nanoseconds."""


def retimed_ops(
    ops: Sequence[Event], labels: Sequence[tuple[Event, int]], plain: Trace
) -> tuple[list[TimedOp], int] | None:
    """(timed ops of the plain run, its number of steps), or None where it did not run the same ops in order.

    Labels slow small ops down by as much as they take; the plain run has no labels, but runs the same ops.

    Args:
        ops: CPU ops of the labelled steps.
        labels: the label ranges of the labelled steps with their indices.
    """
    sequence = _sequence(ops, labels)
    windows = _windows(plain)
    if sequence is None or not windows:
        return None
    timed: list[TimedOp] = []
    plain_ops = ops_in_steps(plain)
    for window in windows:
        inside = [op for op in plain_ops if window.start_ns <= op.start_ns < window.end_ns]
        matched = _matched(inside, sequence)
        if matched is None:
            return None
        label_of = {id(event): label for event, label in matched}
        own = self_times(inside)
        around = innermost([event for event, _ in matched], (op for op, _ in own), lambda event: event)
        for position, (op, time_ns) in enumerate(own):
            label = label_of[id(around[position])] if position in around else None
            timed.append((label, op.name, time_ns))
    return timed, len(windows)


def _sequence(ops: Iterable[Event], labels: Sequence[tuple[Event, int]]) -> list[LabelledOp] | None:
    """The labelled ops of the first step in order; None where a label holds no op."""
    ordered = sorted(labels, key=lambda pair: pair[0].start_ns)
    first = ordered[
        : next((i + 1 for i, (a, b) in enumerate(pairwise(ordered)) if b[1] <= a[1]), len(ordered))
    ]
    names: dict[int, str] = {}
    by_start = sorted(ops, key=lambda op: (op.start_ns, -op.dur_ns))
    found = innermost([event for event, _ in first], by_start, lambda event: event)
    index_of = {id(event): index for event, index in first}
    for position, op in enumerate(by_start):
        if position in found:
            names.setdefault(index_of[id(found[position])], op.name)
    if any(index not in names for _, index in first):
        return None
    return [(index, names[index]) for _, index in first]


def _windows(plain: Trace) -> list[Event]:
    found = [e for e in plain.events if e.cat in RANGE_CATS and e.is_slice and e.name == TIMED]
    return sorted(found, key=lambda event: event.start_ns)[1:]


def _matched(ops: Iterable[Event], sequence: Sequence[LabelledOp]) -> list[tuple[Event, int]] | None:
    """The ops whose names follow the sequence, in the order in which they end.

    What an op calls ends before it: a conjugate that is resolved inside a product was an op of its own,
    dispatched before the product, in the labelled run. Autograd adds gradients up in place where nobody else
    holds them, and whoever watches ops does: `add` and `add_` are one name here.
    """
    matched: list[tuple[Event, int]] = []
    for op in sorted(ops, key=lambda op: (op.end_ns, -op.start_ns)):
        if len(matched) == len(sequence):
            break
        label, name = sequence[len(matched)]
        if op.name.rstrip("_") == name.rstrip("_"):
            matched.append((op, label))
    return matched if len(matched) == len(sequence) else None
