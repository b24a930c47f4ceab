"""The code blocks of findings and pull requests: numbers as `before -> after`, aligned, with conditions."""

from __future__ import annotations

from collections.abc import Sequence

from perfkit.report.model import Change, ComparisonRow, Correctness, Findings
from perfkit.report.pairs import Pair, launched, pairs
from perfkit.report.ranking import headline_rows, may_rank
from perfkit.report.words import (
    change_text,
    conclusion,
    conditions_line,
    direction_words,
    plural,
    processes_text,
    time_cell,
    time_unit,
)
from perfkit.stats import format_percent


def summary_block(findings: Findings, best: Change | None, *, mark: bool = False) -> str:
    """What every document of the effort opens with: conditions, the step before and after, the stack.

    Args:
        mark: ends the entry of `best` with `<- this PR`.
    """
    lines = [conditions_line(findings.conditions), _time_words(findings)]
    baseline = findings.comparison.baseline
    if best is None:
        lines += [f"nothing is proven faster than {baseline}"]
    else:
        of = pairs(findings, best.subject)
        lines += [f"{baseline} -> {best.subject}", *change_lines(of)]
    lines += ["baselines:", *_baseline_lines(findings)]
    if best is not None:
        entry = f"  1 {best.subject}  {_deltas(launched(pairs(findings, best.subject)))}"
        lines += [
            f"stack (biggest first, each against {baseline}):",
            entry + ("  <- this PR" if mark else ""),
        ]
    return "\n".join(lines)


def results_block(findings: Findings, change: Change) -> str:
    """Results of a pull request: conditions, numbers per workload, correctness, graphs, alternatives."""
    lines = [conditions_line(findings.conditions), _time_words(findings)]
    lines += change_lines(pairs(findings, change.subject), indent="")
    lines += [correctness_line(c, findings) for c in findings.correctness if c.subject == change.subject]
    lines += _compile_lines(findings, change.subject)
    others = [c for c in findings.changes if c is not change]
    alternatives = [line for other in others for line in _alternative(findings, other)]
    return "\n".join([*lines, *(["alternatives:", *alternatives] if alternatives else [])])


def change_lines(of: Sequence[Pair], *, indent: str = "  ") -> list[str]:
    """`4k              20.04 -> 12.31 ms (-38.6%)`, labels padded to one width."""
    width = max((len(pair.label) for pair in of), default=0)
    lines = []
    for pair in of:
        unsure = processes_text(*pair.times)
        text = f"{indent}{pair.label.ljust(width)}   {change_text(*pair.times)}"
        lines.append(f"{text} {unsure}".rstrip())
    return lines


def correctness_line(found: Correctness, findings: Findings) -> str:
    """`correctness: 1 output + 18 gradients in bf16 against fp64: worst grad:x rel L2 3.1e-03, PASS`."""
    counts = f"{plural(found.num_outputs, 'output')} + {plural(found.num_gradients, 'gradient')}"
    text = f"correctness: {counts} in {found.dtype} against {found.golden_dtype}"
    if found.rel_l2_target is not None:
        text += f": worst {found.worst_tensor} rel L2 {found.rel_l2_target:.1e}"
        if found.rel_l2_reference is not None:
            text += f" ({findings.comparison.baseline} {found.rel_l2_reference:.1e})"
    return f"{text}, {found.verdict}{f' ({found.reason})' if found.reason else ''}"


def _time_words(findings: Findings) -> str:
    """The states that all numbers of the block share."""
    rows = headline_rows(findings.comparison.rows)
    if not rows:
        return "no measured rows"
    states = dict.fromkeys(f"{direction_words(r.direction)}, {r.kind} time, {r.cache} cache" for r in rows)
    return "; ".join(states)


def _baseline_lines(findings: Findings) -> list[str]:
    """Per case: every subject that has a number, the baseline first."""
    rows = headline_rows(findings.comparison.rows)
    baseline = findings.comparison.baseline
    lines = []
    for case in dict.fromkeys(row.case for row in rows):
        of_case = sorted((r for r in rows if r.case == case and r.time), key=lambda r: r.subject != baseline)
        unit = time_unit([r.time for r in of_case])
        texts = [f"{r.subject} {time_cell(r.time, unit=unit)}{_unverified(r)}" for r in of_case]
        lines.append(f"  {case}: {', '.join(texts)}        ({unit})" if texts else f"  {case}: no numbers")
    return lines


def _unverified(row: ComparisonRow) -> str:
    return "" if may_rank(row) else f" ({row.verdict})"


def _deltas(of: Sequence[Pair]) -> str:
    return ", ".join(
        f"{p.case} {format_percent(p.times[1].median / p.times[0].median - 1, signed=True)}" for p in of
    )


def _compile_lines(findings: Findings, subject: str) -> list[str]:
    """Graphs and cold compile time of the subject, a line each, where it compiles anything."""
    rows = [r for r in findings.matrix if r.subject == subject and r.launch == "launch"]
    graphs = [f"{r.case} {r.num_graphs}" for r in rows if r.num_graphs is not None]
    seconds = [f"{r.case} {r.cold_compile_s:.1f} s" for r in rows if r.cold_compile_s is not None]
    lines = [f"graphs: {subject} {', '.join(graphs)}"] if graphs else []
    return [*lines, *([f"cold compile: {', '.join(seconds)}"] if seconds else [])]


def _alternative(findings: Findings, change: Change) -> list[str]:
    """The other subjects, a line per case, with what their ratio showed or why they are out."""
    lines = []
    for pair in launched(pairs(findings, change.subject)):
        verdict = conclusion(pair.after) if may_rank(pair.after) else pair.after.verdict
        lines.append(f"  {change.subject} {pair.case}   {change_text(*pair.times)}, {verdict}")
    return lines
