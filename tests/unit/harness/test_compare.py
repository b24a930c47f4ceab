"""Raw errors of one tensor, on numbers worked out by hand."""

from __future__ import annotations

import pytest
import torch
from perfkit_harness.compare import Sides, check_tensor, worst_of
from torch import Tensor

from perfkit.wire.payloads import TensorCheck

INF, NAN = float("inf"), float("nan")


def check(golden: Tensor, reference: Tensor, target: Tensor) -> TensorCheck:
    return check_tensor("output", "output", Sides(golden=golden, reference=reference, target=target))


def bf16(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.bfloat16)


def fp64(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def test_errors_and_norms() -> None:
    found = check(fp64(3.0, -4.0), bf16(3.5, -4.0), bf16(3.0, -4.25))
    assert (found.reference_error, found.target_error) == (0.5, 0.25)
    assert (found.golden_scale, found.rounding_floor) == (4.0, 0.0)
    assert found.rel_l2_reference == pytest.approx(0.1)
    assert found.rel_l2_target == pytest.approx(0.05)
    assert (found.shape, found.dtype, found.num_nonfinite) == ((2,), "bf16", 0)


def test_rounding_floor_is_the_error_of_golden_itself_in_the_dtype() -> None:
    # bf16 has 8 significant bits: 1 + 2^-9 lies a quarter of the spacing 2^-7 above 1.
    found = check(fp64(1.0 + 2.0**-9), bf16(1.0), bf16(1.0))
    assert found.rounding_floor == 2.0**-9
    assert found.max_ulp == 0.0


@pytest.mark.parametrize(
    ("golden", "target", "ulp"),
    [
        (1.0, 1.0 + 2.0**-7, 1.0),
        (2.0, 2.0 + 2.0**-5, 2.0),
        (-0.75, -0.75 - 2.0**-8, 1.0),
        (0.0, 2.0**-133, 1.0),
    ],
)
def test_ulps_are_spacings_at_golden(golden: float, target: float, ulp: float) -> None:
    assert check(fp64(golden), bf16(golden), bf16(target)).max_ulp == ulp


def test_integers_are_compared_as_numbers_without_ulps() -> None:
    found = check(torch.tensor([1, 5]), torch.tensor([1, 5]), torch.tensor([1, 7]))
    assert (found.target_error, found.max_ulp) == (2.0, 2.0)


def test_complex_numbers_are_pairs() -> None:
    golden = torch.tensor([1.0 + 2.0j], dtype=torch.complex128)
    found = check(golden, golden.to(torch.complex64), torch.tensor([1.0 + 2.5j]))
    assert (found.golden_scale, found.target_error) == (2.0, 0.5)
    assert found.dtype == "complex64"


@pytest.mark.parametrize("target", [(NAN, INF, 1.0), (INF, NAN, 1.0), (NAN, -INF, 1.0), (NAN, INF, NAN)])
def test_nonfinite_values_must_stand_at_the_same_places(target: tuple[float, ...]) -> None:
    found = check(fp64(NAN, INF, 1.0), bf16(NAN, INF, 1.0), bf16(*target))
    assert found.same_nonfinite is (target == (NAN, INF, 1.0))
    assert found.num_nonfinite >= 2
    if found.same_nonfinite:
        assert found.target_error == 0.0
        assert found.golden_scale == 1.0


def test_an_overflow_of_the_dtype_alone_is_left_out_of_the_errors() -> None:
    half = torch.tensor([INF, 1.0], dtype=torch.float16)
    found = check(fp64(1e6, 1.0), half, half)
    assert found.same_nonfinite
    assert found.num_nonfinite == 1
    assert found.rounding_floor == 0.0


def test_nothing_to_compare_leaves_no_numbers() -> None:
    for golden, other in ((fp64(), bf16()), (fp64(NAN), bf16(NAN))):
        found = check(golden, other, other)
        assert found.target_error is None
        assert found.golden_scale is None


def test_structure_comes_first() -> None:
    other_shape = check(fp64(1.0), bf16(1.0), bf16(1.0, 1.0))
    assert (other_shape.same_shape, other_shape.target_error) == (False, None)
    other_dtype = check(fp64(1.0), bf16(1.0), torch.ones(1))
    assert (other_dtype.same_dtype, other_dtype.target_error) == (False, None)


def test_missing_sides_are_named() -> None:
    one = torch.ones(2)
    found = check_tensor("grad:x", "gradient", Sides(golden=one.double(), reference=one, target=None))
    assert (found.missing, found.shape) == ("target", (2,))
    found = check_tensor("grad:x", "gradient", Sides(golden=None, reference=None, target=None))
    assert found.missing == "target, reference, golden"


def test_sparse_gradients_count_as_dense_ones() -> None:
    dense = torch.tensor([[0.0, 0.0], [1.0, 2.0]])
    assert check(dense.double(), dense, dense.to_sparse()).target_error == 0.0


def test_long_tensors_are_compared_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perfkit_harness.compare._PIECE", 4)
    target = torch.ones(2, 5)
    target[-1, -1] = 1.5
    found = check(torch.ones(2, 5, dtype=torch.float64), torch.ones(2, 5), target)
    assert found.target_error == 0.5
    assert found.rel_l2_target == pytest.approx(0.5 / 10**0.5)


def test_the_digest_sees_order() -> None:
    golden, values = fp64(1.0, 2.0), torch.tensor([1.0, 2.0])
    digests = {check(golden, values, t).digest_target for t in (values, values.flip(0), values.clone())}
    assert len(digests) == 2


def test_the_worst_of_repeated_runs() -> None:
    golden, good = fp64(1.0), bf16(1.0)
    fine, far = check(golden, good, good), check(golden, good, bf16(2.0))
    broken, gone = check(golden, good, bf16(NAN)), check(golden, good, bf16(1.0, 1.0))
    assert worst_of(fine, far) is far
    assert worst_of(broken, far) is broken
    assert worst_of(fine, gone) is gone
