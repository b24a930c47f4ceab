"""What each measuring stage wants to run for a session, as plans."""

from __future__ import annotations

import dataclasses
import math

from perfkit.stages.plan import PlannedSlot, in_rounds
from perfkit.stages.session import Session
from perfkit.wire.spec import Case, ProgramName, Subject


def plan_profile(session: Session) -> tuple[PlannedSlot, ...]:
    """One slot per case and tree, with a trace; for a kernel the first round of what bench will run."""
    program: ProgramName = "take_profile" if session.is_layer else "time_step"
    specs = [
        [session.spec(program, case=case, subject=subject) for subject in session.baselines()]
        for case in session.cases
    ]
    return in_rounds("profile", specs, num_rounds=1)


def plan_ideal(session: Session) -> tuple[PlannedSlot, ...]:
    """Layers: the ledger of the eager step, per case. Kernels declare their work, so nothing more runs."""
    if not session.is_layer:
        return ()
    eager = Subject(tree="eager")
    return tuple(
        PlannedSlot(stage="ideal", spec=session.spec("count_costs", case=case, subject=eager))
        for case in session.cases
    )


def plan_verify(session: Session) -> tuple[PlannedSlot, ...]:
    """Layers: every tree but eager, and every variant, on the smallest case (or those asked for by --cases).

    Kernels: every provider but the reference, and every variant, each on all cases and edge cases in one
    process: what is computed does not depend on what the process did before, as times do.
    """
    subjects = _verified_subjects(session)
    groups: list[tuple[Case, ...]] = [(*session.cases, *session.resolved.edge_cases)]
    if session.is_layer:
        groups = [(case,) for case in _verified_cases(session)]
    return tuple(
        PlannedSlot(stage="verify", spec=session.verify_spec(subject, cases))
        for subject in subjects
        for cases in groups
    )


def plan_bench(session: Session) -> tuple[PlannedSlot, ...]:
    """All subjects on all cases, `--replicates` processes each, interleaved.

    The first round of the unmodified target is what profile runs: its times are taken before its trace.
    """
    subjects = (*session.baselines(), *session.variants())
    specs = [
        [session.spec("time_step", case=case, subject=subject) for subject in subjects]
        for case in session.cases
    ]
    plan = in_rounds("bench", specs, num_rounds=session.replicates)
    return tuple(_as_profiled(slot, session) for slot in plan)


def _as_profiled(slot: PlannedSlot, session: Session) -> PlannedSlot:
    if slot.round > 0 or not session.is_layer or slot.spec.subject.variant != "v0":
        return slot
    spec = session.spec("take_profile", case=slot.spec.case, subject=slot.spec.subject)
    return dataclasses.replace(slot, spec=spec)


def _verified_subjects(session: Session) -> tuple[Subject, ...]:
    if session.is_layer:
        trees = tuple(subject for subject in session.baselines() if subject.tree != "eager")
        return (*trees, *session.variants())
    # The interpreter checks on a CPU what cannot be timed there, so this is the resolved list.
    runnable = (*session.providers, "target")
    names = [name for name in session.resolved.providers if name != "eager" and name in runnable]
    return (*(Subject(provider=name) for name in names), *session.variants())


def _verified_cases(session: Session) -> tuple[Case, ...]:
    """The smallest shape: golden needs float64, whose attention grows with the square of the tokens."""
    if session.request.cases is not None:
        return session.cases
    return (min(session.cases, key=_size),)


def _size(case: Case) -> float:
    """Product of the integer keywords: enough to tell the smallest shape of one target."""
    numbers = (v for v in case.values.values() if isinstance(v, int) and not isinstance(v, bool))
    return math.prod(number for number in numbers if number > 0)
