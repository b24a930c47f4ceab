"""What only a GPU can show: flushes, graphs, steps that cannot be captured, peaks."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

import msgspec
import pytest

from perfkit.launch import run_slot
from perfkit.wire.payloads import Peaks, StepTimes, Timing
from perfkit.wire.spec import Measure, Spec, Subject
from tests.support.harness import load_harness
from tests.support.specs import kernel_spec, layer_spec, write

pytestmark = pytest.mark.gpu

_MEASURE = Measure(num_warmup_steps=3, num_timed_steps=10, num_profiled_steps=3, min_kernel_samples=20)
_LAYER = """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self, how, device, dtype):
        super().__init__()
        self.how = how
        self.num_calls = 0
        self.weight = nn.Parameter(torch.randn(1024, 1024, device=device, dtype=dtype) / 32)

    def forward(self, x, scale=None):
        y = torch.tanh(x @ self.weight)
        if self.how == "item":
            y = y * y.sum().item()
        if self.how == "synchronize":
            torch.cuda.synchronize()
        if self.how == "python_state":
            self.num_calls += 1
            y = y * (1 + self.num_calls % 3)
        if scale is not None:
            y = y * float(scale)
        if self.how == "dropout":
            y = torch.nn.functional.dropout(y, 0.5)
        if self.how == "scatter":
            index = torch.arange(y.shape[0], device=y.device) % 7
            y = torch.zeros_like(y).index_add(0, index, y)
        return y

def build(*, how="plain", device, dtype):
    return Block(how, device, dtype)

def inputs(*, how="plain", device, dtype):
    x = torch.randn(512, 1024, device=device, dtype=dtype, requires_grad=True)
    return {"x": x, "scale": torch.tensor(2.0)} if how == "cpu_scalar" else {"x": x}
"""
_KERNEL = """
import torch

def inputs(*, rows, device, dtype):
    return {"x": torch.randn(rows, 1024, device=device, dtype=dtype, requires_grad=True)}

def reference(x):
    return x * 2.0

def target(x):
    return torch.mul(x, 2.0)
