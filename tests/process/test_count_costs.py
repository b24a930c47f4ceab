"""count_costs in real children: a checkpointed layer, and a kernel through its reference and in Triton."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfkit.floors import attribute, closure, find_units
from perfkit.launch import run_slot
from perfkit.trace import label_times, read_trace
from perfkit.wire.codec import decode
from perfkit.wire.ledger import Ledger
from perfkit.wire.payloads import Costs
from perfkit.wire.spec import Measure, Spec, Subject
from tests.support.specs import kernel_spec, layer_spec, write

pytestmark = pytest.mark.process

LAYER = '''
"""A block twice."""
import torch
from torch import nn
from torch.nn.functional import gelu

class Block(nn.Module):
    def __init__(self, dim, device, dtype):
        super().__init__()
        self.up = nn.Linear(dim, 2 * dim, device=device, dtype=dtype)
        self.down = nn.Linear(2 * dim, dim, device=device, dtype=dtype)

    def forward(self, x):
        return x + self.down(gelu(self.up(x)))

def build(*, dim, device, dtype):
    return nn.Sequential(Block(dim, device, dtype), Block(dim, device, dtype))

def inputs(*, dim, device, dtype):
    return {"input": torch.randn(3, dim, device=device, dtype=dtype, requires_grad=True)}
'''

RMS_NORM = Path(__file__).resolve().parents[2] / "recipes" / "kernels" / "rms-norm.py"
QUICK = {"num_warmup_steps": 1, "num_profiled_steps": 2}


def count(spec: Spec, folder: Path) -> tuple[Costs, Ledger]:
    result = run_slot(spec, slot_dir=folder)
    assert result.fate == "ok", result
    assert isinstance(result.payload, Costs)
    return result.payload, decode((folder / result.payload.ledger_file).read_bytes(), Ledger)


def test_a_checkpointed_layer(tmp_path: Path) -> None:
    file = write(tmp_path / "twice.py", LAYER)
    spec = layer_spec(
        file,
        values={"dim": 8},
        target={"blocks": ("Block",)},
        program="count_costs",
        subject=Subject(tree="block"),
        measure=Measure(checkpoint="full", **QUICK),
    )
    costs, ledger = count(spec, tmp_path / "slot")
    assert costs.same_ops
    assert costs.num_ops == len(ledger.ops)
    assert "not of block" in costs.notes[0]
    gemms = {phase: [op for op in ledger.ops if (op.kind, op.phase) == ("gemm", phase)] for phase in _PHASES}
    # Without its last GEMM, whose result backward does not need, a block runs again.
    assert [len(gemms[phase]) for phase in _PHASES] == [4, 2, 8]
    assert {op.module for op in gemms["recompute"]} == {"0.up", "1.up"}
    assert sum(op.num_flops for op in gemms["forward"]) == 2 * 2 * 2 * 3 * 8 * 16
    assert all(op.source.startswith("twice.py:") for op in gemms["backward"])
    assert [op.source for op in ledger.ops if "mean" in op.name] == [""]
    times = label_times(read_trace(tmp_path / "slot" / costs.trace_file), num_steps=costs.num_traced_steps)
    attributed = attribute(
        find_units(ledger),
        times.times_us,
        unattributed_us=times.unattributed_us,
        total_us=times.total_us,
    )
    assert closure(attributed).is_closed
    assert set(times.times_us) == set(range(len(ledger.ops)))


_PHASES = ("forward", "recompute", "backward")


@pytest.mark.parametrize("provider", ["", "target"])
def test_a_kernel_through_its_reference_and_in_triton(tmp_path: Path, provider: str) -> None:
    pytest.importorskip("triton")
    spec = kernel_spec(
        RMS_NORM,
        values={"rows": 3, "cols": 8},
        program="count_costs",
        subject=Subject(provider=provider),
        measure=Measure(**QUICK),
    )
    costs, ledger = count(spec, tmp_path / "slot")
    assert costs.same_ops
    launches = [op for op in ledger.ops if op.name.startswith("triton.")]
    assert bool(launches) == (provider == "target")
    assert all(op.kind == "opaque" and not op.known_traffic for op in launches)
    assert {op.phase for op in ledger.ops} == {"forward", "backward"}
    assert any("No floor can be stated" in note for note in costs.notes) == bool(launches)
    if launches:
        assert {op.phase for op in launches} == {"forward", "backward"}
