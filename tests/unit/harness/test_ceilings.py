"""Which samples a ceiling is made of, and the cache sizes that sysfs gives."""

from __future__ import annotations

from pathlib import Path

import pytest
from perfkit_harness.ceilings import NUM_BATCHES, Effort, Way, best_median, best_rate, spread_percent
from perfkit_harness.programs.measure_peaks import device_key, last_level_cache_bytes

from perfkit.wire.environment import Environment, Gpu
from tests.support.fake_clock import FakeClock

_EFFORT = Effort(seconds=1.0, min_sample_s=0.0, pause_s=0.0)


def test_the_fastest_way_makes_the_rate_and_is_named() -> None:
    clock = FakeClock()
    ways = [
        Way("slow", 100.0, lambda: clock.work("slow", 2000.0)),
        Way("fast", 100.0, lambda: clock.work("fast", 1000.0)),
    ]
    rate = best_rate("read", ways, unit="bytes_per_s", clock=clock, effort=_EFFORT)
    assert rate.value == pytest.approx(100.0 / 1e-3)
    assert rate.how.startswith("fast; best of 2 ways")
    assert rate.num_samples == 20
    assert rate.spread_percent == 0.0


def test_a_way_that_moves_more_may_take_longer() -> None:
    clock = FakeClock()
    ways = [
        Way("one", 100.0, lambda: clock.work("one", 1000.0)),
        Way("two", 300.0, lambda: clock.work("two", 2000.0)),
    ]
    rate = best_rate("read", ways, unit="bytes_per_s", clock=clock, effort=_EFFORT)
    assert rate.value == pytest.approx(300.0 / 2e-3)


def test_slow_batches_do_not_lower_the_ceiling_and_one_lucky_sample_does_not_raise_it() -> None:
    assert best_median([[5.0, 5.0, 5.0], [4.0, 4.0, 1.0], [9.0, 9.0, 9.0]]) == 4.0


def test_short_calls_are_timed_in_groups() -> None:
    clock = FakeClock()
    effort = Effort(seconds=0.1, min_sample_s=0.001, pause_s=0.0)
    way = Way("short", 1.0, lambda: clock.work("call", 10.0))
    rate = best_rate("read", [way], unit="bytes_per_s", clock=clock, effort=effort)
    assert rate.value == pytest.approx(1e5)
    assert clock.log.count("call") > 100 * 20


def test_slow_calls_get_one_sample_per_batch() -> None:
    clock = FakeClock()
    way = Way("slow", 1.0, lambda: clock.work("call", 3e6))
    assert (
        best_rate("read", [way], unit="bytes_per_s", clock=clock, effort=_EFFORT).num_samples == NUM_BATCHES
    )


def test_spread_is_the_interquartile_range_over_the_median() -> None:
    assert spread_percent([90.0, 95.0, 100.0, 105.0, 110.0]) == pytest.approx(10.0)
    assert spread_percent([5.0]) == 0.0


def _cache(folder: Path, index: int, level: str, size: str) -> None:
    (folder / f"index{index}").mkdir()
    (folder / f"index{index}" / "level").write_text(f"{level}\n", encoding="ascii")
    (folder / f"index{index}" / "size").write_text(f"{size}\n", encoding="ascii")


def test_last_level_cache_is_the_highest_level(tmp_path: Path) -> None:
    for index, (level, size) in enumerate([("1", "32K"), ("3", "32768K"), ("2", "512K")]):
        _cache(tmp_path, index, level, size)
    assert last_level_cache_bytes(tmp_path) == 32 << 20


def test_unknown_caches_are_zero(tmp_path: Path) -> None:
    (tmp_path / "index0").mkdir()
    assert last_level_cache_bytes(tmp_path) == 0
    assert last_level_cache_bytes(tmp_path / "absent") == 0


def _environment(gpu: Gpu | None) -> Environment:
    return Environment(
        python="3.12",
        torch="2.13.0",
        triton=None,
        cuda=None,
        driver="580.1",
        cpu="AMD EPYC",
        num_threads=2,
        device="cpu",
        gpu=gpu,
        fp32_precision="ieee",
        target_file="",
    )


def test_device_key_names_what_peaks_depend_on() -> None:
    gpu = Gpu(name="NVIDIA H200", uuid="GPU-1", capability="9.0", num_sms=132, memory_bytes=1, l2_bytes=1)
    assert device_key(_environment(None)) == "AMD EPYC|2 threads|torch 2.13.0"
    assert device_key(_environment(gpu)) == "GPU-1|580.1|torch 2.13.0"
