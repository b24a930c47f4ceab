"""One finding of doctor, and the worst of several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from perfkit.machine.state import MachineState

State = Literal["good", "warn", "bad"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What was looked at, what was found, and what to do."""

    name: str
    state: State
    """`bad`: numbers would be wrong, or a stage cannot run. `warn`: know this when reading them."""
    found: str
    do: str = ""
    """What to do about it; "" when the state is good."""


CheckFunction = Callable[[MachineState], Check | None]
"""None where the check does not apply to this machine."""


def worst(checks: Sequence[Check]) -> State:
    """The worst state among them; `good` for none."""
    states = {check.state for check in checks}
    return "bad" if "bad" in states else "warn" if "warn" in states else "good"
