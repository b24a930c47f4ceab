"""The timed calls of one kernel: per direction and cache state, launched, in graphs and profiled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from perfkit.wire.payloads import CacheState, Direction, KernelRun, Timing
from perfkit.wire.spec import Spec

from .capture import NotCapturable, ReplayDiffers, WholeStep, capture_checked
from .clocks import Call, Clock, time_calls
from .cold_cache import CacheFlush, HoldBack, calibrate
from .graph_timing import refused, time_call_graph
from .kernel_step import KernelStep
from .kernels_seen import profiled_run
from .memory import PeakMemory, watch_peak
from .torch_private import gpu_sleep
from .trees import num_graphs
from .warm_up import WarmUp, warm_up

GPU_WARM_UP_S = 0.25
"""Least warm-up per direction on a GPU."""
NUM_MEMORY_CALLS = 3
NOT_HELD_BACK = "includes the host's launch time: this torch cannot hold the GPU back"


@dataclass
class KernelBench:
    """One kernel step with its clock and, on CUDA, what stands between two timed calls."""

    step: KernelStep
    spec: Spec
    device: torch.device
    clock: Clock[Any]

    def __post_init__(self) -> None:
        self._flush: CacheFlush | None = None
        sleep = gpu_sleep() if self.on_gpu else None
        self._hold: HoldBack | None = calibrate(sleep, clock=self.clock) if sleep is not None else None

    @property
    def on_gpu(self) -> bool:
        return self.device.type == "cuda"

    @property
    def whole(self) -> Direction:
        """The direction that runs everything."""
        return self.step.directions[-1]

    @property
    def caches(self) -> tuple[CacheState, ...]:
        return ("cold", "warm") if self.on_gpu else ("warm",)

    @property
    def num_samples(self) -> int:
        return max(self.spec.measure.num_timed_steps, self.spec.measure.min_kernel_samples)

    def warm_up(self) -> WarmUp:
        """Warms every direction, the whole one first: its excess is the compile time."""
        found = [self._warm(d) for d in reversed(self.step.directions)]
        return WarmUp(
            num_steps=sum(w.num_steps for w in found),
            stable=all(w.stable for w in found),
            steady_s=found[0].steady_s,
            excess_s=found[0].excess_s,
        )

    def peak_memory(self) -> PeakMemory:
        """Of a few whole calls, before the flush buffer exists."""
        self.step.clear_grads()
        with watch_peak(self.device) as memory:
            for _ in range(NUM_MEMORY_CALLS):
                self.step.call(self.whole)
        self.step.clear_grads()
        return memory

    def launch_timings(self) -> list[Timing]:
        return [self._launch(d, cache) for d in self.step.directions for cache in self.caches]

    def graph_timings(self, whole: WholeStep) -> list[Timing]:
        """One per direction and cache state; if the whole call fails its check, all share that fate."""
        pairs = [(d, cache) for d in self.step.directions for cache in self.caches]
        try:
            capture_checked(whole, device=self.device)
        except NotCapturable as error:
            return [refused(d, c, fate="not_capturable", reason=str(error)) for d, c in pairs]
        except ReplayDiffers as error:
            return [refused(d, c, fate="failed", reason=str(error)) for d, c in pairs]
        return [self._graph(direction, cache) for direction, cache in pairs]

    def kernel_run(self, direction: Direction) -> KernelRun:
        """Kernels of one direction, with a cold cache where there is one to flush."""
        cache = self.caches[0]
        return profiled_run(
            lambda: self.step.call(direction),
            device=self.device,
            direction=direction,
            cache=cache,
            num_steps=self.spec.measure.num_profiled_steps,
            prepare=self._prepare(direction, cache),
        )

    def _warm(self, direction: Direction) -> WarmUp:
        prepare = self._setup(direction)

        def call() -> None:
            prepare()
            self.step.call(direction)

        return warm_up(
            call,
            clock=self.clock,
            num_graphs=num_graphs,
            num_steps=self.spec.measure.num_warmup_steps,
            min_seconds=GPU_WARM_UP_S if self.on_gpu else 0.0,
        )

    def _launch(self, direction: Direction, cache: CacheState) -> Timing:
        prepare = self._prepare(direction, cache)

        def call() -> object:
            return self.step.call(direction)

        def both() -> None:
            prepare()
            call()

        hold = self._hold
        if hold is not None:
            hold.fit(both, clock=self.clock)
        samples_us = time_calls(
            call,
            clock=self.clock,
            num_samples=self.num_samples,
            prepare=self._prepare(direction, cache, hold=hold),
        )
        return Timing(
            direction=direction,
            launch="launch",
            cache=cache,
            samples_us=samples_us,
            clock=self.clock.name,
            reason=NOT_HELD_BACK if self.on_gpu and hold is None else "",
        )

    def _graph(self, direction: Direction, cache: CacheState) -> Timing:
        needed = direction == "backward" or cache == "cold"
        return time_call_graph(
            lambda: self.step.call(direction),
            prepare=self._prepare(direction, cache) if needed else None,
            direction=direction,
            cache=cache,
            device=self.device,
            clock=self.clock,
            num_samples=self.num_samples,
            hold_back=self._hold,
        )

    def _setup(self, direction: Direction) -> Call:
        return self.step.prepare_backward if direction == "backward" else self.step.clear_grads

    def _prepare(self, direction: Direction, cache: CacheState, *, hold: HoldBack | None = None) -> Call:
        """What runs in front of a call; the flush comes last, so that the cache is as it left it."""
        pieces: list[Call] = [self._setup(direction)]
        if hold is not None:
            pieces.append(hold)
        if cache == "cold":
            pieces.append(self._flusher())

        def prepare() -> None:
            for piece in pieces:
                piece()

        return prepare

    def _flusher(self) -> CacheFlush:
        if self._flush is None:
            l2_bytes = torch.cuda.get_device_properties(self.device).L2_cache_size
            self._flush = CacheFlush(self.device, l2_bytes=l2_bytes)
        return self._flush