"""


def _layer(tmp_path: Path, how: str = "plain", **spec: Any) -> StepTimes:
    file = write(tmp_path / "toy_layer.py", _LAYER)
    spec = {"device": "cuda:0", "measure": _MEASURE, "target": {"blocks": ("Block",)}, **spec}
    return _times(layer_spec(file, values={"how": how}, **spec), tmp_path)


def _times(spec: Spec, tmp_path: Path) -> StepTimes:
    result = run_slot(spec, slot_dir=tmp_path / "slot")
    assert result.fate == "ok", result.failure
    assert isinstance(result.payload, StepTimes)
    return result.payload


def _median(timing: Timing) -> float:
    assert timing.fate == "ok", timing.reason
    return statistics.median(timing.samples_us)


def test_flush_and_pause_are_not_in_the_number() -> None:
    load_harness()
    import torch
    from perfkit_harness.clocks import CudaClock, time_calls
    from perfkit_harness.cold_cache import CacheFlush, calibrate
    from perfkit_harness.torch_private import gpu_sleep

    device, clock = torch.device("cuda:0"), CudaClock()
    flush = CacheFlush(device, l2_bytes=torch.cuda.get_device_properties(device).L2_cache_size)
    sleep = gpu_sleep()
    assert sleep is not None
    hold = calibrate(sleep, clock=clock)
    hold.time_us = 200.0

    def prepare() -> None:
        hold()
        flush()

    flush_us = statistics.median(time_calls(flush, clock=clock, num_samples=20, before=hold))
    nothing_us = statistics.median(time_calls(lambda: None, clock=clock, num_samples=20, prepare=prepare))
    assert flush_us > 20.0
    assert nothing_us < 10.0


def test_cold_reads_are_slower_than_warm_ones() -> None:
    load_harness()
    import torch
    from perfkit_harness.clocks import CudaClock, time_calls
    from perfkit_harness.cold_cache import CacheFlush, calibrate
    from perfkit_harness.torch_private import gpu_sleep

    device, clock = torch.device("cuda:0"), CudaClock()
    l2_bytes = torch.cuda.get_device_properties(device).L2_cache_size
    x, out = torch.ones(l2_bytes // 16, device=device), torch.empty(l2_bytes // 16, device=device)
    flush = CacheFlush(device, l2_bytes=l2_bytes)
    sleep = gpu_sleep()
    assert sleep is not None
    # Without the pause the host's launch time is in the warm number, and is larger than the difference.
    hold = calibrate(sleep, clock=clock)
    hold.time_us = 200.0

    def call() -> None:
        torch.neg(x, out=out)

    cold = statistics.median(time_calls(call, clock=clock, num_samples=30, prepare=flush, before=hold))
    warm = statistics.median(time_calls(call, clock=clock, num_samples=30, prepare=call, before=hold))
    assert cold > 1.1 * warm


def test_layer_has_launch_and_graph_times_kernels_and_memory(tmp_path: Path) -> None:
    times = _layer(tmp_path)
    launch, graph = times.timings
    assert (launch.launch, graph.launch) == ("launch", "graph")
    assert _median(graph) < 1.1 * _median(launch)
    (run,) = times.kernel_runs
    assert 0.5 * _median(graph) < run.time_us < 1.2 * _median(graph)
    assert times.resident_memory_bytes is not None
    assert times.peak_memory_bytes is not None
    assert 0 < times.resident_memory_bytes < times.peak_memory_bytes


def test_compiled_block_is_captured(tmp_path: Path) -> None:
    times = _layer(tmp_path, subject=Subject(tree="block"))
    assert times.num_graphs == 1
    assert times.cold_compile_s is not None
    _median(times.timings[1])


def test_random_ops_and_atomics_pass_the_replay_check(tmp_path: Path) -> None:
    for how in ("dropout", "scatter"):
        _median(_layer(tmp_path / how, how).timings[1])


def test_a_step_with_item_is_not_capturable_and_says_where(tmp_path: Path) -> None:
    times = _layer(tmp_path, "item")
    launch, graph = times.timings
    assert launch.fate == "ok"
    assert graph.fate == "not_capturable"
    assert "_local_scalar_dense" in graph.reason
    assert "toy_layer.py" in graph.reason
    assert times.kernel_runs[0].num_kernels > 0


def test_a_capture_that_breaks_off_leaves_the_slot_whole(tmp_path: Path) -> None:
    times = _layer(tmp_path, "synchronize")
    graph = times.timings[1]
    assert graph.fate == "not_capturable"
    assert "captur" in graph.reason
    assert times.kernel_runs[0].num_kernels > 0


@pytest.mark.parametrize("how", ["python_state", "cpu_scalar"])
def test_a_replay_that_does_other_work_than_the_step_is_refused(tmp_path: Path, how: str) -> None:
    graph = _layer(tmp_path, how).timings[1]
    assert graph.fate == "failed"
    assert "a replay" in graph.reason


@pytest.mark.parametrize("provider", ["target", "compile"])
def test_kernel_has_every_direction_cold_and_warm_launched_and_in_graphs(
    tmp_path: Path, provider: str
) -> None:
    file = write(tmp_path / "toy_kernel.py", _KERNEL)
    spec = kernel_spec(file, values={"rows": 4096}, measure=_MEASURE, subject=Subject(provider=provider))
    times = _times(msgspec.structs.replace(spec, device="cuda:0"), tmp_path)
    found = {(t.direction, t.launch, t.cache): _median(t) for t in times.timings}
    assert len(found) == 12
    for direction in ("forward", "backward", "full"):
        for cache in ("cold", "warm"):
            launch, graph = found[direction, "launch", cache], found[direction, "graph", cache]
            assert 0.3 * launch < graph < 1.5 * launch
    # Backward is left out: right behind its forward, a warm cache holds dirty lines that it must write back.
    assert found["forward", "launch", "cold"] > 0.95 * found["forward", "launch", "warm"]
    forward, backward, full = times.kernel_runs
    assert (forward.num_kernels, backward.num_kernels, full.num_kernels) == (1.0, 1.0, 2.0)
    assert forward.cache == "cold"
    assert forward.time_us < found["forward", "launch", "cold"]


def test_peaks_are_plausible_and_ordered(tmp_path: Path) -> None:
    result = run_slot(Spec(program="measure_peaks", device="cuda:0"), slot_dir=tmp_path / "slot")
    assert isinstance(result.payload, Peaks), result.failure
    rate = {r.name: r.value for r in result.payload.rates}
    for name in ("read", "write", "copy_1_1", "triad_2_1"):
        assert 1e11 < rate[name] < 2e13
    assert rate["read"] > 0.85 * rate["copy_1_1"]
    assert rate["gemm_bf16"] > rate["gemm_fp32"] > 1e12
    assert 0.5 < rate["launch_floor"] < 10.0
    assert rate["launch_floor"] < rate["launch_latency"] * 5
    assert result.payload.cache_bytes > 1 << 20
