"""Floating-point operations of matrix products and attention; other ops are bounded by their bytes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch

from .op_kinds import kind_of, packet_name
from .traffic import bind, tensors_in

_DTYPES = {
    torch.float64: "fp64",
    torch.float32: "fp32",
    torch.bfloat16: "bf16",
    torch.float16: "fp16",
    torch.int8: "int8",
}


def flops_of(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], out: Any) -> tuple[int, str]:
    """FLOPs (a multiply-add counts as two) and the dtype at whose rate they run; (0, "") where not counted.

    Products follow torch.utils.flop_counter. Attention is counted here, by the query-key pairs that the
    causal mask leaves: torch counts all pairs, which is no lower bound, and nothing at all on a CPU.
    """
    kind = kind_of(func)
    if kind not in ("gemm", "attention") or getattr(func, "_schema", None) is None:
        return 0, ""
    bound = bind(func, args, kwargs)
    if kind == "attention":
        flops = _attention_flops(packet_name(func), bound)
    else:
        flops = _gemm_flops(func, args, kwargs, bound=bound, out=out)
    return (flops, _dtype_name(func, args, kwargs)) if flops else (0, "")


def num_pairs(num_queries: int, num_keys: int, *, causal: bool) -> int:
    """Query-key pairs of one head; causal: query i sees keys 0 to i, as in scaled_dot_product_attention."""
    if not causal:
        return num_queries * num_keys
    whole = max(0, num_queries - num_keys)
    part = num_queries - whole
    return part * (part + 1) // 2 + whole * num_keys


def _attention_flops(name: str, bound: Mapping[str, Any]) -> int:
    """2 FLOPs per pair and channel for QK and PV forward; backward repeats QK and adds dV, dP, dQ, dK."""
    q, k, v = (bound.get(key) for key in ("query", "key", "value"))
    if not (isinstance(q, torch.Tensor) and isinstance(k, torch.Tensor) and isinstance(v, torch.Tensor)):
        return 0
    if not name.startswith("_scaled_dot_product_") or q.dim() != 4:
        return 0
    pairs = num_pairs(q.shape[-2], k.shape[-2], causal=bool(bound.get("is_causal", False)))
    qk, pv = 2 * pairs * q.shape[-1], 2 * pairs * v.shape[-1]
    products = 3 * qk + 2 * pv if "backward" in name else qk + pv
    return math.prod(q.shape[:-2]) * products


def _gemm_flops(
    func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, bound: Mapping[str, Any], out: Any
) -> int:
    name = packet_name(func).rstrip("_")
    if name in ("mv", "addmv"):
        matrix = bound["mat"] if name == "addmv" else bound["self"]
        return 2 * int(matrix.numel())
    if name in ("_grouped_mm", "_scaled_grouped_mm"):
        a, b = list(tensors_in(args))[:2]
        return _grouped_flops(a, b, out)
    # Imports Triton, which must not happen before the target chose whether to interpret its kernels.
    from torch.utils.flop_counter import flop_registry

    packet = getattr(torch.ops.aten, name, None)
    if packet not in flop_registry:
        return 0
    flops = int(flop_registry[packet](*args, **kwargs, out_val=out))
    complex_product = any(t.is_complex() for t in tensors_in(args))
    return flops * 4 if complex_product else flops


def _grouped_flops(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> int:
    """Each row of `a` meets one group's matrix; in a 2-d by 2-d product the groups split the inner dim."""
    if a.dim() == 2 and b.dim() == 2:
        return 2 * a.shape[0] * a.shape[1] * b.shape[1]
    return 2 * out.numel() * a.shape[-1]


def _dtype_name(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    """`bf16`, `fp8`, ...; fp32 products on a GPU that may use tensor cores run at the rate of `tf32`."""
    tensor = next(tensors_in((args, dict(kwargs))))
    dtype = tensor.dtype.to_real() if tensor.is_complex() else tensor.dtype
    if dtype == torch.float32 and tensor.is_cuda and _tf32_allowed(packet_name(func)):
        return "tf32"
    if dtype in _DTYPES:
        return _DTYPES[dtype]
    return "fp8" if dtype.is_floating_point and dtype.itemsize == 1 else str(dtype).removeprefix("torch.")


def _tf32_allowed(name: str) -> bool:
    """Convolutions have a switch of their own, which is on unless somebody turned it off."""
    if "conv" in name:
        return bool(torch.backends.cudnn.allow_tf32)
    stated = getattr(torch.backends.cuda.matmul, "fp32_precision", None)
    if stated in ("tf32", "ieee"):
        return bool(stated == "tf32")
    return torch.get_float32_matmul_precision() != "highest"
