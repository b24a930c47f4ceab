"""Measures what this device can do: bandwidth per mix of reads and writes, matrix rates, launch floor."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import torch

from perfkit.wire.environment import Environment
from perfkit.wire.payloads import Peaks, Rate
from perfkit.wire.spec import Spec

from .. import environment
from ..ceilings import Effort, best_rate
from ..clocks import CpuClock, CudaClock, clock_for
from ..launch_floor import launch_floor, launch_latency
from ..seeding import seed_everything
from ..ways import copy_ways, gemm_ways, make_buffers, read_ways, triad_ways, write_ways

GPU_EFFORT = Effort(seconds=0.5, min_sample_s=0.004, pause_s=0.05)
CPU_EFFORT = Effort(seconds=0.4, min_sample_s=0.002, pause_s=0.0)
GPU_BUFFER_BYTES = 1 << 30
CPU_CACHE_FACTOR = 4
"""Size of a CPU buffer in units of the last-level cache."""
GPU_SHAPES = ((8192, 8192, 8192), (16384, 8192, 4096))
CPU_SHAPES = ((1024, 1024, 1024), (2048, 2048, 2048))
SLOW_GEMM_S = 0.25
"""A CPU whose probe takes longer has no fast path for that dtype; its rate is left out to save time."""
CPU_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


def run(spec: Spec, *, slot_dir: Path) -> tuple[Peaks, Environment]:
    """Measures the spec's device; under 20 s on two CPU cores. Leaves no file."""
    environment.settle(spec)
    seed_everything(spec.measure.seed)
    device = torch.device(spec.device)
    found = environment.read_environment(spec, device=device, target_file=None)
    clock = clock_for(device)
    on_gpu = device.type == "cuda"
    cache_bytes = found.gpu.l2_bytes if found.gpu is not None else last_level_cache_bytes(CPU_CACHES)
    rates = [
        *_bandwidths(device, clock, num_bytes=_buffer_bytes(device, cache_bytes)),
        *(_gpu_gemms(device, clock) if on_gpu else _cpu_gemms(device, clock)),
        launch_floor(device),
        launch_latency(device, clock=clock),
    ]
    return (
        Peaks(
            device_key=device_key(found),
            rates=tuple(rates),
            cache_bytes=cache_bytes,
            measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
        ),
        found,
    )


def device_key(found: Environment) -> str:
    """What the peaks depend on: `<uuid>|<driver>|torch <v>`, or `<cpu>|<n> threads|torch <v>`."""
    if found.gpu is not None:
        return f"{found.gpu.uuid}|{found.driver}|torch {found.torch}"
    return f"{found.cpu}|{found.num_threads} threads|torch {found.torch}"


def last_level_cache_bytes(folder: Path) -> int:
    """Size of the highest cache level that sysfs lists for a CPU; 0 where it lists none."""
    found = [(0, 0)]
    for index in folder.glob("index*"):
        level, size = (_text(index / name) for name in ("level", "size"))
        if level.isdigit() and size[-1:] == "K" and size[:-1].isdigit():
            found.append((int(level), int(size[:-1]) * 1024))
    return max(found)[1]


def _text(file: Path) -> str:
    return file.read_text(encoding="ascii").strip() if file.is_file() else ""


def _buffer_bytes(device: torch.device, cache_bytes: int) -> int:
    """Far above the cache, but no more than an eighth of the memory that is free."""
    if device.type == "cuda":
        return min(GPU_BUFFER_BYTES, torch.cuda.mem_get_info(device)[0] // 8)
    wanted = CPU_CACHE_FACTOR * cache_bytes or 256 << 20
    free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    return min(max(wanted, 64 << 20), 1 << 30, free // 8)


def _bandwidths(device: torch.device, clock: CpuClock | CudaClock, *, num_bytes: int) -> Iterator[Rate]:
    effort = GPU_EFFORT if device.type == "cuda" else CPU_EFFORT
    buffers = make_buffers(num_bytes, device)
    named = {"read": read_ways, "write": write_ways, "copy_1_1": copy_ways, "triad_2_1": triad_ways}
    for name, ways in named.items():
        yield best_rate(name, ways(buffers), unit="bytes_per_s", clock=clock, effort=effort)


def _gpu_gemms(device: torch.device, clock: CpuClock | CudaClock) -> Iterator[Rate]:
    major, _ = torch.cuda.get_device_capability(device)
    wanted = [("gemm_fp16", torch.float16, "ieee"), ("gemm_fp32", torch.float32, "ieee")]
    if major >= 8:  # bf16 and tf32 matrix units came with compute capability 8.0
        wanted += [("gemm_bf16", torch.bfloat16, "ieee"), ("gemm_tf32", torch.float32, "tf32")]
    for name, dtype, precision in wanted:
        with _fp32_precision(precision, device):
            ways = gemm_ways(dtype, device, GPU_SHAPES)
            yield best_rate(name, ways, unit="flops_per_s", clock=clock, effort=GPU_EFFORT)


def _cpu_gemms(device: torch.device, clock: CpuClock | CudaClock) -> Iterator[Rate]:
    ways = gemm_ways(torch.float32, device, CPU_SHAPES)
    yield best_rate("gemm_fp32", ways, unit="flops_per_s", clock=clock, effort=CPU_EFFORT)
    (probe, *_) = gemm_ways(torch.bfloat16, device, ((512, 512, 512),))
    probe.call()
    start_s = clock.host_s()
    probe.call()
    if (clock.host_s() - start_s) * (CPU_SHAPES[-1][0] / 512) ** 3 < SLOW_GEMM_S:
        ways = gemm_ways(torch.bfloat16, device, CPU_SHAPES[:1])
        yield best_rate("gemm_bf16", ways, unit="flops_per_s", clock=clock, effort=CPU_EFFORT)


@contextlib.contextmanager
def _fp32_precision(name: str, device: torch.device) -> Iterator[None]:
    before = environment.fp32_precision(device)
    environment.set_fp32_precision(name)
    try:
        yield
    finally:
        environment.set_fp32_precision("tf32" if before == "tf32" else "ieee")
