"""How long the GPU is held back, and that a flush reads far more than the cache holds."""

from __future__ import annotations

import pytest
import torch
from perfkit_harness.cold_cache import FLUSH_FACTOR, CacheFlush, HoldBack, calibrate

from tests.support.fake_clock import FakeClock


def test_calibration_finds_cycles_per_microsecond_without_the_slow_first_pause() -> None:
    clock, pauses = FakeClock(), iter([9e9, 1000.0, 1000.0, 50.0])
    hold = calibrate(lambda cycles: clock.work(str(cycles), next(pauses)), clock=clock)
    hold.time_us = 50.0
    hold()
    assert clock.log[-1] == "100000"  # 2,000,000 cycles took 1000 us


def test_the_pause_is_twice_the_host_time_of_the_calls() -> None:
    clock = FakeClock()
    hold = HoldBack(lambda cycles: None, cycles_per_us=1000.0)
    hold.fit(lambda: clock.work("enqueue", 300.0), clock=clock)
    assert hold.time_us == pytest.approx(620.0)


def test_flush_reads_several_times_the_cache_and_writes_one_number() -> None:
    flush = CacheFlush(torch.device("cpu"), l2_bytes=4096)
    flush()
    assert flush._buffer.nbytes == FLUSH_FACTOR * 4096
    assert float(flush._sink) == FLUSH_FACTOR * 1024
    assert torch.all(flush._buffer == 1.0)
