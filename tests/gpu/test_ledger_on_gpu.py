"""The ledger where backward runs on a thread of its own, and labels that lead kernels back to ops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from perfkit.launch import run_slot
from perfkit.trace import label_times, read_trace
from perfkit.wire.codec import decode
from perfkit.wire.ledger import Ledger
from perfkit.wire.payloads import Costs
from perfkit.wire.spec import Measure, Spec, Subject
from tests.support.harness import load_harness
from tests.support.specs import kernel_spec, layer_spec

load_harness()

from perfkit_harness.ledger import record_ledger  # noqa: E402

pytestmark = pytest.mark.gpu

_RECIPES = Path(__file__).resolve().parents[2] / "recipes"
_MEASURE = Measure(num_warmup_steps=2, num_profiled_steps=2)


class _Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x, weight)
        return x * weight

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x, weight = ctx.saved_tensors
        return grad * weight, (grad * x).sum(0)


class _Block(nn.Module):
    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how
        self.linear = nn.Linear(64, 64)
        self.weight = nn.Parameter(torch.ones(64))

    def inner(self, x: torch.Tensor) -> torch.Tensor:
        return functional.gelu(_Scale.apply(self.linear(x), self.weight)) + x

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return checkpoint(self.inner, x, use_reentrant=self.how == "reentrant") if self.how else self.inner(x)


def _ledger(device: str, how: str) -> Ledger:
    module = nn.Sequential(*(_Block(how) for _ in range(3))).to(device)
    x = torch.randn(8, 64, device=device, requires_grad=True)

    def step() -> torch.Tensor:
        out = module(x)
        out.pow(2).mean().backward()
        return out

    return record_ledger(step, module=module, leaves=dict(module.named_parameters()))


@pytest.mark.parametrize("how", ["", "reentrant", "non-reentrant"])
def test_origins_are_those_of_the_cpu(how: str) -> None:
    found = {
        device: sorted(
            (op.phase, op.module, op.source) for op in _ledger(device, how).ops if op.kind == "gemm"
        )
        for device in ("cpu", "cuda")
    }
    assert found["cpu"] == found["cuda"]
    functions = [op for op in _ledger("cuda", how).ops if op.source.endswith("_Scale.forward")]
    phases = ("forward", "recompute", "backward")
    modules = {phase: [op.module for op in functions if op.phase == phase] for phase in phases}
    assert modules["forward"] == ["0", "1", "2"]
    assert modules["recompute"] == (["2", "1", "0"] if how else [])
    assert list(dict.fromkeys(modules["backward"])) == ["2", "1", "0"]


def _count(spec: Spec, folder: Path) -> tuple[Costs, Ledger]:
    result = run_slot(spec, slot_dir=folder)
    assert result.fate == "ok", result
    assert isinstance(result.payload, Costs)
    return result.payload, decode((folder / result.payload.ledger_file).read_bytes(), Ledger)


@pytest.mark.parametrize("mode", ["none", "full", "selective"])
def test_kernel_time_is_attributed(tmp_path: Path, mode: Any) -> None:
    spec = layer_spec(
        _RECIPES / "layers" / "llama3-block.py",
        values={"tokens": 256, "dim": 512, "heads": 8, "kv_heads": 2, "ffn": 1024},
        target={"blocks": ("Block",)},
        program="count_costs",
        device="cuda:0",
        dtype="bf16",
        measure=Measure(num_warmup_steps=2, num_profiled_steps=2, checkpoint=mode),
    )
    costs, ledger = _count(spec, tmp_path / "slot")
    assert costs.same_ops
    assert any(op.phase == "recompute" for op in ledger.ops) == (mode != "none")
    attention = [op for op in ledger.ops if op.kind == "attention"]
    assert len(attention) == (6 if mode == "full" else 4)
    assert all(op.num_flops for op in attention)
    times = label_times(read_trace(tmp_path / "slot" / costs.trace_file), num_steps=costs.num_traced_steps)
    assert times.unattributed_us <= 0.01 * times.total_us


def test_compiled_triton_launches_are_opaque_ops(tmp_path: Path) -> None:
    spec = kernel_spec(
        _RECIPES / "kernels" / "rms-norm.py",
        values={"rows": 64, "cols": 256},
        program="count_costs",
        device="cuda:0",
        dtype="bf16",
        subject=Subject(provider="target"),
        measure=_MEASURE,
    )
    costs, ledger = _count(spec, tmp_path / "slot")
    launches = [op for op in ledger.ops if op.name.startswith("triton.")]
    assert {op.phase for op in launches} == {"forward", "backward"}
    assert not any(op.known_traffic for op in launches)
    times = label_times(read_trace(tmp_path / "slot" / costs.trace_file), num_steps=costs.num_traced_steps)
    assert all(times.times_us.get(op.index, 0.0) > 0 for op in launches)
