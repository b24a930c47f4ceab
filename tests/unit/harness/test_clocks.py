"""What lies inside a sample and what does not, with fake clocks and fake events."""

from __future__ import annotations

import gc

import pytest
from perfkit_harness.clocks import NUM_LEAD_IN, CpuClock, CudaClock, quiet, time_calls

from tests.support.fake_clock import FakeClock


def test_back_to_back_samples_add_up_to_the_loop() -> None:
    clock = FakeClock()
    durations = iter([900.0, 800.0, 10.0, 20.0, 30.0])
    samples = time_calls(lambda: clock.work("call", next(durations)), clock=clock, num_samples=3)
    assert samples == (10.0, 20.0, 30.0)
    marks = [what for what in clock.log if what != "wait"]
    assert marks == ["call"] * NUM_LEAD_IN + ["mark", "call", "mark", "call", "mark", "call", "mark"]


def test_preparation_is_outside_every_sample() -> None:
    clock = FakeClock()
    samples = time_calls(
        lambda: clock.work("call", 7.0),
        clock=clock,
        num_samples=2,
        prepare=lambda: clock.work("flush", 1000.0),
    )
    assert samples == (7.0, 7.0)
    assert clock.log[1:-1] == ["flush", "mark", "call", "mark"] * (NUM_LEAD_IN + 2)


def test_the_clock_waits_only_before_and_after_the_whole_loop() -> None:
    clock = FakeClock()
    time_calls(lambda: clock.work("call", 1.0), clock=clock, num_samples=5)
    assert [i for i, what in enumerate(clock.log) if what == "wait"] == [0, len(clock.log) - 1]


def test_before_runs_once_in_front_of_the_first_call() -> None:
    clock = FakeClock()
    time_calls(
        lambda: clock.work("call", 1.0), clock=clock, num_samples=2, before=lambda: clock.work("hold", 5.0)
    )
    assert clock.log.count("hold") == 1
    assert clock.log.index("hold") < clock.log.index("call")


def test_garbage_collection_is_off_while_timing_and_on_again_after() -> None:
    seen = []
    time_calls(lambda: seen.append(gc.isenabled()), clock=FakeClock(), num_samples=1)
    assert set(seen) == {False}
    assert gc.isenabled()


def test_garbage_collection_is_on_again_after_an_error() -> None:
    def fail() -> None:
        raise ValueError("broken step")

    with pytest.raises(ValueError, match="broken step"):
        time_calls(fail, clock=FakeClock(), num_samples=1)
    assert gc.isenabled()


def test_quiet_inside_quiet_leaves_the_end_to_the_outer_one() -> None:
    with quiet():
        with quiet():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_cpu_clock_turns_nanoseconds_into_microseconds() -> None:
    readings = iter([1_000, 3_500])
    clock = CpuClock(lambda: next(readings))
    start = clock.mark()
    assert clock.elapsed_us(start, clock.mark()) == 2.5


class _Event:
    def __init__(self) -> None:
        self.recorded = False

    def record(self) -> None:
        self.recorded = True

    def elapsed_time(self, end: _Event) -> float:
        assert self.recorded
        assert end.recorded
        return 1.25


def test_cuda_clock_records_each_event_and_turns_milliseconds_into_microseconds() -> None:
    waits: list[str] = []
    clock = CudaClock(new_event=_Event, synchronize=lambda: waits.append("wait"), now_s=lambda: 2.0)
    start, end = clock.mark(), clock.mark()
    clock.wait()
    assert clock.elapsed_us(start, end) == 1250.0
    assert waits == ["wait"]
    assert clock.host_s() == 2.0
