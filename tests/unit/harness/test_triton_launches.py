"""Triton launches in the ledger and the labels, in Triton's CPU interpreter."""

from __future__ import annotations

import torch
import triton.language as tl
from perfkit_harness.ledger import record_ledger
from perfkit_harness.scopes import LabelMode
from triton.runtime.interpreter import InterpretedFunction


def double(x_ptr, out_ptr, size, block: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.arange(0, block)
    x = tl.load(x_ptr + at, mask=at < size)
    tl.store(out_ptr + at, x * 2.0, mask=at < size)


_kernel = InterpretedFunction(double)


def step(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    _kernel[(1,)](x, out, x.numel(), block=8)
    return out + 1.0


def test_a_launch_is_one_opaque_op_with_unknown_traffic() -> None:
    x = torch.ones(6)
    ledger = record_ledger(lambda: step(x))
    launch, add = ledger.ops
    assert (launch.name, launch.kind, launch.known_traffic) == ("triton.double", "opaque", False)
    assert launch.source.startswith("test_triton_launches.py:")
    assert [use.num_bytes for use in launch.reads] == [24, 24]
    assert (add.reads[0].storage, add.reads[0].version) in [(w.storage, w.version) for w in launch.writes]


def test_labels_see_the_same_ops() -> None:
    mode, x = LabelMode(), torch.ones(6)
    with mode.watching():
        result = step(x)
        first = mode.names
        mode.restart()
        step(x)
    assert torch.equal(result, torch.full((6,), 3.0))
    assert first == mode.names == ("triton.double", "aten.add.Tensor")


def test_launches_outside_are_not_seen() -> None:
    original = InterpretedFunction.run
    record_ledger(lambda: step(torch.ones(6)))
    assert InterpretedFunction.run is original
