"""Raw errors of one tensor: reference and target against golden, piece by piece, in fp64."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import torch

from perfkit.wire.payloads import TensorCheck

from .tensors import DTYPES, digest_state

_PIECE = 1 << 22
"""Elements per piece: a few fp64 copies of it are all the memory that a comparison adds."""
_NAMES = {dtype: name for name, dtype in DTYPES.items()}


@dataclass(frozen=True, kw_only=True)
class Sides:
    """One output or gradient from the three runs; None where a run has none."""

    golden: torch.Tensor | None
    reference: torch.Tensor | None
    target: torch.Tensor | None


def check_tensor(name: str, role: Literal["output", "gradient"], sides: Sides) -> TensorCheck:
    """Compares structure first, and numbers only where the structures agree.

    Complex tensors are compared as pairs of real numbers, integers and booleans as numbers. Elements
    that are not finite on all three sides are compared by place alone and left out of the errors.
    """
    golden, reference, target = sides.golden, sides.reference, sides.target
    if golden is None or reference is None or target is None:
        missing = [side for side in ("target", "reference", "golden") if getattr(sides, side) is None]
        return _check(name, role, target if target is not None else reference, missing=", ".join(missing))
    same_shape = target.shape == reference.shape == golden.shape
    same_dtype = target.dtype == reference.dtype
    if not (same_shape and same_dtype):
        return _check(name, role, target, same_shape=same_shape, same_dtype=same_dtype)
    golden, reference, target = (_dense(t) for t in (golden, reference, target))
    numbers = _measure(_flat(golden), _flat(reference), _flat(target))
    return _check(name, role, target, digest_target=digest_state(None, {"": target}), **numbers)


def dtype_name(dtype: torch.dtype) -> str:
    """`bf16` where the wire has a name, else torch's own."""
    return _NAMES.get(dtype, str(dtype).removeprefix("torch."))


def worst_of(first: TensorCheck, second: TensorCheck) -> TensorCheck:
    """The one of two checks of the same tensor that is further from passing; for repeated runs."""
    return max(first, second, key=_badness)


def _badness(check: TensorCheck) -> tuple[bool, bool, float]:
    sound = check.same_shape and check.same_dtype and check.same_nonfinite
    return "target" in check.missing, not sound, check.target_error or 0.0


def _check(
    name: str, role: Literal["output", "gradient"], tensor: torch.Tensor | None, **facts: Any
) -> TensorCheck:
    nothing: dict[str, Any] = dict.fromkeys(
        ("reference_error", "target_error", "rounding_floor", "golden_scale")
    )
    return TensorCheck(
        name=name,
        role=role,
        shape=() if tensor is None else tuple(tensor.shape),
        dtype="" if tensor is None else dtype_name(tensor.dtype),
        **(nothing | facts),
    )


def _dense(tensor: torch.Tensor) -> torch.Tensor:
    tensor = tensor.detach()
    return tensor if tensor.layout == torch.strided else tensor.to_dense()


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    return tensor.reshape(-1)


def _measure(golden: torch.Tensor, reference: torch.Tensor, target: torch.Tensor) -> dict[str, Any]:
    """The numbers of a TensorCheck, by field name."""
    maxima = torch.zeros(5, dtype=torch.float64, device=target.device)
    sums = torch.zeros(4, dtype=torch.float64, device=target.device)
    same = torch.ones((), dtype=torch.bool, device=target.device)
    for golden_piece, reference_piece, target_piece in _pieces(golden, reference, target):
        g, r, t = (piece.to(torch.float64) for piece in (golden_piece, reference_piece, target_piece))
        same &= (_place(r) == _place(t)).all()
        finite = g.isfinite() & r.isfinite() & t.isfinite()
        g, r, t = (torch.where(finite, piece, 0.0) for piece in (g, r, t))
        rounded = g.to(target.dtype).to(torch.float64)
        rounded = torch.where(rounded.isfinite(), rounded, g)
        ulp = (t - rounded).abs() / _spacing(rounded, target.dtype)
        found = (g.abs(), (r - g).abs(), (t - g).abs(), (rounded - g).abs(), ulp)
        maxima = torch.maximum(maxima, torch.stack([values.max() for values in found]))
        squares = (g.square(), (r - g).square(), (t - g).square(), finite)
        sums += torch.stack([values.sum().to(torch.float64) for values in squares])
    return _named(maxima.tolist(), sums.tolist(), num=target.numel(), same=bool(same))


def _named(maxima: list[float], sums: list[float], *, num: int, same: bool) -> dict[str, Any]:
    scale, reference_error, target_error, rounding_floor, max_ulp = maxima
    golden_square, reference_square, target_square, num_finite = sums
    structure = {"same_nonfinite": same, "num_nonfinite": num - int(num_finite)}
    if not num_finite:
        return structure
    relative = (
        {
            "rel_l2_reference": (reference_square / golden_square) ** 0.5,
            "rel_l2_target": (target_square / golden_square) ** 0.5,
        }
        if golden_square
        else {}
    )
    return (
        structure
        | relative
        | {
            "golden_scale": scale,
            "reference_error": reference_error,
            "target_error": target_error,
            "rounding_floor": rounding_floor,
            "max_ulp": max_ulp,
        }
    )


def _pieces(*tensors: torch.Tensor) -> Iterator[tuple[torch.Tensor, ...]]:
    for start in range(0, tensors[0].numel(), _PIECE):
        yield tuple(tensor[start : start + _PIECE] for tensor in tensors)


def _place(values: torch.Tensor) -> torch.Tensor:
    """0 for a finite value, and another number each for NaN, infinity and minus infinity."""
    return (
        values.isnan().to(torch.int8)
        + 2 * values.isposinf().to(torch.int8)
        + 3 * values.isneginf().to(torch.int8)
    )


def _spacing(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Distance of neighbouring numbers of a floating dtype at each value; 1 for integers.

    eps * 2^floor(log2 |value|), and below the smallest normal number the constant spacing there.
    """
    if not dtype.is_floating_point:
        return torch.ones_like(values)
    limits = torch.finfo(dtype)
    exponent = torch.frexp(values.abs().clamp_min(limits.smallest_normal)).exponent - 1
    return limits.eps * torch.exp2(exponent.to(torch.float64))
