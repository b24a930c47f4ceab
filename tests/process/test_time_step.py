"""The measuring programs, each run as a real child on a small CPU target."""

from __future__ import annotations

import gzip
import json
import statistics
from pathlib import Path
from typing import Any

import msgspec
import pytest

from perfkit.launch import run_slot
from perfkit.wire.payloads import MachineFacts, Peaks, StepTimes
from perfkit.wire.results import Result
from perfkit.wire.spec import Measure, Spec, Subject
from tests.support.specs import kernel_spec, layer_spec, write

pytestmark = pytest.mark.process

_MEASURE = Measure(
    num_warmup_steps=2,
    num_timed_steps=4,
    num_profiled_steps=2,
    min_kernel_samples=6,
    num_threads=1,
    quick=True,
)
_LAYER = """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self, dim, device, dtype):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(dim, dim, device=device, dtype=dtype))

    def forward(self, x):
        return torch.tanh(x @ self.weight) / self.scale

    scale = 1.0

def build(*, dim, scale=1.0, device, dtype):
    block = Block(dim, device, dtype)
    block.scale = scale
    return block

def inputs(*, dim, device, dtype):
    return {"x": torch.randn(4, dim, device=device, dtype=dtype, requires_grad=True)}
"""
_KERNEL = """
import torch
import triton
import triton.language as tl

@triton.jit
def double_kernel(x, out, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out + at, 2 * tl.load(x + at))

def inputs(*, rows, device, dtype):
    return {"x": torch.randn(rows, 8, device=device, dtype=dtype, requires_grad=True)}

def reference(x):
    return x * 2.0

def target(x):
    out = torch.empty_like(x)
    double_kernel[(1,)](x.detach(), out, N=x.numel())
    return out

def provider_absent(x):
    import a_library_that_is_not_there
    return a_library_that_is_not_there.double(x)

def work(*, rows, itemsize):
    one = {"read": 8 * rows * itemsize, "written": 8 * rows * itemsize, "flops": 8 * rows}
    return {"forward": one, "backward": one}
"""


def _layer(tmp_path: Path, *, tree: str = "eager", **values: Any) -> Spec:
    file = write(tmp_path / "recipe" / "toy_layer.py", _LAYER)
    return layer_spec(
        file,
        values={"dim": 16, **values},
        target={"blocks": ("Block",)},
        measure=_MEASURE,
        subject=Subject(tree=tree),
    )


def _kernel(tmp_path: Path, provider: str) -> Spec:
    file = write(tmp_path / "recipe" / "toy_kernel.py", _KERNEL)
    return kernel_spec(file, values={"rows": 4}, measure=_MEASURE, subject=Subject(provider=provider))


def _times(result: Result) -> StepTimes:
    assert result.fate == "ok", result.reason
    assert isinstance(result.payload, StepTimes)
    return result.payload


@pytest.fixture(scope="module")
def profiled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Path]:
    """The layer measured and traced once, with the slot's folder."""
    folder = tmp_path_factory.mktemp("profiled")
    spec = msgspec.structs.replace(_layer(folder), program="take_profile")
    return run_slot(spec, slot_dir=folder / "slot"), folder / "slot"


def test_layer_is_timed_and_profiled(profiled: tuple[Result, Path]) -> None:
    result, _ = profiled
    times = _times(result)
    (timing,) = times.timings
    assert (timing.direction, timing.launch, timing.cache) == ("full", "launch", "warm")
    assert timing.clock == "perf_counter"
    assert len(timing.samples_us) == 4
    assert statistics.median(timing.samples_us) > 0
    (run,) = times.kernel_runs
    calls = {use.name: use.num_calls for use in run.kernels}
    assert calls["aten::matmul"] == 1.0
    assert calls["aten::mm"] == 2.0  # both products of the backward
    assert (times.num_graphs, times.cold_compile_s, times.peak_memory_bytes) == (None, None, None)
    assert times.num_warmup_steps >= 6
    assert times.working_set_bytes == 4 * (16 * 16 * 2 + 4 * 16 * 3)  # weight, x, output, two gradients
    assert result.environment is not None
    assert result.environment.num_threads == 1


def test_trace_has_the_steps_and_input_shapes(profiled: tuple[Result, Path]) -> None:
    result, slot_dir = profiled
    times = _times(result)
    trace = json.loads(gzip.decompress((slot_dir / times.trace_file).read_bytes()))
    steps = [e for e in trace["traceEvents"] if str(e.get("name")).startswith("ProfilerStep#")]
    assert len(steps) == times.num_traced_steps == 2
    assert any(e.get("args", {}).get("Input Dims") for e in trace["traceEvents"])


