"""Activation checkpointing: what runs again in backward, and that gradients stay equal."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from perfkit_harness.checkpointing import apply_checkpointing
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from perfkit.errors import PerfkitError


class _Inner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(-1, 1, 16).reshape(4, 4))

    def forward(self, x: torch.Tensor, *, scale: float = 2.0) -> torch.Tensor:
        return torch.sin(x @ self.weight) * scale


class _Outer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = _Inner()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cos(self.inner(x, scale=3.0))


class _Count(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.ops: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.ops[func.overloadpacket.__name__] += 1
        return func(*args, **(kwargs or {}))


def _run(mode: Any, *blocks: str) -> tuple[Counter[str], torch.Tensor, torch.Tensor]:
    module = nn.Sequential(_Outer(), _Outer())
    apply_checkpointing(module, blocks=blocks, mode=mode)
    x = torch.linspace(0, 1, 8).reshape(2, 4).requires_grad_()
    with _Count() as count:
        out = module(x)
        forward = Counter(count.ops)
        count.ops.clear()
        out.sum().backward()
    assert forward["mm"] == forward["sin"] == 2
    assert x.grad is not None
    weight = module[0].inner.weight
    assert weight.grad is not None
    return count.ops, x.grad, weight.grad


_PLAIN_MM = 4
"""Backward of two linear maps: two GEMMs each. Sines occur in the backward of the two cosines."""
_PLAIN_SIN = 2


@pytest.mark.parametrize(
    ("mode", "blocks", "num_mm", "num_sin"),
    [
        ("none", ("_Outer",), _PLAIN_MM, _PLAIN_SIN),
        ("full", ("_Outer",), _PLAIN_MM + 2, _PLAIN_SIN + 2),
        ("full", ("_Outer", "_Inner"), _PLAIN_MM + 2, _PLAIN_SIN + 2),
        ("selective", ("_Outer",), _PLAIN_MM, _PLAIN_SIN + 2),
    ],
)
def test_what_runs_again_in_backward(mode: Any, blocks: tuple[str, ...], num_mm: int, num_sin: int) -> None:
    ops, x_grad, weight_grad = _run(mode, *blocks)
    assert (ops["mm"], ops["sin"]) == (num_mm, num_sin)
    _, x_plain, weight_plain = _run("none")
    assert torch.equal(x_grad, x_plain)
    assert torch.equal(weight_grad, weight_plain)


def test_blocks_must_be_declared_and_exist() -> None:
    with pytest.raises(PerfkitError, match="declares no blocks"):
        apply_checkpointing(_Outer(), blocks=(), mode="full")
    with pytest.raises(PerfkitError, match="no block of class 'Absent'"):
        apply_checkpointing(_Outer(), blocks=("Absent",), mode="full")
