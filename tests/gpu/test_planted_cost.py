"""A planted extra copy raises the island it stands in by what a copy costs, and no other island."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfkit import floors
from perfkit.launch import run_slot
from perfkit.trace import label_times, read_trace
from perfkit.wire.codec import decode
from perfkit.wire.ledger import Ledger
from perfkit.wire.payloads import Costs, StepTimes
from perfkit.wire.spec import Measure
from tests.support.specs import layer_spec, write

pytestmark = pytest.mark.gpu

PLANTED = 2
_LAYER = """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self, planted, device, dtype):
        super().__init__()
        self.planted = planted
        self.scale = nn.Parameter(torch.randn(8192, device=device, dtype=dtype), requires_grad=False)
        weight = torch.randn(8192, 8192, device=device, dtype=dtype) / 90
        self.weight = nn.Parameter(weight, requires_grad=False)

    def forward(self, x):
        y = torch.tanh(x * self.scale)
        if self.planted:
            y = y.clone()
        return y @ self.weight

class Blocks(nn.Module):
    def __init__(self, plant, device, dtype):
        super().__init__()
        self.layers = nn.ModuleList(Block(index == plant, device, dtype) for index in range(4))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

def build(*, plant, device, dtype):
    return Blocks(plant, device, dtype)

def inputs(*, device, dtype, **_):
    return {"x": torch.randn(32768, 8192, device=device, dtype=dtype)}
"""


_COPY = """
import torch
from torch import nn

class Copy(nn.Module):
    def __init__(self, device, dtype):
        super().__init__()
        weight = torch.randn(8192, 8192, device=device, dtype=dtype) / 90
        self.weight = nn.Parameter(weight, requires_grad=False)

    def forward(self, x):
        return x.clone() @ self.weight

def build(*, device, dtype):
    return Copy(device, dtype)

def inputs(*, device, dtype):
    return {"x": torch.randn(32768, 8192, device=device, dtype=dtype)}
"""


def copy_us(tmp_path: Path) -> float:
    """Time of the same copy by its kernel's name, in a step of copy and product alone.

    The product is there because it holds the GPU at its power limit, as the blocks do: a copy alone ran 7%
    faster than one among products.
    """
    spec = layer_spec(write(tmp_path / "copy.py", _COPY), device="cuda:0", dtype="bf16")
    times = run_slot(spec, slot_dir=tmp_path / "slot").payload
    assert isinstance(times, StepTimes)
    (run,) = times.kernel_runs
    (copy,) = [
        kernel for kernel in run.kernels if "copy" in kernel.name.lower() or "memcpy" in kernel.name.lower()
    ]
    assert copy.num_calls == 1
    return copy.time_us


def islands(tmp_path: Path, *, plant: int) -> dict[str, tuple[floors.Unit, float]]:
    """Glue islands of the layer with the copy planted in that block: id -> unit and measured time."""
    folder = tmp_path / f"plant{plant}"
    folder.mkdir()
    spec = layer_spec(
        write(folder / "planted.py", _LAYER),
        values={"plant": plant},
        device="cuda:0",
        dtype="bf16",
        program="count_costs",
        measure=Measure(num_profiled_steps=10),
    )
    result = run_slot(spec, slot_dir=folder / "slot")
    costs = result.payload
    assert isinstance(costs, Costs), result.failure
    ledger = decode((folder / "slot" / costs.ledger_file).read_bytes(), Ledger)
    times = label_times(
        read_trace(folder / "slot" / costs.trace_file),
        num_steps=costs.num_traced_steps,
        plain=read_trace(folder / "slot" / costs.plain_trace_file),
    )
    assert times.times_from == "plain"
    units = floors.find_units(ledger)
    found = floors.attribute(
        units, times.times_us, unattributed_us=times.unattributed_us, total_us=times.total_us
    )
    assert floors.closure(found).is_closed
    return {u.id: (u, found.measured_us[u.id]) for u in units if u.island.kind == "island"}


def test_a_planted_copy_raises_its_own_island_alone(tmp_path: Path) -> None:
    known_us = copy_us(tmp_path)
    before, after = islands(tmp_path, plant=-1), islands(tmp_path, plant=PLANTED)
    assert before.keys() == after.keys()
    raised = {name: after[name][1] - before[name][1] for name in before}
    planted = [name for name, (unit, _) in after.items() if len(unit.ops) > len(before[name][0].ops)]
    assert len(planted) == 1
    assert f"layers.{PLANTED}" in {op.module for op in after[planted[0]][0].ops}
    assert raised[planted[0]] == pytest.approx(known_us, rel=0.05)
    for name in before.keys() - set(planted):
        if before[name][1] > 20:
            assert abs(raised[name]) <= 0.02 * before[name][1], name
