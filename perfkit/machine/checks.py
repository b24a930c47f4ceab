"""What would spoil a measurement on this machine, and what to do about it: facts in, findings out."""

from __future__ import annotations

from perfkit.machine.checks_gpu import GPU_CHECKS
from perfkit.machine.checks_host import HOST_CHECKS
from perfkit.machine.checks_torch import TORCH_CHECKS
from perfkit.machine.finding import Check, worst
from perfkit.machine.state import MachineState

__all__ = ["Check", "run_checks", "worst"]


def run_checks(state: MachineState) -> tuple[Check, ...]:
    """All checks that apply, in a fixed order: device, then host, then software."""
    functions = (*GPU_CHECKS, *HOST_CHECKS, *TORCH_CHECKS)
    return tuple(check for function in functions if (check := function(state)) is not None)
