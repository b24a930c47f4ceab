"""Which distinct elements of its storage a tensor covers, in a form in which equal parts look equal."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import torch

_MAX_SPAN = 1 << 28
"""Elements up to which overlapping parts are counted exactly, with one bit per element (32 MiB)."""


class Part(NamedTuple):
    """Addresses `offset + sum(i_d * strides[d])` for `0 <= i_d < sizes[d]`, in elements."""

    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]


def part_of(tensor: torch.Tensor) -> Part:
    """The addresses that a strided tensor covers, as a set.

    Broadcast dims are gone, dims are sorted from the largest stride, and neighbours that continue each
    other are merged, so a matrix, its transpose and its flat view give the same part.
    """
    offset = int(tensor.storage_offset())
    if tensor.numel() == 0:
        return Part(offset, (0,), (1,))
    dims = [(int(n), int(s)) for n, s in zip(tensor.shape, tensor.stride(), strict=True) if n > 1 and s > 0]
    return Part(offset, *merge_dims(dims))


def merge_dims(dims: Iterable[tuple[int, int]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Sizes and strides of the same address set with the fewest dims."""
    merged: list[tuple[int, int]] = []
    for size, stride in sorted(dims, key=lambda d: (-d[1], -d[0])):
        if merged and merged[-1][1] == size * stride:
            merged[-1] = (merged[-1][0] * size, stride)
        else:
            merged.append((size, stride))
    return tuple(n for n, _ in merged), tuple(s for _, s in merged)


def num_distinct(part: Part) -> int:
    """Distinct addresses of a part; a lower bound where more than 2**28 addresses overlap each other."""
    dims = sorted(zip(part.sizes, part.strides, strict=True), key=lambda d: d[1])
    extents = [0]
    for size, stride in dims:
        extents.append(extents[-1] + (size - 1) * stride)
    overlapping = [i for i, (_, stride) in enumerate(dims) if stride <= extents[i]]
    split = overlapping[-1] + 1 if overlapping else 0
    outer = math.prod(size for size, _ in dims[split:])
    if extents[split] > _MAX_SPAN:
        return outer * math.prod(n for i, (n, _) in enumerate(dims[:split]) if i not in overlapping)
    return outer * _marked(dims[:split]).bit_count()


def _marked(dims: list[tuple[int, int]]) -> int:
    """The address set as the set bits of one integer; doubling keeps the number of shifts logarithmic."""
    bits = 1
    for size, stride in dims:
        row, have = bits, 1
        while have < size:
            step = min(have, size - have)
            row |= row << (step * stride)
            have += step
        bits = row
    return bits