def test_another_process_has_equal_inputs_results_and_kernels(
    profiled: tuple[Result, Path], tmp_path: Path
) -> None:
    first, again = _times(profiled[0]), _times(run_slot(_layer(tmp_path), slot_dir=tmp_path / "slot"))
    assert first.inputs_sha256 == again.inputs_sha256
    assert first.output_sum == again.output_sum
    assert first.output_sum is not None
    assert first.kernel_runs[0].names_sha256 == again.kernel_runs[0].names_sha256


def test_nan_in_the_output_is_a_failure(tmp_path: Path) -> None:
    result = run_slot(_layer(tmp_path, scale=float("1e-45")), slot_dir=tmp_path / "slot")
    assert result.fate == "failed"
    assert result.failure is not None
    assert result.failure.kind == "NonFinite"
    assert "output" in result.failure.message


def test_compiled_block_counts_its_graph_and_its_cost(tmp_path: Path) -> None:
    times = _times(run_slot(_layer(tmp_path, tree="block"), slot_dir=tmp_path / "slot"))
    assert times.num_graphs == 1
    assert times.cold_compile_s is not None
    assert times.cold_compile_s > 0
    assert any(use.name.startswith("## Call CompiledFxGraph") for use in times.kernel_runs[0].kernels)


def test_kernel_is_timed_in_every_direction(tmp_path: Path) -> None:
    times = _times(run_slot(_kernel(tmp_path, "eager"), slot_dir=tmp_path / "slot"))
    named = [(t.direction, t.launch, t.cache, len(t.samples_us)) for t in times.timings]
    assert named == [(d, "launch", "warm", 6) for d in ("forward", "backward", "full")]
    forward, backward, full = times.kernel_runs
    assert [use.name for use in forward.kernels] == ["aten::mul"]
    assert forward.num_kernels == 1.0
    assert full.num_kernels == forward.num_kernels + backward.num_kernels
    assert [(w.direction, w.num_bytes) for w in times.work] == [("forward", 256), ("backward", 256)]


def test_interpreted_triton_kernel_is_never_timed(tmp_path: Path) -> None:
    result = run_slot(_kernel(tmp_path, "target"), slot_dir=tmp_path / "slot")
    assert result.fate == "failed"
    assert "interpreter" in result.reason


def test_missing_provider_says_so(tmp_path: Path) -> None:
    result = run_slot(_kernel(tmp_path, "absent"), slot_dir=tmp_path / "slot")
    assert result.fate == "failed"
    assert result.failure is not None
    assert result.failure.kind == "ProviderNotInstalled"
    assert "a_library_that_is_not_there" in result.failure.message


def test_peaks_of_this_cpu(tmp_path: Path) -> None:
    spec = Spec(program="measure_peaks", device="cpu", measure=Measure(num_threads=1))
    result = run_slot(spec, slot_dir=tmp_path / "slot")
    assert isinstance(result.payload, Peaks), result.reason
    rates = {rate.name: rate for rate in result.payload.rates}
    wanted = {"read", "write", "copy_1_1", "triad_2_1", "gemm_fp32", "launch_floor", "launch_latency"}
    assert wanted <= set(rates)
    assert all(rates[name].unit == "bytes_per_s" for name in ("read", "write", "copy_1_1", "triad_2_1"))
    # Any machine of the last 20 years: 0.1 GB/s to 10 TB/s, 0.1 GFLOP/s to 1 PFLOP/s, 1 ns to 1 ms.
    assert all(1e8 < rates[name].value < 1e13 for name in ("read", "write", "copy_1_1", "triad_2_1"))
    assert 1e8 < rates["gemm_fp32"].value < 1e15
    assert 1e-3 < rates["launch_floor"].value < 1e3
    assert "|1 threads|torch" in result.payload.device_key


def test_machine_is_described_with_reasons_for_what_does_not_work(tmp_path: Path) -> None:
    result = run_slot(Spec(program="describe_machine", device="cpu"), slot_dir=tmp_path / "slot")
    assert isinstance(result.payload, MachineFacts), result.reason
    facts = result.payload
    for works, error in (
        (facts.cuda_works, facts.cuda_error),
        (facts.triton_works, facts.triton_error),
        (facts.compile_works, facts.compile_error),
    ):
        assert works != bool(error)
    assert "math" in facts.attention_backends
