"""Warm-up that ends when nothing compiles any more and step times have settled."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .clocks import Call, Clock, quiet

WINDOW = 3
"""Least number of steps that are compared with as many before them."""
MIN_WINDOW_S = 0.005
"""Least time that such a window spans: single calls of some microseconds vary by far more than 10%."""
MAX_WINDOW = 200
TOLERANCE = 0.10
"""Largest relative change of the best step time from one window to the next that counts as settled. Our
choice: first steps after compilation, allocation or clock ramp-up are off by far more."""
MAX_EXTRA_STEPS = 20
MAX_SECONDS = 90.0


@dataclass(frozen=True)
class WarmUp:
    """What the steps before the timed ones cost, and whether they were enough."""

    num_steps: int
    stable: bool
    """False when a limit ended the warm-up while graphs were still compiled or times still moved."""
    steady_s: float
    """Best of the last window, host seconds with the device idle at both ends."""
    excess_s: float
    """What steps that compiled, and the first one, took beyond a steady one."""


@dataclass
class _Seen:
    seconds: list[float]
    compiled: list[bool]

    def expensive(self) -> list[float]:
        """The first step, and those that compiled."""
        return [s for i, s in enumerate(self.seconds) if i == 0 or self.compiled[i]]

    def plain(self) -> list[float]:
        """The other steps."""
        return [s for i, s in enumerate(self.seconds) if i > 0 and not self.compiled[i]]

    def settled(self) -> bool:
        if len(self.seconds) < 2 * WINDOW or any(self.compiled[-WINDOW:]):
            return False
        window = self.window()
        if len(self.seconds) < 2 * window:
            return False
        best, earlier = min(self.seconds[-window:]), min(self.seconds[-2 * window : -window])
        return abs(best - earlier) <= TOLERANCE * earlier

    def window(self) -> int:
        """As many steps as it takes to span MIN_WINDOW_S."""
        best = min(self.seconds[-WINDOW:])
        return max(WINDOW, min(MAX_WINDOW, math.ceil(MIN_WINDOW_S / best) if best > 0 else MAX_WINDOW))


def warm_up(
    call: Call,
    *,
    clock: Clock[Any],
    num_graphs: Callable[[], int],
    num_steps: int,
    min_seconds: float = 0.0,
    max_seconds: float = MAX_SECONDS,
) -> WarmUp:
    """Runs `call` at least `num_steps` times and until it has settled; waits for the device after each.

    Settled: no graph was compiled during the last three steps, and the best time of the last window lies
    within 10% of the best of the window before. The best is compared since interference only ever adds time.
    `min_seconds` of warm-up beyond the first step let a GPU's clocks ramp up under short calls. The
    limits: 20 steps beyond `num_steps`, two windows and `min_seconds`, and `max_seconds` in steps that
    compile nothing.

    `excess_s` is an honest upper bound of compile time: in the first step it also holds whatever else
    happens once, such as loading kernels and growing the allocator's pool.
    """
    seen = _Seen([], [])
    with quiet():
        clock.wait()
        while True:
            graphs, start_s = num_graphs(), clock.host_s()
            call()
            clock.wait()
            seen.seconds.append(clock.host_s() - start_s)
            seen.compiled.append(num_graphs() != graphs)
            spent_s, done = sum(seen.plain()), len(seen.seconds)
            if done < num_steps:
                continue
            stable = seen.settled()
            if (stable and spent_s >= min_seconds) or spent_s > max_seconds:
                break
            enough = max(num_steps, 2 * seen.window()) + MAX_EXTRA_STEPS
            if spent_s >= min_seconds and done >= enough:
                break
    steady_s = min(seen.seconds[-WINDOW:])
    return WarmUp(
        num_steps=len(seen.seconds),
        stable=stable,
        steady_s=steady_s,
        excess_s=sum(max(0.0, s - steady_s) for s in seen.expensive()),
    )
