"""Tensors -> case -> run: how verdicts combine, and what only a whole case shows."""

from __future__ import annotations

from typing import Any

import pytest

from perfkit.numerics import Verdict, combine, judge, judge_case
from perfkit.wire.payloads import CheckedCase, TensorCheck

GOOD = TensorCheck(
    name="output",
    role="output",
    shape=(4,),
    dtype="fp32",
    reference_error=1e-7,
    target_error=1e-7,
    rounding_floor=6e-8,
    golden_scale=1.0,
)
GRADIENT = TensorCheck(
    name="grad:x",
    role="gradient",
    shape=(4,),
    dtype="fp32",
    reference_error=1e-7,
    target_error=1e-7,
    rounding_floor=6e-8,
    golden_scale=1.0,
)
MISSING = TensorCheck(
    name="grad:x",
    role="gradient",
    shape=(),
    dtype="",
    reference_error=None,
    target_error=None,
    rounding_floor=None,
    golden_scale=None,
    missing="target, reference, golden",
)


def make_case(*tensors: TensorCheck, **changes: Any) -> CheckedCase:
    facts: dict[str, Any] = {"case": "tiny", "seed": 0, "golden_dtype": "fp64", "repeats_equal": True}
    return CheckedCase(tensors=tensors, **(facts | changes))


def changed(check: TensorCheck, **changes: Any) -> TensorCheck:
    return TensorCheck(**({name: getattr(check, name) for name in check.__struct_fields__} | changes))


def verdict_of(case: CheckedCase) -> Verdict:
    return judge_case(case, fudge_factor=2.0, atol=0.0).verdict


P, L, F, I = Verdict.PASS, Verdict.LIMITED, Verdict.FAIL, Verdict.INCONCLUSIVE  # noqa: E741


@pytest.mark.parametrize(
    ("given", "together"),
    [([P, P], P), ([P, L], L), ([L, I, P], I), ([I, F, L], F), ([F], F), ([], I)],
)
def test_the_worst_verdict_wins_and_nothing_is_inconclusive(given: list[Verdict], together: Verdict) -> None:
    assert combine(given) is together


def test_only_the_two_passes_unlock_a_benchmark() -> None:
    assert [v for v in Verdict if v.unlocks] == [P, L]


def test_a_good_case_passes() -> None:
    case = judge_case(make_case(GOOD, GRADIENT), fudge_factor=2.0, atol=0.0)
    assert case.verdict is P
    assert case.reasons == ()
    assert case.notes == ()


def test_one_wrong_gradient_fails_the_case() -> None:
    assert verdict_of(make_case(GOOD, changed(GRADIENT, target_error=0.1))) is F


def test_narrow_golden_ops_are_inconclusive_and_named() -> None:
    case = judge_case(
        make_case(GOOD, narrow_golden_ops=("aten._to_copy.default (float32)",)), fudge_factor=2.0, atol=0.0
    )
    assert case.verdict is I
    assert "aten._to_copy.default" in case.reasons[0]
    assert verdict_of(make_case(GOOD, golden_dtype="fp32")) is I


def test_the_reference_against_itself_proves_nothing() -> None:
    assert verdict_of(make_case(GOOD, GRADIENT, target_is_reference=True)) is I


def test_one_missing_gradient_is_a_limitation_but_all_missing_is_no_evidence() -> None:
    other = changed(GRADIENT, name="grad:weight")
    assert verdict_of(make_case(GOOD, MISSING, other)) is L
    assert verdict_of(make_case(GOOD, MISSING)) is I


def test_a_case_without_numbers_is_no_evidence() -> None:
    zeros = changed(GOOD, reference_error=0.0, target_error=0.0, rounding_floor=0.0, golden_scale=0.0)
    assert verdict_of(make_case(zeros)) is I
    assert verdict_of(make_case(zeros, changed(GOOD, name="output[1]"))) is L
    assert verdict_of(make_case()) is I


def test_nondeterminism_is_noted_and_changes_no_verdict() -> None:
    case = judge_case(make_case(GOOD, repeats_equal=False), fudge_factor=2.0, atol=0.0)
    assert case.verdict is P
    assert "Not deterministic" in case.notes[0]
    untried = judge_case(make_case(GOOD, repeats_equal=None), fudge_factor=2.0, atol=0.0)
    assert "not run twice" in untried.notes[0]


def test_every_case_must_pass() -> None:
    bad = make_case(changed(GOOD, target_error=1.0), case="tail")
    run = judge([make_case(GOOD), bad], fudge_factor=2.0, atol=0.0)
    assert run.verdict is F
    assert [c.verdict for c in run.cases] == [P, F]
    assert judge([], fudge_factor=2.0, atol=0.0).verdict is I
