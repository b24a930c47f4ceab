"""One number that tells whether two processes computed the same tensors."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch

_PERIOD = 8191
"""A prime: no power-of-two shape repeats its weights row by row."""
_CHUNK = 1 << 24


def position_weighted_sum(tensors: Iterable[torch.Tensor]) -> float | None:
    """Sum over all elements of value times a weight in (1, 2] that depends on position, in float64.

    Unlike a norm it sees signs, and unlike a plain sum it sees order. The tensor's place among the
    tensors shifts the weights, so swapped gradients show as well. Complex values count as pairs. None
    where the sum is not finite.
    """
    total = 0.0
    for place, tensor in enumerate(tensors):
        flat = tensor.detach().reshape(-1)
        if flat.is_complex():
            flat = torch.view_as_real(flat).reshape(-1)
        for start in range(0, flat.numel(), _CHUNK):
            chunk = flat[start : start + _CHUNK].to(torch.float64)
            index = torch.arange(start + place + 1, start + place + 1 + chunk.numel(), device=flat.device)
            total += float((chunk * (1.0 + (index % _PERIOD + 1).to(torch.float64) / _PERIOD)).sum())
    return total if math.isfinite(total) else None
