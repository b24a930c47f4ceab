"""The watch of one slot, on a stand-in NVML and without real time."""

from __future__ import annotations

from collections.abc import Callable

from perfkit.machine.contamination import contamination
from perfkit.machine.watch import NvmlWatch
from perfkit.wire.results import Watch
from tests.support.fake_nvml import FakeGpu, FakeNvml

OURS, FOREIGN, GONE = 100, 200, 300


def watch_through(
    gpu: FakeGpu,
    *steps: Callable[[], None],
    host_pids: bool = True,
    exists: Callable[[int], bool] = lambda pid: pid != GONE,
) -> Watch:
    """Polls once, then once after each step, then once when the slot ends."""
    remaining = list(steps)

    def wait(seconds: float) -> bool:
        if not remaining:
            return True
        remaining.pop(0)()
        return False

    library = FakeNvml(gpu)
    watch = NvmlWatch(
        0,
        pid_is_ours=lambda pid: pid == OURS,
        bindings=library,
        wait=wait,
        pid_exists=exists,
        host_pids=host_pids,
    )
    with watch:
        pass
    assert library.num_open == 0
    return watch.report()


def set_pids(gpu: FakeGpu, *pids: int) -> Callable[[], None]:
    return lambda: setattr(gpu, "pids", pids)


def test_a_quiet_slot_is_clean() -> None:
    gpu = FakeGpu()
    report = watch_through(gpu, set_pids(gpu, OURS), set_pids(gpu, OURS))
    assert report.watched
    assert report.num_polls == 4
    assert report.foreign_pids == ()
    assert report.temperature_c == (40, 40, 40)
    assert contamination(report) == ""


def test_a_foreign_process_is_seen_even_when_it_leaves_again() -> None:
    gpu = FakeGpu()
    report = watch_through(gpu, set_pids(gpu, OURS, FOREIGN), set_pids(gpu, OURS))
    assert report.foreign_pids == (FOREIGN,)
    assert contamination(report) == "A foreign process was on the GPU (pid 200)."


def test_a_process_that_ended_between_listing_and_looking_is_not_foreign() -> None:
    gpu = FakeGpu()
    assert watch_through(gpu, set_pids(gpu, GONE)).foreign_pids == ()


def test_the_slots_own_process_stays_its_own_after_its_end() -> None:
    gpu = FakeGpu()
    alive = [OURS]
    watch = NvmlWatch(
        0,
        pid_is_ours=lambda pid: pid in alive,
        bindings=FakeNvml(gpu),
        wait=lambda seconds: True,
        host_pids=True,
        pid_exists=lambda pid: True,
    )
    gpu.pids = (OURS,)
    with watch:
        alive.clear()
    assert watch.report().foreign_pids == ()


def test_in_a_container_the_first_unknown_id_after_the_start_is_the_slot() -> None:
    gpu = FakeGpu()
    report = watch_through(
        gpu, set_pids(gpu, 9001), set_pids(gpu, 9001, 9002), host_pids=False, exists=lambda pid: False
    )
    assert report.foreign_pids == (9002,)


def test_in_a_container_an_unknown_id_from_before_the_start_is_foreign() -> None:
    gpu = FakeGpu(pids=(9000,))
    report = watch_through(gpu, set_pids(gpu, 9000, 9001), host_pids=False, exists=lambda pid: False)
    assert report.foreign_pids == (9000,)


def test_only_thermal_and_hardware_slowdowns_are_reported() -> None:
    gpu = FakeGpu(reasons=0x1)
    report = watch_through(
        gpu, lambda: setattr(gpu, "reasons", 0x4), lambda: setattr(gpu, "reasons", 0x20 | 0x80)
    )
    assert report.slowdown_reasons == ("software thermal slowdown", "hardware power brake")
    assert contamination(report) == ("The GPU slowed down (software thermal slowdown, hardware power brake).")


def test_the_power_cap_alone_is_normal() -> None:
    assert contamination(watch_through(FakeGpu(reasons=0x4))) == ""


def test_clocks_count_only_while_the_gpu_is_busy() -> None:
    gpu = FakeGpu(clock_mhz=345)

    def busy_at(clock_mhz: int) -> Callable[[], None]:
        return lambda: gpu.__dict__.update(utilization=90, clock_mhz=clock_mhz)

    def idle() -> None:
        gpu.__dict__.update(utilization=0, clock_mhz=345)

    report = watch_through(gpu, busy_at(1980), busy_at(1755), busy_at(1950), idle)
    assert report.sm_clock_mhz == (1755, 1950, 1980)


def test_a_driver_that_lists_no_processes_is_named() -> None:
    report = watch_through(FakeGpu(pids=None, utilization=None, temperature_c=None))
    assert report.watched
    assert "does not list" in report.why_not
    assert report.sm_clock_mhz == ()
    assert report.temperature_c == ()


def test_without_nvml_or_without_that_gpu_the_slot_is_not_watched() -> None:
    for library, index in ((FakeNvml(why_not="no driver"), 0), (FakeNvml(FakeGpu()), 5)):
        watch = NvmlWatch(index, pid_is_ours=lambda pid: True, bindings=library)
        with watch:
            pass
        report = watch.report()
        assert not report.watched
        assert report.why_not
        assert contamination(report) == ""
        assert library.num_open == 0


def test_the_real_wait_ends_at_once_when_the_slot_ends() -> None:
    with NvmlWatch(0, pid_is_ours=lambda pid: True, bindings=FakeNvml(FakeGpu()), interval_s=3600) as watch:
        pass
    assert watch.report().num_polls == 2


def test_several_foreign_processes_and_a_slowdown_make_one_sentence() -> None:
    watch = Watch(watched=True, foreign_pids=(7, 8), slowdown_reasons=("hardware slowdown",))
    assert contamination(watch) == (
        "Foreign processes were on the GPU (pid 7, 8) and the GPU slowed down (hardware slowdown)."
    )


def test_no_watch_at_all_gives_no_evidence() -> None:
    assert contamination(None) == ""
