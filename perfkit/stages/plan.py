"""Which slots run, in which order: pure, so that --dry-run and a resumed run see the same plan."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from perfkit.wire.spec import Spec, Subject, spec_hash


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSlot:
    """One process that a stage wants; `hash` and `round` together name it across resumed runs."""

    stage: str
    spec: Spec
    round: int = 0
    position: int = 0

    @property
    def key(self) -> tuple[str, int]:
        """What a recorded slot must match to stand for this one."""
        return spec_hash(self.spec), self.round

    @property
    def label(self) -> str:
        """What a progress line says: `bench 4k block, round 2`."""
        case = self.spec.case.name if self.spec.case else ""
        words = [self.stage, case, self.spec.subject.label if self.spec.target else self.spec.device]
        line = " ".join(word for word in words if word)
        return f"{line}, round {self.round + 1}" if self.stage == "bench" else line

    def folder_name(self, attempt: int) -> str:
        """Name of the folder below slots/; an attempt after the first carries its number."""
        case = self.spec.case.name if self.spec.case else "machine"
        parts = [self.stage, case, self.spec.subject.label, f"r{self.round}", spec_hash(self.spec)[:8]]
        name = "-".join(re.sub(r"[^A-Za-z0-9_.]+", "_", part) for part in parts)
        return name if attempt == 0 else f"{name}-a{attempt}"


def in_rounds(
    stage: str, specs_by_case: Sequence[Sequence[Spec]], *, num_rounds: int
) -> tuple[PlannedSlot, ...]:
    """Slots of what is compared, side by side: each round takes every case, and within a case every subject.

    The order of the subjects is reversed each round, so that neither drift of the machine nor the place in
    the order falls on one side alone.
    """
    plan = []
    for round_index in range(num_rounds):
        for specs in specs_by_case:
            order = list(specs) if round_index % 2 == 0 else list(reversed(specs))
            plan += [
                PlannedSlot(stage=stage, spec=spec, round=round_index, position=position)
                for position, spec in enumerate(order)
            ]
    return tuple(plan)


def unique_subjects(subjects: Iterable[Subject]) -> tuple[Subject, ...]:
    """The subjects in their order, each once."""
    return tuple(dict.fromkeys(subjects))
