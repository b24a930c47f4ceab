"""What weakens a comparison although every slot ended well: other inputs, other kernels, unsteadiness."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from perfkit.wire.payloads import StepTimes
from perfkit.wire.results import SlotRecord

Group = tuple[str, str]
"""(case, subject label)."""


def doubts(records: Iterable[SlotRecord]) -> Iterator[str]:
    """One sentence per doubt, in the order of the records."""
    groups: dict[Group, list[StepTimes]] = defaultdict(list)
    for record in records:
        if isinstance(record.result.payload, StepTimes) and record.spec.case is not None:
            groups[record.spec.case.name, record.spec.subject.label].append(record.result.payload)
    yield from _other_inputs(groups)
    for (case, label), payloads in groups.items():
        yield from _other_kernels(case, label, payloads)
        if unsettled := sum(not payload.stable for payload in payloads):
            yield f"{label} on {case}: warm-up did not settle in {unsettled} of {len(payloads)} processes."


def _other_inputs(groups: dict[Group, list[StepTimes]]) -> Iterator[str]:
    """Equal seeds must give equal weights and inputs; where they do not, two sides did different work."""
    by_case: dict[str, dict[str, set[str]]] = defaultdict(dict)
    for (case, label), payloads in groups.items():
        by_case[case][label] = {payload.inputs_sha256 for payload in payloads if payload.inputs_sha256}
    for case, digests in by_case.items():
        if len(set().union(*digests.values())) > 1:
            first = next(iter(digests.values()))
            others = ", ".join(label for label, own in digests.items() if own != first) or "single processes"
            yield f"{case}: weights or inputs differ between processes ({others}), so their work may too."


def _other_kernels(case: str, label: str, payloads: list[StepTimes]) -> Iterator[str]:
    """Libraries that time kernels to pick one can pick others in another process: times then have modes."""
    names: dict[str, set[str]] = defaultdict(set)
    for payload in payloads:
        for run in payload.kernel_runs:
            names[run.direction].add(run.names_sha256)
    for direction, digests in names.items():
        if len(digests) > 1:
            yield f"{label} on {case}, {direction}: its processes ran {len(digests)} sets of kernels."
