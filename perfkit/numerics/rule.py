"""The rule for one tensor: the target may err twice as far from golden as the eager reference does.

Golden is eager in fp64, the reference is eager in the dtype of the target, and all three get the same
low-precision inputs, so that only arithmetic is compared:

    absolute floor  = max(atol, rounding floor)          error of golden itself, rounded to the dtype
    threshold       = fudge factor * reference error + absolute floor
    relative error  = reference error / max(golden scale, absolute floor)

Errors are the largest absolute differences from golden. The gate is valid only while the relative error of
the REFERENCE is acceptable: beyond that, cancellation has amplified rounding so far that the threshold
would let a bug through, and neither pass nor fail follows from it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from perfkit.numerics.tolerances import TOLERANCES, Tolerance
from perfkit.numerics.verdicts import Verdict
from perfkit.wire.payloads import TensorCheck

ACCEPTABLE_RELATIVE_ERROR = 0.10
"""Default of the reference's largest relative error: a trigger to look closer where nobody declared one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One output or gradient, judged."""

    tensor: str
    reference_relative_error: float | None
    target_error: float | None
    threshold: float | None
    gate_valid: bool
    """Whether the threshold could decide at all."""
    verdict: Verdict
    reason: str = ""
    """Why it is not a plain PASS, in one sentence; "" for PASS."""
    compared: bool = False
    """Numbers other than zero were compared: a row without it cannot carry a verdict alone."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Numbers:
    """The derived quantities of a tensor whose errors are all known."""

    relative_error: float
    target_error: float
    threshold: float
    golden_scale: float


def judge_tensor(
    check: TensorCheck,
    *,
    fudge_factor: float,
    atol: float,
    acceptable_relative_error: float = ACCEPTABLE_RELATIVE_ERROR,
    tolerance: Tolerance = TOLERANCES["reduction"],
    golden_is_narrow: bool = False,
) -> Row:
    """Judges one tensor by the rule of this module; `fudge_factor` and `atol` are declared beforehand.

    Structure comes first: what is missing, has another shape or dtype, or has NaN or infinity elsewhere,
    fails without any tolerance. `golden_is_narrow` says that golden was not computed in fp64 throughout:
    then no error is known well enough to decide.
    """
    if (row := _judge_structure(check)) is not None:
        return row
    numbers = _derive(check, fudge_factor=fudge_factor, atol=atol)
    if numbers is None:
        return _row(check, Verdict.INCONCLUSIVE, _why_nothing_compared(check))
    doubt = _doubt(numbers, acceptable=acceptable_relative_error, golden_is_narrow=golden_is_narrow)
    if doubt:
        return _row(check, Verdict.INCONCLUSIVE, doubt, numbers=numbers)
    verdict, reason = _decide(check, numbers, tolerance=tolerance)
    return _row(
        check,
        verdict,
        reason,
        numbers=numbers,
        gate_valid=True,
        compared=numbers.golden_scale > 0 or verdict is Verdict.FAIL,
    )


def _judge_structure(check: TensorCheck) -> Row | None:
    """A verdict that needs no numbers, or None."""
    missing = {side.strip() for side in check.missing.split(",") if side.strip()}
    if missing == {"target", "reference", "golden"}:
        return _row(check, Verdict.LIMITED, "Neither side produces it, so nothing was compared.")
    if "target" in missing:
        return _row(check, Verdict.FAIL, "The target does not produce it; the reference does.")
    if missing == {"reference", "golden"}:
        return _row(check, Verdict.FAIL, "The target produces it; the reference does not.")
    if missing:
        return _row(
            check, Verdict.INCONCLUSIVE, f"There is no {' and '.join(sorted(missing))} to compare with."
        )
    if not check.same_shape:
        return _row(check, Verdict.FAIL, "Its shape differs from the reference's.")
    if not check.same_dtype:
        return _row(check, Verdict.FAIL, "Its dtype differs from the reference's.")
    if not check.same_nonfinite:
        return _row(check, Verdict.FAIL, "NaN or infinity stand at other places than in the reference.")
    return None


def _derive(check: TensorCheck, *, fudge_factor: float, atol: float) -> _Numbers | None:
    raw = (check.reference_error, check.target_error, check.rounding_floor, check.golden_scale)
    reference_error, target_error, rounding_floor, golden_scale = raw
    if reference_error is None or target_error is None or rounding_floor is None or golden_scale is None:
        return None
    floor = max(atol, rounding_floor)
    scale = max(golden_scale, floor)
    relative = reference_error / scale if scale else (math.inf if reference_error else 0.0)
    return _Numbers(
        relative_error=relative,
        target_error=target_error,
        threshold=fudge_factor * reference_error + floor,
        golden_scale=golden_scale,
    )


def _why_nothing_compared(check: TensorCheck) -> str:
    num_elements = math.prod(check.shape)
    if num_elements == 0:
        return "It is empty, so nothing was compared."
    if check.num_nonfinite >= num_elements:
        return "No element is finite on all sides, so nothing was compared."
    return "Its errors were not measured."


def _doubt(numbers: _Numbers, *, acceptable: float, golden_is_narrow: bool) -> str:
    """Why the threshold cannot decide; "" where it can."""
    if golden_is_narrow:
        return "Golden was not computed in fp64 throughout."
    if numbers.relative_error > acceptable:
        return (
            f"The reference itself is off by {numbers.relative_error:.2g} of golden's scale, beyond the "
            f"acceptable {acceptable:.2g}: badly conditioned, and a bug would look the same."
        )
    return ""


def _decide(check: TensorCheck, numbers: _Numbers, *, tolerance: Tolerance) -> tuple[Verdict, str]:
    if numbers.target_error > numbers.threshold:
        factor = numbers.target_error / numbers.threshold if numbers.threshold else math.inf
        beyond = f" ({factor:.3g} times)" if math.isfinite(factor) else ""
        return Verdict.FAIL, f"Its error is beyond the threshold{beyond}."
    if tolerance.max_ulp is not None:
        if check.max_ulp is None:
            return (
                Verdict.INCONCLUSIVE,
                f"The class {tolerance.name} needs a distance in ulp, and there is none.",
            )
        if check.max_ulp > tolerance.max_ulp:
            allowed = f"the class {tolerance.name} allows {tolerance.max_ulp:g}"
            return Verdict.FAIL, f"It is off by {check.max_ulp:.3g} ulp; {allowed}."
    if numbers.golden_scale == 0:
        return Verdict.LIMITED, "Golden is zero everywhere: only zeros were compared."
    if check.num_nonfinite:
        return (
            Verdict.LIMITED,
            f"{check.num_nonfinite} elements are not finite and were compared by place only.",
        )
    return Verdict.PASS, ""


def _row(
    check: TensorCheck,
    verdict: Verdict,
    reason: str,
    *,
    numbers: _Numbers | None = None,
    gate_valid: bool = False,
    compared: bool = False,
) -> Row:
    return Row(
        tensor=check.name,
        reference_relative_error=numbers.relative_error if numbers else None,
        target_error=numbers.target_error if numbers else None,
        threshold=numbers.threshold if numbers else None,
        gate_valid=gate_valid,
        verdict=verdict,
        reason=reason,
        compared=compared,
    )
