"""The rule for one tensor, on numbers worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from perfkit.errors import UsageError
from perfkit.numerics import Row, Verdict, judge_tensor, tolerance_named
from perfkit.wire.payloads import TensorCheck


def make_check(**changes: Any) -> TensorCheck:
    """A bf16 output whose reference errs by 0.004 on a scale of 4: threshold 2 * 0.004 + 0.002 = 0.010."""
    facts: dict[str, Any] = {
        "name": "output",
        "role": "output",
        "shape": (8, 16),
        "dtype": "bf16",
        "reference_error": 0.004,
        "target_error": 0.0045,
        "rounding_floor": 0.002,
        "golden_scale": 4.0,
        "max_ulp": 1.0,
    }
    return TensorCheck(**(facts | changes))


def judge(check: TensorCheck, *, atol: float = 0.0, **options: Any) -> Row:
    return judge_tensor(check, fudge_factor=2.0, atol=atol, **options)


def test_threshold_is_twice_the_reference_error_plus_the_rounding_floor() -> None:
    row = judge(make_check())
    assert row.threshold == pytest.approx(0.010)
    assert row.reference_relative_error == pytest.approx(0.001)
    assert row.gate_valid
    assert row.compared
    assert (row.verdict, row.reason) == (Verdict.PASS, "")


def test_atol_replaces_the_rounding_floor_where_it_is_larger() -> None:
    assert judge(make_check(), atol=0.05).threshold == pytest.approx(0.058)
    assert judge(make_check(), atol=0.001).threshold == pytest.approx(0.010)


@pytest.mark.parametrize(("error", "verdict"), [(0.010, Verdict.PASS), (0.0101, Verdict.FAIL)])
def test_the_threshold_itself_still_passes(error: float, verdict: Verdict) -> None:
    assert judge(make_check(reference_error=0.004, target_error=error)).verdict is verdict


def test_a_failure_says_by_how_much() -> None:
    assert judge(make_check(target_error=0.05)).reason == "Its error is beyond the threshold (5 times)."


def test_a_badly_conditioned_reference_decides_nothing() -> None:
    # 0.5 of a scale of 4 is 12.5%: the threshold of 1.0 would let anything through.
    for target_error in (0.0, 0.9, 100.0):
        row = judge(make_check(reference_error=0.5, target_error=target_error))
        assert row.verdict is Verdict.INCONCLUSIVE
        assert not row.gate_valid
        assert "0.12" in row.reason


def test_the_acceptable_error_is_declared_by_the_caller() -> None:
    check = make_check(reference_error=0.5, target_error=0.9)
    assert judge(check, acceptable_relative_error=0.2).verdict is Verdict.PASS
    assert judge(make_check(), acceptable_relative_error=0.0005).verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("wrong", ["same_shape", "same_dtype", "same_nonfinite"])
def test_structure_fails_before_any_tolerance(wrong: str) -> None:
    row = judge(make_check(target_error=0.0, **{wrong: False}), atol=1e9)
    assert row.verdict is Verdict.FAIL
    assert row.threshold is None


@pytest.mark.parametrize(
    ("missing", "verdict"),
    [
        ("target", Verdict.FAIL),
        ("reference, golden", Verdict.FAIL),
        ("target, reference", Verdict.FAIL),
        ("golden", Verdict.INCONCLUSIVE),
        ("target, reference, golden", Verdict.LIMITED),
    ],
)
def test_a_missing_side(missing: str, verdict: Verdict) -> None:
    nothing = {"reference_error": None, "target_error": None, "rounding_floor": None, "golden_scale": None}
    row = judge(make_check(missing=missing, **nothing))
    assert row.verdict is verdict
    assert not row.compared


def test_nothing_passes_vacuously() -> None:
    nothing = {"reference_error": None, "target_error": None, "rounding_floor": None, "golden_scale": None}
    empty = judge(make_check(shape=(0, 16), **nothing))
    assert (empty.verdict, empty.compared) == (Verdict.INCONCLUSIVE, False)
    assert "empty" in empty.reason
    all_nan = judge(make_check(num_nonfinite=128, **nothing))
    assert (all_nan.verdict, all_nan.compared) == (Verdict.INCONCLUSIVE, False)
    assert "finite" in all_nan.reason


def test_a_golden_of_zeros() -> None:
    zeros = {"reference_error": 0.0, "rounding_floor": 0.0, "golden_scale": 0.0}
    equal = judge(make_check(target_error=0.0, **zeros))
    assert (equal.verdict, equal.compared) == (Verdict.LIMITED, False)
    assert judge(make_check(target_error=1e-6, **zeros)).verdict is Verdict.FAIL
    # A reference that is itself off from zero has an infinite relative error.
    noisy = judge(make_check(target_error=1e-6, **(zeros | {"reference_error": 1e-6})))
    assert noisy.verdict is Verdict.INCONCLUSIVE


def test_partly_nonfinite_is_a_limitation() -> None:
    row = judge(make_check(num_nonfinite=3))
    assert row.verdict is Verdict.LIMITED
    assert row.reason.startswith("3 elements")


def test_a_narrow_golden_can_neither_pass_nor_fail() -> None:
    for target_error in (0.0, 100.0):
        row = judge(make_check(target_error=target_error), golden_is_narrow=True)
        assert row.verdict is Verdict.INCONCLUSIVE
    assert judge(make_check(same_shape=False), golden_is_narrow=True).verdict is Verdict.FAIL


@pytest.mark.parametrize(
    ("name", "max_ulp", "verdict"),
    [
        ("elementwise", 2.0, Verdict.PASS),
        ("elementwise", 2.5, Verdict.FAIL),
        ("elementwise", None, Verdict.INCONCLUSIVE),
        ("exact", 0.0, Verdict.PASS),
        ("exact", 1.0, Verdict.FAIL),
        ("reduction", 900.0, Verdict.PASS),
        ("", 900.0, Verdict.PASS),
    ],
)
def test_tolerance_classes_demand_more(name: str, max_ulp: float | None, verdict: Verdict) -> None:
    row = judge(make_check(max_ulp=max_ulp), tolerance=tolerance_named(name))
    assert row.verdict is verdict


def test_an_unknown_class_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="no tolerance class 'elementwize'"):
        tolerance_named("elementwize")
