"""RMSNorm in Triton: y = x / sqrt(mean(x^2) + eps) * weight over rows, forward and backward.

Both passes read and write each element once. A program owns a tile of whole rows, R rows by C columns:
one row where rows are long, many where they are short, so that every thread has several loads in flight.
The backward runs a fixed number of programs per SM; each walks over its share of the tiles, keeps its
part of the weight gradient in registers (float32), and writes it once. A second, small kernel adds
these parts in a fixed order, so equal inputs give equal bits on one device.
"""

from __future__ import annotations

import functools

import torch
import triton
import triton.language as tl
from torch import Tensor

MAX_COLS = 32768
"""Longest row that one program can hold in registers."""

TILE_ELEMENTS = 4096
"""Elements per tile where rows are shorter than that."""


@triton.jit
def _forward_kernel(
    x_ptr, weight_ptr, y_ptr, rstd_ptr, rows, cols, eps, TILE_R: tl.constexpr, TILE_C: tl.constexpr
):
    # 64-bit: rows * cols may pass 2^31.
    row_R = (tl.program_id(0) * TILE_R + tl.arange(0, TILE_R)).to(tl.int64)
    col_C = tl.arange(0, TILE_C)
    mask_RC = (row_R < rows)[:, None] & (col_C < cols)[None, :]
    offset_RC = row_R[:, None] * cols + col_C[None, :]

    x_RC = tl.load(x_ptr + offset_RC, mask=mask_RC, other=0.0).to(tl.float32)
    weight_C = tl.load(weight_ptr + col_C, mask=col_C < cols, other=0.0).to(tl.float32)
    rstd_R = tl.rsqrt(tl.sum(x_RC * x_RC, axis=1) / cols + eps)
    y_RC = x_RC * rstd_R[:, None] * weight_C[None, :]
    tl.store(y_ptr + offset_RC, y_RC.to(y_ptr.dtype.element_ty), mask=mask_RC)
    tl.store(rstd_ptr + row_R, rstd_R, mask=row_R < rows)


@triton.jit
def _backward_kernel(
    dy_ptr,
    x_ptr,
    weight_ptr,
    rstd_ptr,
    dx_ptr,
    part_ptr,
    rows,
    cols,
    TILE_R: tl.constexpr,
    TILE_C: tl.constexpr,
    NUM_STAGES: tl.constexpr,
):
    """With n = x * rstd: dx = rstd * (w dy - n * mean(w dy n)), and dw is the sum of dy * n over rows."""
    col_C = tl.arange(0, TILE_C)
    weight_C = tl.load(weight_ptr + col_C, mask=col_C < cols, other=0.0).to(tl.float32)
    dw_RC = tl.zeros([TILE_R, TILE_C], dtype=tl.float32)

    num_tiles = tl.cdiv(rows, TILE_R)
    # The explicit num_stages lets Triton prefetch the next tile; without it, only loops around tl.dot do.
    for tile in tl.range(tl.program_id(0), num_tiles, tl.num_programs(0), num_stages=NUM_STAGES):
        row_R = (tile * TILE_R + tl.arange(0, TILE_R)).to(tl.int64)
        mask_RC = (row_R < rows)[:, None] & (col_C < cols)[None, :]
        offset_RC = row_R[:, None] * cols + col_C[None, :]

        x_RC = tl.load(x_ptr + offset_RC, mask=mask_RC, other=0.0).to(tl.float32)
        dy_RC = tl.load(dy_ptr + offset_RC, mask=mask_RC, other=0.0).to(tl.float32)
        rstd_R = tl.load(rstd_ptr + row_R, mask=row_R < rows, other=0.0)
        normed_RC = x_RC * rstd_R[:, None]
        dw_RC += dy_RC * normed_RC

        wdy_RC = dy_RC * weight_C[None, :]
        mean_R = tl.sum(wdy_RC * normed_RC, axis=1) / cols
        dx_RC = rstd_R[:, None] * (wdy_RC - normed_RC * mean_R[:, None])
        tl.store(dx_ptr + offset_RC, dx_RC.to(dx_ptr.dtype.element_ty), mask=mask_RC)

    # Rows of the tile are added up only here, once: inside the loop no thread waits for another one.
    part_C = tl.sum(dw_RC, axis=0)
    tl.store(part_ptr + tl.program_id(0).to(tl.int64) * cols + col_C, part_C, mask=col_C < cols)


