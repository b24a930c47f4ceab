"""The number that tells results apart, and bytes that count once."""

from __future__ import annotations

import torch
from perfkit_harness.checksum import position_weighted_sum
from perfkit_harness.memory import storage_bytes, watch_peak


def test_sum_sees_order_sign_and_place() -> None:
    a, b = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([5.0, 4.0, 9.0])
    found = position_weighted_sum([a, b])
    assert found != position_weighted_sum([a.flip(0), b])
    assert found != position_weighted_sum([-a, b])
    assert found != position_weighted_sum([b, a])
    assert found == position_weighted_sum([a.clone(), b.clone()])


def test_sum_is_the_formula() -> None:
    # Weights 1 + (i % 8191 + 1) / 8191 with i counted from one.
    assert position_weighted_sum([torch.tensor([8191.0, 0.0])]) == 8191.0 + 2.0


def test_sum_takes_any_layout_and_dtype() -> None:
    x = torch.arange(12.0).reshape(3, 4)
    assert position_weighted_sum([x.t()]) == position_weighted_sum([x.t().contiguous().to(torch.bfloat16)])
    assert position_weighted_sum([torch.tensor([1 + 2j])]) == position_weighted_sum(
        [torch.tensor([1.0, 2.0])]
    )


def test_sum_that_is_not_finite_is_none() -> None:
    assert position_weighted_sum([torch.tensor([float("nan")])]) is None
    assert position_weighted_sum([torch.tensor([float("inf")])]) is None


def test_views_and_tied_tensors_count_once() -> None:
    x = torch.zeros(8, 8)
    assert storage_bytes([x, x[:2], x.t(), torch.zeros(2)]) == 8 * 8 * 4 + 8


def test_memory_of_a_cpu_is_not_measured() -> None:
    with watch_peak(torch.device("cpu")) as memory:
        torch.zeros(10)
    assert (memory.resident_bytes, memory.peak_bytes) == (None, None)
