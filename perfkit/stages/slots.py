"""Runs the slots of a plan that an effort does not have yet: launch, judge, keep, note, one after another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec

from perfkit.effort import Effort
from perfkit.stages.plan import PlannedSlot
from perfkit.stages.portable import portable_result
from perfkit.wire.payloads import Costs, Peaks, StepTimes, Verified
from perfkit.wire.results import Result, SlotRecord
from perfkit.wire.spec import Spec, portable

MAX_REPLACEMENTS = 2
"""How often a contaminated slot is run again before its last result is kept as it is."""

_DONE = ("ok", "not_capturable")


class Launcher(Protocol):
    """Starts one child and waits for it; `perfkit.launch.run_slot` with the watch of this machine."""

    def __call__(self, spec: Spec, *, slot_dir: Path) -> Result: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotsRun:
    """The newest record of each planned slot, in plan order, and what happened on the way."""

    records: tuple[SlotRecord, ...]
    num_reused: int
    num_contaminated: int

    @property
    def failed(self) -> tuple[SlotRecord, ...]:
        """Slots that ended without a usable answer."""
        return tuple(record for record in self.records if record.result.fate not in _DONE)


def run_slots(
    plan: Sequence[PlannedSlot],
    *,
    effort: Effort,
    session: str,
    launch: Launcher,
    progress: Callable[[int, int, str], None],
    fresh: bool = False,
) -> SlotsRun:
    """Fills the holes of the plan; a slot that ended well in an earlier run of the session is not repeated.

    With `fresh` every slot of the plan runs: the older records stay on file, and the newest ones count.

    A slot that failed is tried again, because what failed it may have been mended. A contaminated one is
    kept, counted, and replaced up to MAX_REPLACEMENTS times. Every record is on disk before the next slot
    starts, so a kill loses the running slot at most.

    Raises:
        PerfkitError: from the launcher or the effort; OSError when the disk is full.
    """
    known = {} if fresh else _usable(effort, session)
    names = {record.slot for record in effort.records()}
    records: list[SlotRecord] = []
    num_reused = num_contaminated = 0
    for index, planned in enumerate(plan):
        record = known.get(planned.key)
        if record is not None:
            num_reused += 1
            progress(index + 1, len(plan), f"{planned.label}: kept from an earlier run")
            records.append(record)
            continue
        progress(index, len(plan), planned.label)
        for _ in range(MAX_REPLACEMENTS + 1):
            record = _run_one(planned, effort=effort, session=session, launch=launch, names=names)
            if record.result.fate != "contaminated":
                break
            num_contaminated += 1
        assert record is not None
        records.append(record)
        progress(index + 1, len(plan), f"{planned.label}: {outcome(record)}")
    return SlotsRun(records=tuple(records), num_reused=num_reused, num_contaminated=num_contaminated)


def outcome(record: SlotRecord) -> str:
    """One clause for a progress line or the devlog."""
    result = record.result
    if result.fate not in _DONE:
        return f"{result.fate.replace('_', ' ')}: {result.reason}"
    return f"ok in {result.duration_s:.1f} s"


def latest_records(effort: Effort, session: str) -> dict[tuple[str, int], SlotRecord]:
    """The newest record per (spec hash, round) of the session, whatever its fate."""
    return {
        (record.result.spec_hash, record.round): record
        for record in effort.records()
        if record.session == session
    }


def planned_records(plan: Sequence[PlannedSlot], *, effort: Effort, session: str) -> tuple[SlotRecord, ...]:
    """What is recorded of a plan already, in plan order; holes are left out."""
    known = latest_records(effort, session)
    return tuple(known[planned.key] for planned in plan if planned.key in known)


def _usable(effort: Effort, session: str) -> Mapping[tuple[str, int], SlotRecord]:
    return {
        key: record
        for key, record in latest_records(effort, session).items()
        if record.result.fate in _DONE and _files_present(record, effort.folder / "slots" / record.slot)
    }


def _files_present(record: SlotRecord, slot_dir: Path) -> bool:
    payload = record.result.payload
    match payload:
        case Costs():
            needed = [payload.ledger_file, payload.trace_file, payload.plain_trace_file or payload.trace_file]
        case StepTimes() if payload.trace_file:
            needed = [payload.trace_file]
        case StepTimes() | Peaks() | Verified():
            needed = []
        case _:
            return False
    return all((slot_dir / name).is_file() for name in needed)


def _run_one(
    planned: PlannedSlot, *, effort: Effort, session: str, launch: Launcher, names: set[str]
) -> SlotRecord:
    attempt = 0
    while planned.folder_name(attempt) in names:
        attempt += 1
    slot = planned.folder_name(attempt)
    names.add(slot)
    result = launch(planned.spec, slot_dir=effort.slot_dir(slot))
    record = SlotRecord(
        slot=slot,
        stage=planned.stage,
        spec=portable(planned.spec),
        result=portable_result(msgspec.structs.replace(result, spec_hash=planned.key[0])),
        round=planned.round,
        position=planned.position,
        session=session,
    )
    effort.append(record)
    effort.note(planned.label, outcome(record), f"slot `{slot}`")
    return record