@triton.jit
def _add_parts_kernel(part_ptr, dw_ptr, num_parts, cols, TILE_P: tl.constexpr, TILE_C: tl.constexpr):
    col_C = tl.program_id(0) * TILE_C + tl.arange(0, TILE_C)
    sum_PC = tl.zeros([TILE_P, TILE_C], dtype=tl.float32)
    for start in range(0, num_parts, TILE_P):
        part_P = start + tl.arange(0, TILE_P)
        mask_PC = (part_P < num_parts)[:, None] & (col_C < cols)[None, :]
        offset_PC = part_P.to(tl.int64)[:, None] * cols + col_C[None, :]
        sum_PC += tl.load(part_ptr + offset_PC, mask=mask_PC, other=0.0)
    tl.store(dw_ptr + col_C, tl.sum(sum_PC, axis=0).to(dw_ptr.dtype.element_ty), mask=col_C < cols)


def _tile(cols: int) -> tuple[int, int]:
    """Rows and columns of a tile: the whole row, and as many rows as fit into TILE_ELEMENTS."""
    tile_c = triton.next_power_of_2(cols)
    return max(1, TILE_ELEMENTS // tile_c), tile_c


def _num_warps(tile_elements: int) -> int:
    """So many that a thread holds 16 elements: two 16-byte loads of bf16."""
    return min(16, max(1, tile_elements // (32 * 16)))


@functools.cache
def _num_sms(device: torch.device) -> int:
    """SMs of a CUDA or ROCm device; elsewhere a small number that is right, if not fast."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).multi_processor_count)
    return 4


class _RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x_RC: Tensor, weight_C: Tensor, eps: float, num_warps: int | None) -> Tensor:
        rows, cols = x_RC.shape
        tile_r, tile_c = _tile(cols)
        num_warps = num_warps or _num_warps(tile_r * tile_c)
        y_RC = torch.empty_like(x_RC)
        rstd_R = torch.empty(rows, device=x_RC.device, dtype=torch.float32)
        _forward_kernel[(triton.cdiv(rows, tile_r),)](
            x_RC, weight_C, y_RC, rstd_R, rows, cols, eps, TILE_R=tile_r, TILE_C=tile_c, num_warps=num_warps
        )
        ctx.save_for_backward(x_RC, weight_C, rstd_R)
        ctx.num_warps = num_warps
        return y_RC

    @staticmethod
    def backward(ctx, dy_RC: Tensor):
        x_RC, weight_C, rstd_R = ctx.saved_tensors
        rows, cols = x_RC.shape
        tile_r, tile_c = _tile(cols)
        num_warps = ctx.num_warps
        # 512 threads per SM: more would not fit into the registers beside the weight gradient.
        programs_per_sm = max(1, 16 // num_warps)
        num_programs = min(_num_sms(x_RC.device) * programs_per_sm, max(1, triton.cdiv(rows, tile_r)))
        dx_RC = torch.empty_like(x_RC)
        part_PC = torch.empty(num_programs, cols, device=x_RC.device, dtype=torch.float32)
        _backward_kernel[(num_programs,)](
            dy_RC.contiguous(),
            x_RC,
            weight_C,
            rstd_R,
            dx_RC,
            part_PC,
            rows,
            cols,
            TILE_R=tile_r,
            TILE_C=tile_c,
            NUM_STAGES=2 if tile_r * tile_c <= 8192 else 1,
            num_warps=num_warps,
        )
        dw_C = torch.empty_like(weight_C)
        _add_parts_kernel[(triton.cdiv(cols, 32),)](
            part_PC, dw_C, num_programs, cols, TILE_P=64, TILE_C=32, num_warps=4
        )
        return dx_RC, dw_C, None, None


def rms_norm(x: Tensor, weight: Tensor, *, eps: float, num_warps: int | None = None) -> Tensor:
    """RMSNorm over the last dim of x, computed in float32 and rounded once to x's dtype.

    Args:
        x: [..., cols] in float32, bfloat16 or float16; made contiguous where it is not.
        weight: [cols].
        num_warps: Warps per program of both passes; chosen by shape when None.

    Raises:
        ValueError: float64, which would silently be narrowed, or rows longer than MAX_COLS.
    """
    if x.dtype == torch.float64:
        raise ValueError("rms_norm computes in float32; float64 input would lose precision silently")
    if x.shape[-1] > MAX_COLS:
        raise ValueError(f"rms_norm holds a row in registers: at most {MAX_COLS} columns, got {x.shape[-1]}")
    x_RC = x.reshape(-1, x.shape[-1]).contiguous()
    return _RMSNorm.apply(x_RC, weight.contiguous(), eps, num_warps).view(x.shape)
