"""RMSNorm over rows, forward and backward: our Triton kernel beside torch's and Liger's."""

from __future__ import annotations

import torch
from rms_norm_triton import rms_norm
from torch import Tensor, nn

# Shape letters, as in x_RC: R rows, C columns; every row is normalised on its own.

kind = "kernel"
source = "rms_norm_triton.py"  # the file beside this one that a variant replaces

cases = {
    "2048x4096": {"rows": 2048, "cols": 4096},
    "16384x4096": {"rows": 16384, "cols": 4096},
    "16384x8192": {"rows": 16384, "cols": 8192},
    "65536x128": {"rows": 65536, "cols": 128},
    "1048576x128": {"rows": 1048576, "cols": 128},
}
cpu_cases = {"tiny": {"rows": 8, "cols": 96}, "small": {"rows": 40, "cols": 160}}
# Smallest shape, sizes around the tile, and rows whose mean square is far below and far above EPS. The one
# element is far below: beside EPS or above it its gradient cancels, and one rounding error decides a verdict.
edge_cases = {
    "one": {"rows": 1, "cols": 1, "scale": 1e-6},
    "tail": {"rows": 3, "cols": 4097},
    "below": {"rows": 5, "cols": 127},
    "above": {"rows": 33, "cols": 129},
    "tall": {"rows": 4099, "cols": 64},
    "near_zero": {"rows": 4, "cols": 64, "scale": 1e-4},
    "large": {"rows": 4, "cols": 64, "scale": 1e4},
}
tune = {"num_warps": [1, 2, 4, 8, 16]}
tolerance = {"bf16": "reduction", "fp16": "reduction", "fp32": "reduction"}

EPS = 1e-5


def inputs(
    *, rows: int, cols: int, scale: float = 1.0, device: torch.device, dtype: torch.dtype
) -> dict[str, Tensor]:
    """Normal rows times `scale`, and weights near one; both need a gradient."""
    x_RC = scale * torch.randn(rows, cols, device=device, dtype=dtype)
    weight_C = 1.0 + 0.1 * torch.randn(cols, device=device, dtype=dtype)
    return {"x": x_RC.requires_grad_(), "weight": weight_C.requires_grad_()}


def reference(x: Tensor, weight: Tensor) -> Tensor:
    """Eager form: at least float32 inside (float64 stays float64), rounded to x's dtype once, at the end."""
    wide = torch.promote_types(x.dtype, torch.float32)
    x_wide = x.to(wide)
    rstd_R1 = torch.rsqrt(x_wide.pow(2).mean(-1, keepdim=True) + EPS)
    return (x_wide * rstd_R1 * weight.to(wide)).to(x.dtype)


def target(x: Tensor, weight: Tensor, *, num_warps: int | None = None) -> Tensor:
    """The kernel under test."""
    return rms_norm(x, weight, eps=EPS, num_warps=num_warps)


def provider_torch(x: Tensor, weight: Tensor) -> Tensor:
    """torch's own fused kernel."""
    return nn.functional.rms_norm(x, (x.shape[-1],), weight, EPS)


def provider_liger(x: Tensor, weight: Tensor) -> Tensor:
    """liger-kernel's Triton kernel."""
    from liger_kernel.ops.rms_norm import LigerRMSNormFunction

    # Casting mode `gemma` rounds once, at the end, like the reference; in_place=True would overwrite the
    # incoming gradient, which the caller still owns.
    return LigerRMSNormFunction.apply(x, weight, EPS, 0.0, "gemma", False)


def work(*, rows: int, cols: int, itemsize: int, **_: object) -> dict[str, dict[str, int]]:
    """Least bytes read and written, and FLOPs, per pass.

    Forward reads x and weight and writes y; backward reads x, dy and weight and writes dx and dweight.
    The saved 1/rms is left out: a kernel may compute it again from the x that it reads anyhow.
    """
    size = rows * cols
    forward = {"read": (size + cols) * itemsize, "written": size * itemsize, "flops": 4 * size}
    backward = {
        "read": (2 * size + cols) * itemsize,
        "written": (size + cols) * itemsize,
        "flops": 9 * size,
    }
    full = {key: forward[key] + backward[key] for key in forward}
    return {"forward": forward, "backward": backward, "full": full}
