"""Ways to reach a device's bandwidth and matrix rates, the same on CPU and GPU where torch has them."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from .ceilings import Way

FLOAT_BYTES = 4


@dataclass(frozen=True)
class Buffers:
    """Three equal float32 buffers of random numbers; zeros can be faster than real data."""

    a: torch.Tensor
    b: torch.Tensor
    c: torch.Tensor

    @property
    def num_bytes(self) -> int:
        """Of one buffer."""
        return self.a.numel() * FLOAT_BYTES

    @property
    def size(self) -> str:
        """`1024 MiB`."""
        return f"{self.num_bytes / 2**20:.0f} MiB"


def make_buffers(num_bytes: int, device: torch.device) -> Buffers:
    """Buffers of `num_bytes` each, rounded down to whole pages of 16 KiB."""
    num_elements = num_bytes // 16384 * 4096
    a, b, c = (torch.rand(num_elements, device=device) for _ in range(3))
    return Buffers(a, b, c)


def read_ways(buffers: Buffers) -> list[Way]:
    """Reductions to next to nothing; one kernel of our own on a GPU, where torch's may fall short."""
    a, b = buffers.a, buffers.b
    size, num_bytes = buffers.size, buffers.num_bytes
    rows = a.view(-1, 4096)
    ways = [
        Way(f"torch.sum of {size}", num_bytes, lambda: torch.sum(a)),
        Way(f"torch.amax of {size}", num_bytes, lambda: torch.amax(a)),
        Way(f"torch.sum of the rows of {size}", num_bytes, lambda: torch.sum(rows, dim=1)),
        Way(f"torch.dot of twice {size}", 2 * num_bytes, lambda: torch.dot(a, b)),
    ]
    if a.device.type == "cuda" and importlib.util.find_spec("triton") is not None:
        ways += [_triton_way(a, size, num_bytes, per_sm) for per_sm in (4, 8, 16)]
    return ways


def _triton_way(a: torch.Tensor, size: str, num_bytes: int, per_sm: int) -> Way:
    from .triton_read import read_all

    num_sms = torch.cuda.get_device_properties(a.device).multi_processor_count
    out = torch.empty(per_sm * num_sms, device=a.device)
    return Way(
        f"own Triton read kernel over {size}, {per_sm} programs per SM", num_bytes, lambda: read_all(a, out)
    )


def write_ways(buffers: Buffers) -> list[Way]:
    """Filling a buffer."""
    c, size = buffers.c, buffers.size
    return [
        Way(f"fill_ of {size}", buffers.num_bytes, lambda: c.fill_(1.5)),
        Way(f"zero_ of {size}", buffers.num_bytes, lambda: c.zero_()),
    ]


def copy_ways(buffers: Buffers) -> list[Way]:
    """One buffer read, one written; both count."""
    a, c, size = buffers.a, buffers.c, buffers.size
    return [
        Way(f"copy_ of {size}", 2 * buffers.num_bytes, lambda: c.copy_(a)),
        Way(f"torch.neg of {size}", 2 * buffers.num_bytes, lambda: torch.neg(a, out=c)),
    ]


def triad_ways(buffers: Buffers) -> list[Way]:
    """Two buffers read, one written; all three count."""
    a, b, c, size = buffers.a, buffers.b, buffers.c, buffers.size
    return [
        Way(f"torch.add of twice {size}", 3 * buffers.num_bytes, lambda: torch.add(a, b, out=c)),
        Way(f"torch.mul of twice {size}", 3 * buffers.num_bytes, lambda: torch.mul(a, b, out=c)),
    ]


def gemm_ways(dtype: torch.dtype, device: torch.device, shapes: Sequence[tuple[int, int, int]]) -> list[Way]:
    """Matrix products of random numbers; each shape (m, n, k) with both layouts of the second matrix."""
    ways = []
    for m, n, k in shapes:
        x = torch.randn(m, k, device=device).to(dtype)
        w = torch.randn(n, k, device=device).to(dtype)
        square = w.t().contiguous()
        size, num_flops = f"{m}x{n}x{k}", 2.0 * m * n * k
        ways.append(Way(f"x @ w.T, {size}", num_flops, lambda x=x, w=w: x @ w.t()))  # type: ignore[misc]
        ways.append(Way(f"x @ w, {size}", num_flops, lambda x=x, w=square: x @ w))  # type: ignore[misc]
    return ways
