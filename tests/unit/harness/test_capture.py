"""The parts of the graph check that need no GPU: distances, changed inputs, first lines."""

from __future__ import annotations

import math

import torch
from perfkit_harness.capture import Captured, _first_line, _root, change_in_place, distance, judge
from perfkit_harness.graph_timing import CALLS_PER_GRAPH, _differences

from tests.support.fake_clock import FakeClock


def test_equal_bits_are_at_distance_zero_even_as_nan() -> None:
    x = torch.tensor([1.0, float("nan"), -0.0])
    assert distance(x, x.clone()) == 0.0
    assert distance(torch.tensor(3), torch.tensor(3)) == 0.0


def test_distance_is_relative_l2() -> None:
    assert distance(torch.tensor([3.0, 4.5]), torch.tensor([3.0, 4.0])) == 0.1
    assert distance(torch.tensor([0j, 2j]), torch.tensor([0j, 1j])) == 1.0


def test_undefined_distances_are_infinite() -> None:
    zero, one = torch.zeros(2), torch.ones(2)
    assert math.isinf(distance(one, zero))
    assert math.isinf(distance(torch.full((2,), float("nan")), one))
    assert math.isinf(distance(one, torch.ones(3)))
    assert math.isinf(distance(one, one.double()))


def test_equal_runs_demand_equal_bits_of_the_replay() -> None:
    step = torch.tensor([1.0, 2.0])
    assert judge(step.clone(), [step, step.clone(), step.clone()]) == ""
    assert "a replay is" in judge(step + 1e-6, [step, step.clone(), step.clone()])


def test_runs_that_differ_give_the_replay_a_band() -> None:
    eager = [torch.tensor([1.0, 1.0]), torch.tensor([1.0, 1.0 + 1e-5]), torch.tensor([1.0, 1.0])]
    assert judge(torch.tensor([1.0 + 3e-5, 1.0]), eager) == ""
    assert "a replay is" in judge(torch.tensor([1.0 + 5e-5, 1.0]), eager)


def test_runs_that_differ_too_much_prove_nothing() -> None:
    eager = [torch.tensor([1.0]), torch.tensor([2.0]), torch.tensor([3.0])]
    assert "cannot be checked" in judge(torch.tensor([1.0]), eager)


def test_changed_inputs_differ_and_indices_stay() -> None:
    x, ids = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True), torch.tensor([1, 2])
    scalar, expanded = torch.tensor(2.0), torch.ones(1).expand(4)
    change_in_place((x, ids, scalar, expanded))
    assert x.tolist() == [[2.25, 3.0], [0.75, 1.5]]
    assert ids.tolist() == [1, 2]
    assert float(scalar) == 1.5
    assert expanded.tolist() == [1.0] * 4


def test_reason_is_one_line_and_names_the_first_error() -> None:
    try:
        try:
            raise RuntimeError("operation not permitted when stream is capturing\nmore")
        except RuntimeError:
            raise RuntimeError("capture was invalidated") from None
    except RuntimeError as error:
        line = _first_line(_root(error))
    assert line.startswith("RuntimeError: operation not permitted when stream is capturing")
    assert "\n" not in line
    assert "test_capture.py" in line


class _Graph:
    def __init__(self, clock: FakeClock, times_us: list[float]) -> None:
        self._clock, self._times = clock, iter(times_us)

    def replay(self) -> None:
        self._clock.work("replay", next(self._times))


def _captured(clock: FakeClock, times_us: list[float]) -> Captured:
    return Captured(graph=_Graph(clock, times_us), results=[], stream=None)  # type: ignore[arg-type]


def test_subtraction_leaves_the_call_alone() -> None:
    clock = FakeClock()
    whole = _captured(clock, [9e9, 1250.0, 1300.0])
    without = _captured(clock, [9e9, 1000.0, 1000.0])
    found = _differences(whole, without, clock=clock, num_pairs=2, hold_back=None)
    assert found == (250.0 / CALLS_PER_GRAPH, 300.0 / CALLS_PER_GRAPH)


def test_a_sequence_without_preparation_is_divided_only() -> None:
    clock = FakeClock()
    whole = _captured(clock, [9e9, 50.0, 60.0])
    assert _differences(whole, None, clock=clock, num_pairs=2, hold_back=None) == (5.0, 6.0)
