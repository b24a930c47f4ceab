"""The Llama 3 recipe computes what its docstrings say, and compiles where it says so."""

from __future__ import annotations

from types import ModuleType

import pytest
import torch
from torch import Tensor

from perfkit.places import recipes_dir
from tests.support.harness import load_harness

load_harness()

from perfkit_harness.imports import import_file  # noqa: E402

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def recipe() -> ModuleType:
    module: ModuleType = import_file("llama3_block_under_test", recipes_dir() / "layers" / "llama3-block.py")
    return module


def rotate_pairs(x_BTNH: Tensor, angle_TC: Tensor) -> Tensor:
    """RoPE in real numbers: (a, b) -> (a cos - b sin, a sin + b cos)."""
    a, b = x_BTNH[..., 0::2], x_BTNH[..., 1::2]
    cos, sin = angle_TC.cos()[:, None, :], angle_TC.sin()[:, None, :]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)


def test_rope_equals_the_rotation_in_real_numbers(recipe: ModuleType) -> None:
    torch.manual_seed(0)
    freqs_TC = recipe.rope_frequencies(8, tokens=5, device=CPU)
    q, k = torch.randn(1, 5, 4, 8), torch.randn(1, 5, 2, 8)
    q_out, k_out = recipe.apply_rope(q, k, freqs_TC)
    torch.testing.assert_close(q_out, rotate_pairs(q, freqs_TC.angle()))
    torch.testing.assert_close(k_out, rotate_pairs(k, freqs_TC.angle()))
    torch.testing.assert_close(q_out[:, 0], q[:, 0])


def test_rms_norm_equals_torch(recipe: ModuleType) -> None:
    norm = recipe.RMSNorm(16, device=CPU, dtype=torch.float32)
    x = torch.randn(2, 3, 16)
    torch.testing.assert_close(norm(x), torch.nn.functional.rms_norm(x, (16,), norm.weight, norm.eps))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_step_is_finite_and_reaches_every_parameter(recipe: ModuleType, dtype: torch.dtype) -> None:
    case = recipe.cpu_cases["tiny"]
    torch.manual_seed(0)
    module = recipe.build(**case, device=CPU, dtype=dtype)
    inputs = recipe.inputs(**case, device=CPU, dtype=dtype)
    out = module(**inputs)
    assert out.shape == inputs["x_BTD"].shape
    assert out.dtype == dtype
    assert 0.5 < out.float().std() < 3
    out.float().square().mean().backward()
    for leaf in (*module.parameters(), inputs["x_BTD"]):
        assert leaf.grad is not None
        assert leaf.grad.isfinite().all()
        assert leaf.grad.any()


def test_no_token_sees_a_later_one(recipe: ModuleType) -> None:
    case = recipe.cpu_cases["tiny"]
    torch.manual_seed(0)
    module = recipe.build(**case, device=CPU, dtype=torch.float32)
    x = recipe.inputs(**case, device=CPU, dtype=torch.float32)["x_BTD"].detach()
    changed = x.clone()
    changed[:, 40:] += 1.0
    before, after = module(x), module(changed)
    torch.testing.assert_close(before[:, :40], after[:, :40])
    assert (before[:, 40:] - after[:, 40:]).abs().max() > 0.1


def test_the_declared_names_exist(recipe: ModuleType) -> None:
    case = recipe.cpu_cases["tiny"]
    module = recipe.build(**case, device=CPU, dtype=torch.float32)
    assert sum(type(m).__name__ in recipe.blocks for m in module.modules()) == 2
    for region in recipe.regions:
        value = recipe
        for part in region.split("."):
            value = getattr(value, part)
        assert callable(value)
