"""The checks of the host: other programs, clocks, disk."""

from __future__ import annotations

from perfkit.machine.finding import Check, CheckFunction
from perfkit.machine.state import MachineState
from perfkit.stats import format_bytes, format_percent

BUSY_CPUS_WARN = 0.5
"""Half a CPU of foreign work is enough to delay a launching thread now and then."""
BUSY_SHARE_BAD = 0.25
"""From a quarter of all CPUs on, wall times of host-bound steps move by tens of percent."""
DISK_WARN_BYTES = 5 * 2**30
DISK_BAD_BYTES = 2**30
"""One investigation keeps traces and compile caches of a few hundred MiB per slot."""


def check_load(state: MachineState) -> Check:
    """Other programs on the CPUs."""
    load = state.load
    found = f"others keep {load.foreign_cpus:.1f} of {load.num_cpus} CPUs busy"
    if load.load_1min is not None:
        found += f" (load average {load.load_1min:.1f})"
    if load.foreign_cpus < BUSY_CPUS_WARN:
        return Check(name="CPU load", state="good", found=found)
    bad = load.foreign_share >= BUSY_SHARE_BAD
    share = format_percent(load.foreign_share)
    return Check(
        name="CPU load",
        state="bad" if bad else "warn",
        found=f"{found}, {share} of the machine",
        do="Stop the other programs, or wait; host-bound steps and every CPU number move with them.",
    )


def check_governor(state: MachineState) -> Check | None:
    """CPU frequency scaling, where it can be read."""
    if not state.governor:
        return None
    if state.governor == "performance":
        return Check(name="CPU governor", state="good", found="performance")
    return Check(
        name="CPU governor",
        state="warn",
        found=f"{state.governor}: clocks follow the load",
        do="For steady CPU numbers: sudo cpupower frequency-set -g performance.",
    )


def check_disk(state: MachineState) -> Check:
    """Room for traces and compile caches."""
    free = state.free_disk_bytes
    found = f"{format_bytes(free)} free at {state.disk_folder}"
    if free >= DISK_WARN_BYTES:
        return Check(name="disk space", state="good", found=found)
    return Check(
        name="disk space",
        state="bad" if free < DISK_BAD_BYTES else "warn",
        found=found,
        do="Free some space, or choose another place with --out.",
    )


HOST_CHECKS: tuple[CheckFunction, ...] = (check_load, check_governor, check_disk)
