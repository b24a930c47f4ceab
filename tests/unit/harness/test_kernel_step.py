"""A kernel's calls in each direction, and its providers."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from perfkit_harness.kernel_step import KernelStep, upstream_gradients
from perfkit_harness.load import load_target
from perfkit_harness.step import NonFinite
from perfkit_harness.targets import KernelTarget, ProviderNotInstalled

from perfkit.errors import PerfkitError
from tests.support.specs import kernel_spec, write

pytestmark = pytest.mark.usefixtures("clean_imports")

_KERNEL = """
import torch

def inputs(*, grad=True, value=2.0, device, dtype):
    return {"x": torch.full((3,), value, device=device, dtype=dtype).requires_grad_(grad)}

def reference(x):
    return x.square(), x.new_zeros(1, dtype=torch.int64)

def target(x):
    return x * x, None

def provider_forward_only(x):
    return x.detach().square()

def provider_absent(x):
    from no_such_library_anywhere import square
    return square(x)
"""


def _target(tmp_path: Path, **values: float) -> KernelTarget:
    loaded = load_target(kernel_spec(write(tmp_path / "square.py", _KERNEL), values=values))
    assert isinstance(loaded, KernelTarget)
    return loaded


def test_every_direction_computes_the_same_gradient_and_none_adds_up(tmp_path: Path) -> None:
    step = KernelStep(_target(tmp_path), "target")
    assert step.directions == ("forward", "backward", "full")
    upstream = upstream_gradients([torch.zeros(3)], seed=0)[0]
    for _ in range(2):
        step.prepare_backward()
        assert step.grads() == {"grad:x": None}
        step.call("backward")
        assert torch.equal(step.grads()["grad:x"], 4.0 * upstream)
    outputs = step.call("full")
    assert torch.equal(outputs[0], torch.full((3,), 4.0))
    assert torch.equal(step.grads()["grad:x"], 4.0 * upstream)


def test_all_providers_get_the_same_upstream_gradient(tmp_path: Path) -> None:
    target = _target(tmp_path)
    grads = []
    for provider in ("target", "eager"):
        torch.rand(3)
        step = KernelStep(target, provider)
        step.full()
        grads.append(step.grads()["grad:x"])
    assert torch.equal(*grads)


def test_upstream_gradients_agree_across_dtypes_up_to_rounding() -> None:
    wide = upstream_gradients([torch.zeros(4, 2), torch.zeros(3)], seed=7)
    narrow = upstream_gradients([torch.zeros(4, 2, dtype=torch.bfloat16), torch.zeros(3)], seed=7)
    assert torch.equal(wide[0].bfloat16(), narrow[0])
    assert torch.equal(wide[1], narrow[1])
    assert not torch.equal(wide[0], upstream_gradients([torch.zeros(4, 2)], seed=8)[0])


def test_a_backward_cannot_run_twice_on_one_forward(tmp_path: Path) -> None:
    step = KernelStep(_target(tmp_path), "target")
    step.prepare_backward()
    step.backward()
    with pytest.raises(PerfkitError, match="Cannot run the backward of toy twice"):
        step.backward()


def test_forward_alone_where_no_input_requires_grad(tmp_path: Path) -> None:
    step = KernelStep(_target(tmp_path, grad=False), "target")
    assert step.directions == ("forward",)
    step.check_finite()


def test_a_provider_without_a_backward_is_named(tmp_path: Path) -> None:
    with pytest.raises(PerfkitError, match=r"provider forward_only of toy has no backward.*though x do"):
        KernelStep(_target(tmp_path), "forward_only").full()


def test_a_provider_whose_library_is_missing(tmp_path: Path) -> None:
    step = KernelStep(_target(tmp_path), "absent")
    with pytest.raises(ProviderNotInstalled, match="Importing no_such_library_anywhere failed"):
        step.forward()


def test_an_unknown_provider_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(PerfkitError, match=r"target, eager, compile, forward_only, absent.*mean absent"):
        KernelStep(_target(tmp_path), "absnt")


def test_values_that_are_not_finite_name_the_provider(tmp_path: Path) -> None:
    with pytest.raises(NonFinite, match=r"toy \(target\).*output\[0\] \(0 NaN and 3 Inf of 3\)"):
        KernelStep(_target(tmp_path, value=1e30), "target").check_finite()
