"""What every measuring stage does around its slots: open the effort, launch, report failures."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence

from perfkit.effort import Effort
from perfkit.errors import ExitCode
from perfkit.stages.answer import StageReport, Table
from perfkit.stages.contamination import judged
from perfkit.stages.plan import PlannedSlot
from perfkit.stages.session import Session
from perfkit.stages.slots import Launcher, SlotsRun, outcome, run_slots

Say = Callable[[str], None]


@contextlib.contextmanager
def opened(session: Session, *, say: Say) -> Iterator[Effort]:
    """The session's effort, locked while the block runs; says what changed since it was last open."""
    with Effort.opened(session.folder, session.setup()) as effort:
        for note in session.notes:
            say(note)
        if effort.setup_is_new and effort.changed:
            text = (
                "The target's source, the options or the versions changed since this effort was last open: "
                "all results are kept, and only those measured in the same way enter the tables from here on."
            )
            say(text)
            effort.note("Setup changed", text)
        yield effort


def measure(
    plan: Sequence[PlannedSlot], *, session: Session, effort: Effort, launch: Launcher | None = None
) -> SlotsRun:
    """Fills the holes of the plan in this effort."""
    return run_slots(
        plan,
        effort=effort,
        session=session.key,
        launch=launch or launcher(session.device),
        progress=session.request.progress,
        fresh=session.request.overwrite,
    )


def launcher(device: str) -> Launcher:
    """`run_slot`, watching the GPU that the slot runs on and judging contamination by the fixed rule."""
    from perfkit.launch import run_slot
    from perfkit.machine.device import find_gpu
    from perfkit.machine.gpus import list_gpus
    from perfkit.machine.watch import watch_device

    gpu = find_gpu(device, list_gpus())
    watch = watch_device(gpu.index) if gpu is not None else None
    return judged(functools.partial(run_slot, watch=watch))


def dry_run(plan: Sequence[PlannedSlot], *, session: Session) -> StageReport:
    """The slots that would run, in order, without opening the effort or starting anything."""
    rows = tuple(
        (
            str(index + 1),
            planned.stage,
            planned.spec.program,
            planned.spec.case.name if planned.spec.case else "-",
            planned.spec.subject.label,
            str(planned.round + 1),
        )
        for index, planned in enumerate(plan)
    )
    return StageReport(
        headline=f"{len(plan)} slots would run for {session.folder}; nothing was started.",
        tables=(
            Table(title="Slots", columns=("no", "stage", "program", "case", "subject", "round"), rows=rows),
        ),
        document={
            "effort": str(session.folder),
            "slots": [
                dict(zip(("no", "stage", "program", "case", "subject", "round"), row, strict=True))
                for row in rows
            ],
        },
        warnings=session.notes,
    )


def failure_warnings(run: SlotsRun, *, effort: Effort) -> tuple[str, ...]:
    """One sentence per slot that ended without an answer, with the log to read."""
    return tuple(
        f"{record.spec.subject.label} on {record.spec.case.name if record.spec.case else 'this machine'} "
        f"{outcome(record)} Log: {effort.folder / 'slots' / record.slot / 'log.txt'}"
        for record in run.failed
    )


def exit_code(run: SlotsRun) -> ExitCode:
    """FAILED when any requested slot failed."""
    return ExitCode.FAILED if run.failed else ExitCode.GOOD
