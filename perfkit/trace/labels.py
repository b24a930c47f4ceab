"""Time per label of a labelled trace (ranges named `pk:<index>`), closed against the whole step window."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from perfkit.trace.events import RANGE_CATS, Event
from perfkit.trace.kernels import has_device
from perfkit.trace.nesting import by_thread, innermost
from perfkit.trace.optimes import self_times
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


@dataclass(frozen=True, slots=True)
class _Piece:
    label: int | None
    name: str
    time_ns: int


def label_times(trace: Trace, *, prefix: str = LABEL_PREFIX, num_steps: int | None = None) -> LabelTimes:
    """Device time of each label: slice -> correlation -> launch call -> innermost label of its thread.

    Without device slices: self time of the CPU ops inside each label. Labels may repeat in every step.

    Raises:
        PerfkitError: the number of steps is unknown or differs from `num_steps`.
    """
    steps = count_steps(trace, num_steps=num_steps)
    labels = [
        e for e in trace.events if e.cat in RANGE_CATS and e.is_slice and _index(e.name, prefix) is not None
    ]
    if has_device(trace):
        pieces, num_unlinked = _device_pieces(trace, labels, prefix)
        labelling_ns = 0
    else:
        pieces, labelling_ns = _op_pieces(trace, labels, prefix)
        num_unlinked = 0
    return _summed(pieces, steps=steps, labelling_ns=labelling_ns, num_unlinked=num_unlinked)


def _index(name: str, prefix: str) -> int | None:
    digits = name[len(prefix) :]
    return int(digits) if name.startswith(prefix) and digits.isascii() and digits.isdigit() else None


def _device_pieces(trace: Trace, labels: list[Event], prefix: str) -> tuple[list[_Piece], int]:
    slices = device_slices(trace)
    linked = [s for s in slices if s.launch is not None]
    found = innermost(labels, (s.launch for s in linked if s.launch), lambda e: _index(e.name, prefix))
    pieces = [_Piece(found.get(i), s.event.name, s.event.dur_ns) for i, s in enumerate(linked)]
    unlinked = [_Piece(None, s.event.name, s.event.dur_ns) for s in slices if s.launch is None]
    return pieces + unlinked, len(unlinked)


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


def _summed(pieces: list[_Piece], *, steps: int, labelling_ns: int, num_unlinked: int) -> LabelTimes:
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
