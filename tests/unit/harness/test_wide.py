"""The golden run is fp64 throughout, or says where it is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from perfkit_harness.wide import golden_run, widen_inputs, widen_module
from torch import Tensor, nn


@pytest.mark.parametrize(
    "narrow",
    [
        lambda x: x.float(),
        lambda x: x.half(),
        lambda x: x.to(torch.bfloat16),
        lambda x: x.to("cpu", torch.float32),
        lambda x: x.to(dtype=torch.float32),
        lambda x: x.type(torch.float32),
        lambda x: torch.softmax(x, dim=-1, dtype=torch.float32),
        lambda x: nn.functional.softmax(x, dim=-1, dtype=torch.float32),
        lambda x: x.sum(-1, dtype=torch.float32),
        lambda x: x * torch.ones(2, dtype=torch.float32),
        lambda x: x * torch.full((2,), 0.1),
        lambda x: torch.view_as_complex(x.float()) * torch.ones((), dtype=torch.complex64),
        lambda x: x.cfloat(),
    ],
)
def test_casts_are_widened(narrow: Callable[[Tensor], Tensor]) -> None:
    x = torch.randn(4, 2, dtype=torch.float64)
    with golden_run() as found:
        result = narrow(x)
    assert result.dtype in (torch.float64, torch.complex128)
    assert found.narrow == {}
    assert torch.get_default_dtype() == torch.float32


def test_widened_casts_keep_full_precision_and_are_named() -> None:
    x = torch.tensor([1.0 + 2.0**-40], dtype=torch.float64, requires_grad=True)
    with golden_run() as found:
        y = x.float() * 3.0
        y.backward()
    assert y.item() == 3.0 * (1.0 + 2.0**-40)
    assert x.grad is not None
    assert x.grad.dtype == torch.float64
    assert found.widened == {"Tensor.float"}


def test_integers_become_golden_and_bit_casts_stay() -> None:
    with golden_run() as found:
        assert torch.arange(3).float().dtype == torch.float64
        assert torch.zeros(2, dtype=torch.int32).view(torch.float32).dtype == torch.float32
    assert "aten.view.dtype (float32)" in found.narrow


def narrow_unseen(x: Tensor) -> Tensor:
    with torch._C.DisableTorchFunction():
        return x.to(torch.bfloat16).double()


def test_what_narrows_otherwise_is_reported_in_forward_and_backward() -> None:
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    with golden_run() as found:
        narrow_unseen(x.detach())
    assert list(found.narrow) == ["aten._to_copy.default (bfloat16)"]
    with golden_run() as found:
        y = x * 2.0
        y.register_hook(narrow_unseen)
        assert found.narrow == {}
        y.sum().backward()
    assert "aten._to_copy.default (bfloat16)" in found.narrow


def test_modules_are_widened_with_complex_buffers_and_plain_attributes() -> None:
    class Part(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tied = nn.Parameter(torch.full((2,), 0.1))
            self.weight = self.tied
            self.register_buffer("freqs", torch.polar(torch.ones(2), torch.ones(2)), persistent=False)
            self.register_buffer("ids", torch.arange(2))
            self.table = torch.full((2,), 0.1, dtype=torch.bfloat16)

    module = Part()
    widen_module(module)
    assert module.tied is module.weight
    assert module.tied.dtype == torch.float64
    assert module.freqs.dtype == torch.complex128
    assert module.ids.dtype == torch.int64
    assert module.table.dtype == torch.float64
    assert module.tied[0].item() == torch.tensor(0.1).item()


def test_inputs_are_widened_in_any_nest() -> None:
    @dataclass
    class Positions:
        ids: Tensor
        rope: Tensor

    inputs = {
        "x": torch.ones(2, dtype=torch.bfloat16, requires_grad=True),
        "more": [Positions(torch.arange(2), torch.ones(2))],
        "eps": 1e-5,
    }
    wide = widen_inputs(inputs)
    assert wide["x"].dtype == torch.float64
    assert wide["x"].requires_grad
    assert wide["x"].is_leaf
    assert wide["more"][0].ids.dtype == torch.int64
    assert wide["more"][0].rope.dtype == torch.float64
    assert wide["eps"] == 1e-5
    assert inputs["x"].dtype == torch.bfloat16
