"""A layer's step: gradients, loss, direction and non-finite values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from perfkit_harness.step import LayerStep, NonFinite
from perfkit_harness.targets import LayerTarget
from torch import nn

from perfkit.errors import PerfkitError


class _Scale(nn.Module):
    """y = weight * x, with an integer output beside it."""

    def __init__(self, weight: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(weight))
        self.unused = nn.Parameter(torch.zeros(1))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return self.weight * x, x, torch.ones(1, dtype=torch.int64)


class _Detached(_Scale):
    @torch.no_grad()
    def forward(self, x: torch.Tensor) -> Any:
        return super().forward(x)


def _step(module: nn.Module, **inputs: torch.Tensor) -> LayerStep:
    target = LayerTarget(
        name="toy",
        module=module,
        inputs=inputs,
        recipe_module=pytest,
        file=Path("toy.py"),
        device=torch.device("cpu"),
        seed=0,
    )
    return LayerStep(target)


def test_gradients_are_those_of_the_summed_mean_squares_and_do_not_add_up() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    step = _step(_Scale(3.0), x=x)
    step()
    outputs = step()
    assert torch.equal(outputs[0], torch.tensor([3.0, 6.0]))
    grads = step.grads()
    # loss = mean((3x)^2) + mean(x^2): d/dw = 2w * mean(x^2), d/dx = (2 * 9 x + 2 x) / 2
    assert grads["grad:weight"].item() == pytest.approx(15.0)
    assert torch.allclose(grads["grad:x"], torch.tensor([10.0, 20.0]))
    assert grads["grad:unused"] is None
    assert step.direction == "full"


def test_running_without_clearing_adds_up() -> None:
    step = _step(_Scale(3.0), x=torch.tensor([1.0, 2.0]))
    step()
    once = step.grads()["grad:weight"].clone()
    step.run()
    assert torch.equal(step.grads()["grad:weight"], 2 * once)


def test_forward_alone_where_nothing_requires_grad() -> None:
    step = _step(_Scale(3.0).requires_grad_(False), x=torch.tensor([1.0]))
    assert step.direction == "forward"
    assert step()[0].item() == 3.0
    assert step.grads() == {}


def test_an_input_that_shares_a_parameters_name_is_told_apart() -> None:
    class Weighted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(1))

        def forward(self, weight: torch.Tensor) -> torch.Tensor:
            return self.weight * weight

    step = _step(Weighted(), weight=torch.ones(1, requires_grad=True))
    step()
    assert set(step.grads()) == {"grad:weight", "grad:inputs.weight"}


def test_a_forward_that_cuts_the_history_is_an_error() -> None:
    with pytest.raises(PerfkitError, match=r"No output of toy depends.*test_step\.py:\d+"):
        _step(_Detached(3.0), x=torch.ones(1))()


def test_values_that_are_not_finite_are_named_with_their_counts() -> None:
    _step(_Scale(3.0), x=torch.ones(2)).check_finite()
    x = torch.tensor([1.0, float("nan"), float("inf")])
    with pytest.raises(NonFinite, match=r"output\[0\] \(1 NaN and 1 Inf of 3\), output\[1\].*grad:weight"):
        _step(_Scale(3.0), x=x).check_finite()
