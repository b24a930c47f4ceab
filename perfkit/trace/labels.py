"""Time per label of a labelled trace (ranges named `pk:<index>`), closed against the whole step window."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from perfkit.trace.events import RANGE_CATS, Event
from perfkit.trace.kernels import has_device
from perfkit.trace.nesting import by_thread, innermost
from perfkit.trace.optimes import self_times
from perfkit.trace.plain_ops import retimed_ops
from perfkit.trace.reader import Trace
from perfkit.trace.steps import count_steps, device_slices, ops_in_steps

LABEL_PREFIX = "pk:"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelKernel:
    """One kernel (CPU: op) name under one label, averaged over the steps."""

    name: str
    num_calls: float
    time_us: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelTimes:
    """Averages per step. The times of all labels and `unattributed_us` add up to `total_us`."""

    times_us: dict[int, float]
    kernels: dict[int, tuple[LabelKernel, ...]]
    unattributed_us: float
    unattributed_kernels: tuple[LabelKernel, ...]
    total_us: float
    labelling_us: float
    """CPU-only traces: self time of ops that have a label inside them (dispatch, and the labelling itself),
    which is in none of the other numbers. 0 with device slices."""
    num_steps: int
    num_unlinked: float
    """Device slices per step whose launch call is not in the trace; they are unattributed."""
    times_from: Literal["labelled", "plain"] = "labelled"
    """Which run the times are of; the labels are always of the labelled one."""


@dataclass(frozen=True, slots=True)
class _Piece:
    label: int | None
    name: str
    time_ns: int


def label_times(
    trace: Trace,
    *,
    prefix: str = LABEL_PREFIX,
    num_steps: int | None = None,
    plain: Trace | None = None,
) -> LabelTimes:
    """Device time of each label: slice -> correlation -> launch call -> innermost label of its thread.

    Without device slices: self time of the CPU ops inside each label. Labels may repeat in every step.

    Labels slow the host down, the GPU idles between kernels, stays cooler and runs them faster than the real
    step does; small CPU ops take twice as long with them. `plain` is a trace of the same steps without
    labels: where its kernels (CPU: ops) have the same names in the same order, its durations are taken.

    Raises:
        PerfkitError: the number of steps is unknown or differs from `num_steps`.
    """
    steps = count_steps(trace, num_steps=num_steps)
    labels = [
        e for e in trace.events if e.cat in RANGE_CATS and e.is_slice and _index(e.name, prefix) is not None
    ]
    if not has_device(trace):
        if plain is not None and (joined := _plain_op_pieces(trace, labels, plain, prefix)) is not None:
            return _summed(joined[0], steps=joined[1], times_from="plain")
        pieces, labelling_ns = _op_pieces(trace, labels, prefix)
        return _summed(pieces, steps=steps, labelling_ns=labelling_ns)
    pieces, num_unlinked = _device_pieces(trace, labels, prefix)
    retimed = _retimed(pieces, plain) if plain is not None else None
    return _summed(
        retimed or pieces,
        steps=steps,
        num_unlinked=num_unlinked,
        times_from="plain" if retimed else "labelled",
    )


def _index(name: str, prefix: str) -> int | None:
    digits = name[len(prefix) :]
    return int(digits) if name.startswith(prefix) and digits.isascii() and digits.isdigit() else None


def _device_pieces(trace: Trace, labels: list[Event], prefix: str) -> tuple[list[_Piece], int]:
    """The slices in the order in which they ran, and how many of them have no launch call."""
    slices = device_slices(trace)
    linked = [(i, s.launch) for i, s in enumerate(slices) if s.launch is not None]
    found = innermost(labels, (launch for _, launch in linked), lambda e: _index(e.name, prefix))
    label_of = {i: found.get(position) for position, (i, _) in enumerate(linked)}
    pieces = [_Piece(label_of.get(i), s.event.name, s.event.dur_ns) for i, s in enumerate(slices)]
    return pieces, len(slices) - len(linked)


def _retimed(pieces: list[_Piece], plain: Trace) -> list[_Piece] | None:
    """The pieces with the durations of the plain run; None where it did not run the same kernels in order."""
    events = [piece.event for piece in device_slices(plain)]
    if [event.name for event in events] != [piece.name for piece in pieces]:
        return None
    return [
        _Piece(piece.label, piece.name, event.dur_ns) for piece, event in zip(pieces, events, strict=True)
    ]


def _plain_op_pieces(
    trace: Trace, labels: list[Event], plain: Trace, prefix: str
) -> tuple[list[_Piece], int] | None:
    indexed = [(label, index) for label in labels if (index := _index(label.name, prefix)) is not None]
    ops = [op for op in ops_in_steps(trace) if _index(op.name, prefix) is None]
    joined = retimed_ops(ops, indexed, plain)
    if joined is None:
        return None
    return [_Piece(*timed) for timed in joined[0]], joined[1]


def _op_pieces(trace: Trace, labels: list[Event], prefix: str) -> tuple[list[_Piece], int]:
    ops = [op for op in ops_in_steps(trace) if _index(op.name, prefix) is None]
    holding = {id(op) for op in innermost(ops, labels, lambda op: op).values()}
    holding |= _outer(ops, holding)
    timed = self_times(ops)
    found = innermost(labels, (op for op, _ in timed), lambda e: _index(e.name, prefix))
    pieces, labelling_ns = [], 0
    for position, (op, time_ns) in enumerate(timed):
        if id(op) in holding:
            labelling_ns += time_ns
        else:
            pieces.append(_Piece(found.get(position), op.name, time_ns))
    return pieces, labelling_ns


def _outer(ops: list[Event], holding: set[int]) -> set[int]:
    """Every op around an op of `holding`, by identity: found by walking each thread's stack once."""
    outer: set[int] = set()
    for members in by_thread(ops).values():
        opened: list[Event] = []
        for op in members:
            while opened and opened[-1].end_ns <= op.start_ns:
                opened.pop()
            if id(op) in holding:
                outer.update(id(parent) for parent in opened)
            opened.append(op)
    return outer


def _summed(
    pieces: list[_Piece],
    *,
    steps: int,
    labelling_ns: int = 0,
    num_unlinked: int = 0,
    times_from: Literal["labelled", "plain"] = "labelled",
) -> LabelTimes:
    members: dict[int | None, list[_Piece]] = defaultdict(list)
    for piece in pieces:
        members[piece.label].append(piece)
    unattributed = members.pop(None, [])
    labelled = {label: group for label, group in sorted(members.items()) if label is not None}
    return LabelTimes(
        times_us={label: _time_us(group, steps) for label, group in labelled.items()},
        kernels={label: _by_name(group, steps) for label, group in labelled.items()},
        unattributed_us=_time_us(unattributed, steps),
        unattributed_kernels=_by_name(unattributed, steps),
        total_us=_time_us(pieces, steps),
        labelling_us=labelling_ns / steps / 1000,
        num_steps=steps,
        num_unlinked=num_unlinked / steps,
        times_from=times_from,
    )


def _time_us(pieces: Iterable[_Piece], steps: int) -> float:
    return sum(piece.time_ns for piece in pieces) / steps / 1000


def _by_name(pieces: Iterable[_Piece], steps: int) -> tuple[LabelKernel, ...]:
    times: dict[str, list[int]] = defaultdict(list)
    for piece in pieces:
        times[piece.name].append(piece.time_ns)
    rows = [
        LabelKernel(name=name, num_calls=len(group) / steps, time_us=sum(group) / steps / 1000)
        for name, group in times.items()
    ]
    return tuple(sorted(rows, key=lambda row: (-row.time_us, row.name)))
