"""Problem and Solution of a pull request, as numbered steps made from measured facts.

Every step states one fact, each follows from the last. The first line of the Problem is today's
behaviour and its last the cost; the last line of the Solution is what stays as it was. A fact that was
not measured is left out, and the number of steps stays between MIN_STEPS and MAX_STEPS.
"""

from __future__ import annotations

from dataclasses import dataclass

from perfkit.report.markdown import code
from perfkit.report.model import Change, Findings, Piece
from perfkit.report.pairs import Pair, main_pair, matrix_row, pairs, provider_row
from perfkit.report.words import (
    change_text,
    direction_words,
    interval_cell,
    plural,
    processes_text,
    time_unit,
    wider_spread,
)
from perfkit.stats import ProcessInterval, format_bytes, format_percent, format_us

MIN_STEPS = 4
MAX_STEPS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What a reviewer reads first."""

    title: str
    tldr: str
    problem: tuple[str, ...]
    solution: tuple[str, ...]


def tell(findings: Findings, change: Change) -> Story:
    """The story of a change, told from its longest case.

    Raises:
        ValueError: no case has a number for both sides.
    """
    main = main_pair(pairs(findings, change.subject))
    what = _what(findings, change)
    unsure = processes_text(*main.times)
    number = f"{main.case} {change_text(*main.times)}"
    return Story(
        title=f"[{findings.conditions.target}][perf] {what}",
        tldr=f"{what}{_because(findings, change, main)}: {number}{f' {unsure}' if unsure else ''}.",
        problem=_fitted(_problem(findings, main), spare=_spare(main)),
        solution=_fitted(_solution(findings, change, main), spare=[]),
    )


def named(names: tuple[str, ...]) -> str:
    """`Block`, `RMSNorm.forward`."""
    return ", ".join(code(name) for name in names)


def _what(findings: Findings, change: Change) -> str:
    names = ", ".join(change.names)
    if change.kind == "variant":
        return f"Rewrite {names}"
    if change.kind == "provider":
        return f"Run {findings.conditions.target} through {names}"
    return f"Compile each {names}" if change.subject.endswith("block") else f"Compile {names} alone"


def _because(findings: Findings, change: Change, main: Pair) -> str:
    """The reason in half a line: fewer kernels where both counts are known, else the stated idea."""
    before = matrix_row(findings, case=main.case, subject=main.base.subject)
    after = matrix_row(findings, case=main.case, subject=change.subject)
    if before and after and before.num_kernels and after.num_kernels:
        word = "kernels" if findings.conditions.on_gpu else "ops"
        return f", {before.num_kernels:g} -> {after.num_kernels:g} {word} a step"
    idea = _sentence(change.idea).rstrip(".")
    return f" ({idea[:1].lower()}{idea[1:]})" if idea else ""


def _problem(findings: Findings, main: Pair) -> list[str]:
    """Behaviour first, cost last; what lies between may be shortened from its end."""
    facts = (
        _kernel_facts(findings, main)
        if findings.conditions.kind == "kernel"
        else _layer_facts(findings, main)
    )
    glue = [p for p in findings.pieces if p.case == main.case and p.kind == "glue" and p.floor_us is not None]
    if findings.conditions.kind == "layer" and glue:
        return [*facts, *_glue_facts(findings, main, glue)]
    before, after = main.times
    saved = _difference(before, after)
    return [*facts, f"Cost: {saved} of {_time(before)} at {main.case}, see Results."]


def _layer_facts(findings: Findings, main: Pair) -> list[str]:
    target, base = findings.conditions.target, main.base.subject
    gpu = findings.conditions.on_gpu
    facts = [
        f"{code(target)} runs op by op, each op {'a kernel' if gpu else 'a pass over memory'} of its own."
        if base == "eager"
        else f"{code(target)} runs as {code(base)} today."
    ]
    row = matrix_row(findings, case=main.case, subject=base)
    if row and row.num_kernels:
        verb = "launches" if gpu else "runs"
        facts.append(f"One step at {main.case} {verb} {row.num_kernels:g} {'kernels' if gpu else 'ops'}.")
    facts.append(f"It takes {_time(main.times[0])} of wall time, {direction_words(main.base.direction)}.")
    return facts


def _glue_facts(findings: Findings, main: Pair, glue: list[Piece]) -> list[str]:
    """How much of the step is glue, and how far that is from its floor."""
    measured = sum(p.measured_us for p in glue)
    floor = sum(p.floor_us or 0.0 for p in glue)
    total = sum(p.measured_us for p in findings.pieces if p.case == main.case)
    word = "kernel time" if findings.conditions.on_gpu else "op time"
    return [
        f"{plural(len(glue), 'piece')} of it lie between the matrix products, {format_us(measured)} in all.",
        f"One read per input plus one write per output would take {format_us(floor)}.",
        f"Cost: {format_us(measured - floor)} of {format_us(total)} {word} at {main.case}.",
    ]


def _kernel_facts(findings: Findings, main: Pair) -> list[str]:
    facts = [
        f"{code(findings.conditions.target)} runs as {code(main.base.subject)} today.",
        f"One pass at {main.case}, {direction_words(main.base.direction)}, takes {_time(main.times[0])}.",
    ]
    row = provider_row(findings, main.base)
    if row and row.num_bytes:
        facts.append(f"It must move {format_bytes(row.num_bytes)}.")
    if row and row.bandwidth_share is not None:
        facts.append(f"It reaches {format_percent(row.bandwidth_share)} of the bandwidth measured here.")
    return facts


def _solution(findings: Findings, change: Change, main: Pair) -> list[str]:
    steps = [*_idea(findings, change), *_effects(findings, change, main)]
    return [*steps, f"Left as it was: {_unchanged(change)}."]


def _idea(findings: Findings, change: Change) -> list[str]:
    names = named(change.names)
    if change.kind == "variant":
        idea = _sentence(change.idea) or f"Replace the source by variant {change.subject.partition('/')[0]}."
        predicted = [f"Predicted before the run: {_sentence(change.predicted)}"] if change.predicted else []
        return [idea, f"Replaced: {names}.", *predicted]
    if change.kind == "provider":
        return [
            f"Call {names} in place of {code(findings.comparison.baseline)}.",
            "Both take the same inputs.",
        ]
    if change.subject.endswith("block"):
        return [
            f"Compile each {names} on its own, so that its glue runs as fused kernels.",
            f"Every instance of {names} calls `.compile()` once.",
        ]
    return ["Compile the glue functions on their own, with `fullgraph=True`.", f"Regions: {names}."]


def _effects(findings: Findings, change: Change, main: Pair) -> list[str]:
    """What the profile saw change beside the time."""
    before = matrix_row(findings, case=main.case, subject=main.base.subject)
    after = matrix_row(findings, case=main.case, subject=change.subject)
    effects = [f"A step at {main.case} takes {_time(main.times[1])} instead of {_time(main.times[0])}."]
    if after and after.cold_compile_s:
        effects.append(f"The first step pays {after.cold_compile_s:.1f} s of compilation, caches cold.")
    if before and after and before.peak_memory_bytes and after.peak_memory_bytes:
        left, right = format_bytes(before.peak_memory_bytes), format_bytes(after.peak_memory_bytes)
        effects.append(f"Peak memory goes {left} -> {right}.")
    row = provider_row(findings, main.after)
    if row and row.bandwidth_share is not None:
        effects.append(f"It reaches {format_percent(row.bandwidth_share)} of the bandwidth measured here.")
    return effects


def _unchanged(change: Change) -> str:
    if change.kind == "tree":
        return "parameter names, checkpoints, the call signature"
    return "inputs, outputs, the callers"


def _fitted(steps: list[str], *, spare: list[str]) -> tuple[str, ...]:
    """Between MIN_STEPS and MAX_STEPS: spare facts go before the last step, surplus ones leave from there."""
    missing = max(0, MIN_STEPS - len(steps))
    body = [*steps[:-1], *spare[:missing]][: MAX_STEPS - 1]
    return (*body, steps[-1])


def _spare(main: Pair) -> list[str]:
    """Facts that every pair has, for a story whose profile is missing."""
    before = main.times[0]
    unit = time_unit([before])
    interval = interval_cell(before, unit=unit)
    number = plural(before.num_processes, "fresh process", "fresh processes")
    extent = [] if interval == "-" else [f"Its 95% interval is {interval} {unit}."]
    return [f"That is the median of {number}.", *extent]


def _time(interval: ProcessInterval) -> str:
    return format_us(interval.median, spread_us=interval.half_width, unit=time_unit([interval]))


def _difference(before: ProcessInterval, after: ProcessInterval) -> str:
    spread = wider_spread(before, after)
    return format_us(before.median - after.median, spread_us=spread, unit=time_unit([before]))


def _sentence(text: str) -> str:
    """The first sentence of a note, on one line, ended by a full stop."""
    flat = " ".join(text.split())
    first = flat.partition(". ")[0].rstrip(".")
    return f"{first}." if first else ""
