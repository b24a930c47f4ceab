"""The text of a pull request for the best measured change, from the effort's own numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass

from perfkit.report.blocks import results_block, summary_block
from perfkit.report.findings_md import not_tested_lines, rejected_lines
from perfkit.report.model import Change, Findings
from perfkit.report.pairs import best_change, launched, pairs
from perfkit.report.ranking import may_rank
from perfkit.report.render import render
from perfkit.report.story import tell
from perfkit.report.words import QUICK, change_text, conclusion
from perfkit.stats import format_us

_LONGEST_SLUG = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequest:
    """One file below pr/."""

    file_name: str
    """`01-compile-each-block.md`."""
    title: str
    text: str


def pull_requests(findings: Findings) -> tuple[PullRequest, ...]:
    """The texts, biggest gain first; none where nothing verified is proven faster than the baseline."""
    best = best_change(findings)
    return () if best is None else (_pull_request(findings, best, place=1),)


def _pull_request(findings: Findings, change: Change, *, place: int) -> PullRequest:
    story = tell(findings, change)
    text = render(
        "pull_request.md.j2",
        quick=QUICK if findings.conditions.quick else "",
        story=story,
        results=results_block(findings, change),
        questions=_questions(findings, change),
        note=_note(findings, change),
        test_command=findings.test_command or _default_command(findings),
        summary=summary_block(findings, change, mark=True),
        rejected=rejected_lines(findings, change),
        compile_limits=findings.compile_limits,
        not_tested=not_tested_lines(findings),
    )
    return PullRequest(
        file_name=f"{place:02d}-{slug(story.title.rpartition(']')[2])}.md", title=story.title, text=text
    )


def slug(text: str) -> str:
    """Lower-case words joined by hyphens, cut at a word."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    kept: list[str] = []
    for word in words:
        if kept and len("-".join([*kept, word])) > _LONGEST_SLUG:
            break
        kept.append(word)
    return "-".join(kept)[:_LONGEST_SLUG] or "change"


def _questions(findings: Findings, change: Change) -> list[str]:
    """Why not the other subjects: their number, a line each."""
    lines = []
    for other in findings.changes:
        if other is change:
            continue
        of = launched(pairs(findings, other.subject))
        if not of:
            continue
        pair = max(of, key=lambda p: p.times[0].median)
        verdict = conclusion(pair.after) if may_rank(pair.after) else pair.after.verdict
        text = f"why not {other.subject}? {pair.case} {change_text(*pair.times)}, {verdict}"
        mine = next((p for p in launched(pairs(findings, change.subject)) if p.case == pair.case), None)
        if mine is not None:
            text += f"; {change.subject} takes {format_us(mine.times[1].median)}"
        lines.append(f"{text}.")
    return lines


def _default_command(findings: Findings) -> str:
    target = findings.conditions.target
    return f"perfkit verify {target}\nperfkit bench {target}"


def _note(findings: Findings, change: Change) -> str:
    """What a reviewer must not take for granted."""
    gaps = "; ".join(not_tested_lines(findings))
    tested = f"not tested: {gaps}." if gaps else "no gap in testing is stated."
    return f"{tested} Headroom: no training recipe turns this on yet." if change.kind == "tree" else tested
