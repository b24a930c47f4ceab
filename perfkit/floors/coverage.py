"""How many bytes of one storage several tensor uses cover together: exact where possible, else in bounds."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from perfkit.wire.ledger import TensorUse

_MAX_RUNS = 1 << 21
"""Contiguous runs up to which parts of different layout are laid out and merged one by one."""


class Cover(NamedTuple):
    """Bytes covered: at least and at most; equal where the count is exact."""

    least: int
    most: int


class _Part(NamedTuple):
    """Byte addresses `offset + sum(i_d * stride_d)`; dims are (size, stride), from the largest stride."""

    offset: int
    dims: tuple[tuple[int, int], ...]


def cover(uses: Iterable[TensorUse]) -> Cover:
    """Bytes in the union of uses of one storage.

    Exact for uses that are equal, contiguous or laid out alike (slices of one matrix), and for all
    others of moderate size. A use that touches fewer bytes than its view spans (rows of a table) may
    lie anywhere in its view, so only bounds can be given for it.
    """
    return _cover(tuple(dict.fromkeys(uses)))


def overlap(some: Sequence[TensorUse], others: Sequence[TensorUse]) -> Cover:
    """Bytes that lie both in the union of `some` and in the union of `others`."""
    a, b, both = cover(some), cover(others), cover((*some, *others))
    return Cover(
        max(0, a.least + b.least - both.most), max(0, min(a.most, b.most, a.most + b.most - both.least))
    )


def beyond(uses: Sequence[TensorUse], known: Sequence[TensorUse]) -> Cover:
    """Bytes in the union of `uses` that are not in the union of `known`."""
    known_bytes, both = cover(known), cover((*known, *uses))
    return Cover(max(0, both.least - known_bytes.most), max(0, both.most - known_bytes.least))


def is_contained(use: TensorUse, known: Sequence[TensorUse]) -> bool:
    """Whether `known` certainly covers all bytes of `use`."""
    return beyond((use,), known).most == 0


@functools.lru_cache(maxsize=1 << 16)
def _cover(uses: tuple[TensorUse, ...]) -> Cover:
    if not uses:
        return Cover(0, 0)
    limit = max(use.storage_bytes for use in uses) or sum(use.num_bytes for use in uses)
    scattered = [use for use in uses if _is_scattered(use)]
    dense = tuple(dict.fromkeys(_part(use) for use in uses if not _is_scattered(use)))
    found = _union(dense)
    # What is scattered over a view that is covered anyway adds nothing to it.
    outside = [u for u in scattered if _union((*dense, _part(u))).most > found.least]
    least = max([found.least, *(use.num_bytes for use in scattered)])
    return Cover(min(least, limit), min(found.most + sum(use.num_bytes for use in outside), limit))


def _part(use: TensorUse) -> _Part:
    """The bytes of a use; one that names fewer bytes by its view than it counts is contiguous."""
    offset, sizes, strides = use.view
    start = offset * use.itemsize
    if use.num_bytes > math.prod(sizes) * use.itemsize:
        return _Part(start, ((use.num_bytes, 1),))
    dims = [(n, s * use.itemsize) for n, s in zip(sizes, strides, strict=True) if n > 1 or n == 0]
    return _Part(start, _merged([*dims, (use.itemsize, 1)]))


def _merged(dims: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    merged: list[tuple[int, int]] = []
    for size, stride in sorted(dims, key=lambda d: (-d[1], -d[0])):
        if merged and merged[-1][1] == size * stride:
            merged[-1] = (merged[-1][0] * size, stride)
        else:
            merged.append((size, stride))
    return tuple(merged)


@functools.lru_cache(maxsize=1 << 16)
def _is_scattered(use: TensorUse) -> bool:
    return use.num_bytes < _union((_part(use),)).least


@functools.lru_cache(maxsize=1 << 16)
def _union(parts: tuple[_Part, ...]) -> Cover:
    parts = tuple(dict.fromkeys(part for part in parts if all(size for size, _ in part.dims)))
    if not parts:
        return Cover(0, 0)
    if all(len(part.dims) == 1 and part.dims[0][1] == 1 for part in parts):
        return _exactly(_merged_length([(part.offset, part.dims[0][0]) for part in parts]))
    if len(parts) == 1 and not _overlaps_itself(parts[0]):
        return _exactly(math.prod(size for size, _ in parts[0].dims))
    inner = _inner_parts(parts)
    if inner is not None:
        size = parts[0].dims[0][0]
        return Cover(*(size * bound for bound in _union(inner)))
    if sum(_num_runs(part) for part in parts) <= _MAX_RUNS:
        return _exactly(_laid_out(parts))
    single = [_single_bounds(part) for part in parts]
    return Cover(max(b.least for b in single), sum(b.most for b in single))


def _exactly(num_bytes: int) -> Cover:
    return Cover(num_bytes, num_bytes)


def _merged_length(intervals: Iterable[tuple[int, int]]) -> int:
    """Total length of (start, length) intervals."""
    total, end = 0, 0
    for start, length in sorted(intervals):
        total += max(0, start + length - max(start, end))
        end = max(end, start + length)
    return total


def _inner_parts(parts: tuple[_Part, ...]) -> tuple[_Part, ...] | None:
    """The parts without an outermost dim that all share, if one period of it holds each of them."""
    outer = parts[0].dims[0]
    if outer[1] == 1 or any(part.dims[0] != outer for part in parts):
        return None
    first = min(part.offset for part in parts)
    inner = tuple(_Part(part.offset - first, part.dims[1:]) for part in parts)
    return inner if all(part.offset + _extent(part.dims) <= outer[1] for part in inner) else None


def _extent(dims: Iterable[tuple[int, int]]) -> int:
    return 1 + sum((size - 1) * stride for size, stride in dims)


def _overlaps_itself(part: _Part) -> bool:
    return any(_extent(part.dims[i + 1 :]) > stride for i, (_, stride) in enumerate(part.dims))


def _num_runs(part: _Part) -> int:
    return math.prod(size for size, _ in part.dims[:-1])


def _laid_out(parts: tuple[_Part, ...]) -> int:
    """Total length of all runs of all parts, merged."""
    starts, ends = [], []
    for part in parts:
        at = np.array([part.offset], dtype=np.int64)
        for size, stride in part.dims[:-1]:
            at = (at[:, None] + np.arange(size, dtype=np.int64)[None, :] * stride).reshape(-1)
        starts.append(at)
        ends.append(at + _extent(part.dims[-1:]))
    start, end = np.concatenate(starts), np.concatenate(ends)
    order = np.argsort(start, kind="stable")
    start, end = start[order], end[order]
    covered_until = np.concatenate(([np.int64(0)], np.maximum.accumulate(end)[:-1]))
    return int(np.maximum(0, end - np.maximum(start, covered_until)).sum())


def _single_bounds(part: _Part) -> Cover:
    """Bounds for one part that is too large to lay out: the dims that certainly do not overlap, and all."""
    most = math.prod(size for size, _ in part.dims)
    if not _overlaps_itself(part):
        return _exactly(most)
    return Cover(max(size for size, _ in part.dims), most)
