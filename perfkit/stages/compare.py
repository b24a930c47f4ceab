"""From slot records to the comparison table: one number per process, paired by round. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from perfkit.report.model import ComparisonRow, Verdict
from perfkit.stats import PairedRatio, ProcessInterval, median, paired_ratio, process_interval
from perfkit.wire.payloads import CacheState, Direction, LaunchState, StepTimes
from perfkit.wire.results import SlotRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """What one number is about, apart from who was measured."""

    case: str
    direction: Direction
    launch: LaunchState
    cache: CacheState
    kind: str
    """`wall` or `kernel`."""


ByRound = dict[int, float]


def process_numbers(record: SlotRecord) -> Iterator[tuple[Quantity, float]]:
    """The numbers of one process: the median of its samples per timed state, and its kernel times."""
    payload = record.result.payload
    if not isinstance(payload, StepTimes) or record.result.fate != "ok":
        return
    case = record.spec.case.name if record.spec.case else ""
    for timing in payload.timings:
        if timing.fate == "ok" and timing.samples_us:
            quantity = Quantity(
                case=case, direction=timing.direction, launch=timing.launch, cache=timing.cache, kind="wall"
            )
            yield quantity, median(timing.samples_us)
    for run in payload.kernel_runs:
        if run.time_us > 0:
            quantity = Quantity(
                case=case, direction=run.direction, launch="launch", cache=run.cache, kind="kernel"
            )
            yield quantity, run.time_us


def numbers_by_subject(records: Iterable[SlotRecord]) -> dict[Quantity, dict[str, ByRound]]:
    """Quantity -> subject label -> round -> that process's number, in the order of the records."""
    table: dict[Quantity, dict[str, ByRound]] = {}
    for record in records:
        for quantity, value in process_numbers(record):
            rounds = table.setdefault(quantity, {}).setdefault(record.spec.subject.label, {})
            rounds[record.round] = value
    return table


def comparison_rows(
    records: Sequence[SlotRecord],
    *,
    baseline: str,
    verdicts: Mapping[tuple[str, str], tuple[Verdict, str]],
) -> tuple[ComparisonRow, ...]:
    """One row per case, state and subject; what failed altogether has a row without a number.

    `verdicts` maps (subject label, case) to the verdict of verify and its reason; the case "" stands for all.
    """
    table = numbers_by_subject(records)
    fates = _fates(records)
    rows = []
    for quantity, subjects in table.items():
        base = subjects.get(baseline, {})
        for label in _ordered(records, quantity.case):
            rounds = subjects.get(label)
            if rounds is None:
                continue
            rows.append(
                _row(quantity, label, rounds, base, baseline=baseline, verdicts=verdicts, fates=fates)
            )
    return (*rows, *_rows_without_numbers(records, table, baseline=baseline, verdicts=verdicts, fates=fates))


def interval_of(rounds: ByRound) -> ProcessInterval | None:
    """The interval over processes, or None where no process gave a number."""
    return process_interval([rounds[r] for r in sorted(rounds)]) if rounds else None


def _row(
    quantity: Quantity,
    label: str,
    rounds: ByRound,
    base: ByRound,
    *,
    baseline: str,
    verdicts: Mapping[tuple[str, str], tuple[Verdict, str]],
    fates: Mapping[tuple[str, str], Counter[str]],
) -> ComparisonRow:
    verdict, reason = _verdict(label, quantity.case, baseline=baseline, verdicts=verdicts)
    ratio: PairedRatio | None = None
    if label != baseline and base.keys() & rounds.keys():
        ratio = paired_ratio(base, rounds)
    return ComparisonRow(
        case=quantity.case,
        subject=label,
        direction=quantity.direction,
        launch=quantity.launch,
        cache=quantity.cache,
        kind="wall" if quantity.kind == "wall" else "kernel",
        time=interval_of(rounds),
        ratio=ratio,
        verdict=verdict,
        verdict_reason=reason,
        fates=dict(fates[quantity.case, label]),
        is_baseline=label == baseline,
    )


def _rows_without_numbers(
    records: Sequence[SlotRecord],
    table: Mapping[Quantity, Mapping[str, ByRound]],
    *,
    baseline: str,
    verdicts: Mapping[tuple[str, str], tuple[Verdict, str]],
    fates: Mapping[tuple[str, str], Counter[str]],
) -> Iterator[ComparisonRow]:
    seen = {(quantity.case, label) for quantity, subjects in table.items() for label in subjects}
    for case, label in fates:
        if (case, label) in seen:
            continue
        verdict, reason = _verdict(label, case, baseline=baseline, verdicts=verdicts)
        yield ComparisonRow(
            case=case,
            subject=label,
            direction="full",
            launch="launch",
            cache="warm",
            kind="wall",
            time=None,
            verdict=verdict,
            verdict_reason=reason,
            fates=dict(fates[case, label]),
        )


def _verdict(
    label: str, case: str, *, baseline: str, verdicts: Mapping[tuple[str, str], tuple[Verdict, str]]
) -> tuple[Verdict, str]:
    for key in ((label, case), (label, "")):
        if key in verdicts:
            return verdicts[key]
    if label == baseline:
        return "reference", ""
    return "not verified", ""


def _fates(records: Sequence[SlotRecord]) -> dict[tuple[str, str], Counter[str]]:
    fates: dict[tuple[str, str], Counter[str]] = {}
    for record in records:
        key = (record.spec.case.name if record.spec.case else "", record.spec.subject.label)
        fates.setdefault(key, Counter())[record.result.fate] += 1
    return fates


def _ordered(records: Sequence[SlotRecord], case: str) -> tuple[str, ...]:
    """Subject labels of a case in the order of the first round, which is the order of the plan."""
    first = [r for r in records if r.round == 0 and r.spec.case is not None and r.spec.case.name == case]
    ordered = [r.spec.subject.label for r in sorted(first, key=lambda r: r.position)]
    rest = [r.spec.subject.label for r in records if r.spec.case is not None and r.spec.case.name == case]
    return tuple(dict.fromkeys([*ordered, *rest]))
