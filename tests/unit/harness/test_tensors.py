"""Names, copies, digests and non-finite counts of tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import pytest
import torch
from perfkit_harness.tensors import (
    clone_inputs,
    count_nonfinite,
    digest_state,
    mean_square,
    named_tensors,
)
from torch import nn


@dataclass
class _Outputs:
    logits: torch.Tensor
    loss: torch.Tensor | None = None


class _Named(NamedTuple):
    first: torch.Tensor


def test_names_follow_the_nesting() -> None:
    one = torch.ones(1)
    assert [n for n, _ in named_tensors(one, "output")] == ["output"]
    assert [n for n, _ in named_tensors((one, {"k": [one]}, 3), "output")] == ["output[0]", "output[1].k[0]"]
    assert [n for n, _ in named_tensors(_Outputs(one), "output")] == ["output.logits"]
    assert [n for n, _ in named_tensors({"x": one, "rope": (one,)}, "")] == ["x", "rope[0]"]


def test_a_copy_keeps_strides_and_the_grad_flag_and_shares_nothing() -> None:
    base = torch.arange(24.0).reshape(4, 6)
    inputs = {
        "sliced": base[:, :3],
        "expanded": base[:, :1].expand(4, 5),
        "leaf": base.clone().requires_grad_(),
    }
    copies = clone_inputs({**inputs, "nest": [_Named(base), _Outputs(base)], "eps": 1e-5})
    for name, tensor in inputs.items():
        assert copies[name].stride() == tensor.stride()
        assert torch.equal(copies[name], tensor)
        assert copies[name].data_ptr() != tensor.data_ptr()
    assert copies["leaf"].requires_grad
    assert copies["leaf"].is_leaf
    assert copies["nest"][0].first.data_ptr() != base.data_ptr()
    assert copies["nest"][1].logits.data_ptr() != base.data_ptr()
    assert copies["eps"] == 1e-5


def _digest(tensor: torch.Tensor) -> str:
    return digest_state(None, {"x": tensor})


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.int64, torch.bool])
def test_the_digest_sees_every_element_and_its_place(dtype: torch.dtype) -> None:
    plain = torch.tensor([0, 1, 1, 0, 1, 0]).to(dtype)
    swapped = plain[torch.tensor([1, 0, 2, 3, 4, 5])]
    changed = plain.clone()
    changed[3] = 1
    assert _digest(plain) == _digest(plain.clone())
    assert len({_digest(plain), _digest(swapped), _digest(changed)}) == 3


def test_the_digest_sees_what_values_alone_do_not_tell() -> None:
    plain = torch.zeros(2, 3)
    variants = [
        plain,
        plain.reshape(3, 2),
        plain.double(),
        -plain,
        plain.clone().requires_grad_(),
        torch.zeros(3, 2).t(),
        plain.to(torch.complex64),
    ]
    assert len({_digest(v) for v in variants}) == len(variants)


def test_the_digest_covers_parameters_buffers_and_scalars_by_name() -> None:
    def digest(*, eps: float = 1.0, mean: float = 0.0, weight: float = 1.0) -> str:
        module = nn.BatchNorm1d(2)
        with torch.no_grad():
            module.weight.fill_(weight)
            assert module.running_mean is not None
            module.running_mean.fill_(mean)
        return digest_state(module, {"eps": eps})

    assert digest() == digest()
    assert len({digest(), digest(eps=2.0), digest(mean=1.0), digest(weight=2.0)}) == 4


def test_the_digest_of_a_large_tensor_crosses_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perfkit_harness.tensors._CHUNK", 4)
    plain = torch.arange(11)
    swapped = plain.clone()
    swapped[1], swapped[9] = plain[9], plain[1]
    assert _digest(plain) != _digest(swapped)


def test_nan_and_infinity_are_counted_apart() -> None:
    assert count_nonfinite(torch.tensor([1.0, float("nan"), float("inf"), -float("inf")])) == (1, 2)
    assert count_nonfinite(torch.tensor([1, 2])) == (0, 0)


def test_the_mean_square_is_taken_in_fp32_or_wider() -> None:
    assert mean_square(torch.full((3,), 300.0, dtype=torch.float16)).item() == 90000.0
    assert mean_square(torch.ones(2, dtype=torch.float64)).dtype == torch.float64
    assert mean_square(torch.tensor([3 + 4j])).item() == 12.5
