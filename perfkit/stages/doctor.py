"""doctor: what would spoil a measurement on this machine, and what to do about it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import msgspec

from perfkit.errors import ExitCode
from perfkit.machine.checks import Check, run_checks, worst
from perfkit.machine.state import read_state
from perfkit.stages.answer import StageReport, Table
from perfkit.stages.devices import choose_device
from perfkit.stages.request import StageRequest
from perfkit.stages.running import Say, launcher
from perfkit.wire.payloads import MachineFacts
from perfkit.wire.spec import Measure, Spec

TIME_LIMIT_S = 180.0

_HEADLINES = {
    "good": "Nothing here speaks against measuring.",
    "warn": "Measuring works; know these things when reading the numbers.",
    "bad": "Something here would spoil measurements.",
}


def run(request: StageRequest, *, say: Say) -> StageReport:
    """Looks at the machine from outside (NVML, load, versions) and from inside one child (torch).

    Raises:
        UsageError: the device asked for is not there.
    """
    device = choose_device(request.device)
    say(f"Looking at {device}; a child process tries torch, Triton and the compiler.")
    facts, error = _ask_torch(device)
    checks = run_checks(read_state(device, folder=request.out, torch_facts=facts, torch_error=error))
    state = worst(checks)
    return StageReport(
        headline=_HEADLINES[state],
        tables=(_table(checks, device),),
        document={"device": device, "state": state, "checks": msgspec.to_builtins(checks)},
        exit_code=ExitCode.NEGATIVE if state == "bad" else ExitCode.GOOD,
    )


def _ask_torch(device: str) -> tuple[MachineFacts | None, str]:
    """(facts, "") or (None, why the child could not answer)."""
    spec = Spec(program="describe_machine", device=device, measure=Measure(), time_limit_s=TIME_LIMIT_S)
    with tempfile.TemporaryDirectory(prefix="perfkit-doctor-") as folder:
        result = launcher(device)(spec, slot_dir=Path(folder))
    if isinstance(result.payload, MachineFacts):
        return result.payload, ""
    return None, result.reason or result.fate


def _table(checks: tuple[Check, ...], device: str) -> Table:
    return Table(
        title=f"Fitness of {device}",
        columns=("check", "state", "found", "do"),
        rows=tuple((check.name, check.state, check.found, check.do or "-") for check in checks),
    )
