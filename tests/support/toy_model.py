"""A small model whose regions are bound in many ways; tests copy it to a file of their own."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from torch import Tensor, nn


def scale(x: Tensor, factor: float, *, shift: float = 0.5) -> Tensor:
    return torch.sin(x) * factor + shift


def make_closure(power: float) -> Callable[[Tensor], Tensor]:
    offset = 0.25

    def closed(x: Tensor) -> Tensor:
        return (x * x + offset) ** power

    return closed


closed = make_closure(0.5)
PARTIAL = functools.partial(scale, factor=2.0)
ALIAS = scale


class Base(nn.Module):
    def inherited(self, x: Tensor) -> Tensor:
        return x + 1

    def gate(self, x: Tensor) -> Tensor:
        return x.sigmoid()


class Norm(Base):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(dim) + 0.5)

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight

    def gate(self, x: Tensor) -> Tensor:
        return super().gate(x) * 2


class Block(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.norm = Norm(dim)
        self.linear = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.linear(self.norm(x))
        return x + PARTIAL(hidden) + ALIAS(hidden, 0.5, shift=0.1) + closed(hidden) + self.norm.gate(hidden)


def build(*, dim: int = 8, depth: int = 2, **_: object) -> nn.Module:
    return nn.Sequential(*(Block(dim) for _ in range(depth)))


def inputs(*, rows: int = 4, dim: int = 8, **_: object) -> dict[str, Tensor]:
    return {"input": torch.randn(rows, dim, requires_grad=True)}
