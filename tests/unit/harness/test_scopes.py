"""Labels of a profiled step against its ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from perfkit_harness.labelled_run import labelled_run, op_time_us
from perfkit_harness.ledger import record_ledger
from torch import nn

from perfkit.trace import label_times, read_trace


def test_labels_are_the_indices_of_the_ledger(tmp_path: Path) -> None:
    torch.manual_seed(0)
    module, x = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.LayerNorm(8)), torch.randn(4, 8)

    def step() -> None:
        module(x).pow(2).mean().backward()

    step()
    module.zero_grad()
    ledger = record_ledger(step, module=module)
    module.zero_grad()
    trace_file = tmp_path / "trace.json.gz"
    run = labelled_run(step, device=torch.device("cpu"), num_steps=1, trace_file=trace_file)
    assert run.names == (tuple(op.name for op in ledger.ops),)
    times = label_times(read_trace(trace_file))
    assert sorted(times.times_us) == [op.index for op in ledger.ops]
    seen = {index: kernels[0].name for index, kernels in times.kernels.items()}
    for op in ledger.ops:
        assert any(k.name == f"aten::{op.name.split('.')[1]}" for k in times.kernels[op.index]), seen
    assert run.time_us > 0


def test_indices_start_anew_in_each_step_and_changes_show(tmp_path: Path) -> None:
    steps: list[int] = []

    def step() -> torch.Tensor:
        steps.append(0)
        out = torch.ones(3) * 2
        return out.exp() if len(steps) == 2 else out

    run = labelled_run(step, device=torch.device("cpu"), num_steps=2, trace_file=tmp_path / "t.json.gz")
    assert run.names == (
        ("aten.ones.default", "aten.mul.Tensor"),
        ("aten.ones.default", "aten.mul.Tensor", "aten.exp.default"),
    )


def test_op_time_looks_through_labels_and_their_holders() -> None:
    def event(name: str, start: float, end: float, cat: str = "cpu_op") -> dict[str, Any]:
        return {"name": name, "cat": cat, "ts": start, "dur": end - start, "tid": 1, "ph": "X"}

    events = [
        event("autograd::engine::evaluate_function: X", 0, 100),
        event("aten::linear", 10, 60),
        event("pk:0", 20, 50, "user_annotation"),
        event("aten::addmm", 30, 40),
        event("aten::expand", 32, 34),
        event("aten::view", 70, 75),
    ]
    assert op_time_us(events) == pytest.approx(10 + 5)
