"""A kernel that reads a buffer and does next to nothing else, for the read-only bandwidth of a GPU."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

BLOCK = 4096


@triton.jit  # type: ignore[untyped-decorator]
def _read(x_ptr, out_ptr, num_elements, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    program = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(program * BLOCK, num_elements, tl.num_programs(0) * BLOCK):
        total += tl.load(x_ptr + start + lanes)
    tl.store(out_ptr + program, tl.sum(total))


@triton.jit
def _nothing(out_ptr):  # type: ignore[no-untyped-def]
    tl.store(out_ptr, 1.0)


def read_all(x: torch.Tensor, out: torch.Tensor) -> None:
    """Reads a float32 buffer of a multiple of 4096 elements; `out` gets one sum per program."""
    _read[(out.numel(),)](x, out, x.numel(), BLOCK=BLOCK, num_warps=8)


def store_one(out: torch.Tensor) -> None:
    """The least kernel that has an effect: one program stores one number."""
    _nothing[(1,)](out, num_warps=1)
