"""When warm-up ends, what it says about stability, and what it counts as compile time."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from perfkit_harness.warm_up import MAX_EXTRA_STEPS, MAX_WINDOW, WINDOW, WarmUp, warm_up

from tests.support.fake_clock import FakeClock


def _warm(
    seconds: Callable[[int], float], *, compiling: tuple[int, ...] = (0,), num_steps: int = 2, **limits: float
) -> WarmUp:
    clock, step, graphs = FakeClock(), [0], [0]

    def call() -> None:
        clock.work("step", 1e6 * seconds(step[0]))
        graphs[0] += step[0] in compiling
        step[0] += 1

    return warm_up(call, clock=clock, num_graphs=lambda: graphs[0], num_steps=num_steps, **limits)


def test_steady_steps_end_after_two_windows() -> None:
    found = _warm(lambda i: 0.01)
    assert found == WarmUp(num_steps=6, stable=True, steady_s=pytest.approx(0.01), excess_s=pytest.approx(0))


def test_at_least_the_asked_number_of_steps_runs() -> None:
    assert _warm(lambda i: 0.01, num_steps=11).num_steps == 11


def test_steps_that_still_speed_up_go_on() -> None:
    found = _warm(lambda i: max(0.01, 0.1 - 0.01 * i))
    assert found.stable
    assert found.num_steps == 13  # the tenth step is the first at 0.01, and ends the earlier window


def test_a_late_graph_keeps_the_warm_up_going() -> None:
    found = _warm(lambda i: 0.01, compiling=(0, 5))
    assert found.num_steps == 9
    assert found.stable


def test_steps_that_never_settle_end_at_the_limit_and_are_called_unstable() -> None:
    found = _warm(lambda i: 0.01 * 1.2**i)
    assert not found.stable
    assert found.num_steps == 2 * WINDOW + MAX_EXTRA_STEPS


def test_short_noisy_calls_are_compared_over_longer_windows() -> None:
    # Only every tenth call is undisturbed: windows of three would differ by half again and again.
    found = _warm(lambda i: 10e-6 if i % 10 == 9 else 15e-6)
    assert found.stable
    assert found.num_steps == 2 * MAX_WINDOW


def test_steps_that_always_compile_are_called_unstable() -> None:
    assert not _warm(lambda i: 0.01, compiling=tuple(range(100))).stable


def test_time_limit_ends_slow_steps() -> None:
    found = _warm(lambda i: 40.0 if i % 2 else 80.0, max_seconds=90.0)
    assert found.num_steps < 2 + MAX_EXTRA_STEPS


def test_short_calls_go_on_for_the_least_time() -> None:
    assert _warm(lambda i: 0.001, min_seconds=0.5).num_steps >= 500


def test_compile_time_is_what_first_and_compiling_steps_took_beyond_a_steady_one() -> None:
    costs = {0: 5.0, 3: 2.0}
    found = _warm(lambda i: costs.get(i, 0.5), compiling=(0, 3))
    assert found.excess_s == pytest.approx(4.5 + 1.5)


def test_interference_in_single_steps_does_not_count_as_moving() -> None:
    found = _warm(lambda i: 0.05 if i in (2, 4) else 0.01)
    assert found.stable
    assert found.num_steps == 6
