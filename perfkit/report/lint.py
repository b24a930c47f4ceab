"""The writing rules of pull request texts, as a linter: each complaint names its line and what to change."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from perfkit.report.story import MAX_STEPS, MIN_STEPS

_SECTIONS = ("**TLDR:**", "**Problem**", "**Solution**", "**Results**", "**Test plan**", "<details")
_TITLE = re.compile(r"\[[^\]]+\]\[[^\]]+\] \S")
_STEP = re.compile(r"(\d+)\. (.+)")
_NUMBER = re.compile(r"\d")
_FOREIGN = re.compile(r"(?<![\w&])#\d+|github\.com/", re.IGNORECASE)
_RATIO = re.compile(r"(?<![\w.])\d+(?:\.\d+)?x(?!\w)")
_MEASURED = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.]*x)")
_DIRECTION = re.compile(r"\b(?:faster|slower|smaller|larger|fewer|less|more)\b", re.IGNORECASE)
_UNCHANGED = re.compile(r"unchanged|as it was|untouched", re.IGNORECASE)
_TWO_FACTS = re.compile(r"(?<!forward )\band\b|\.\s+[A-Z]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint:
    """One broken rule."""

    line: int
    """From 1; 0 for the whole text."""
    rule: str
    message: str

    def __str__(self) -> str:
        place = f"line {self.line}: " if self.line else ""
        return f"{place}{self.message} [{self.rule}]"


def lint_pull_request(text: str) -> tuple[Complaint, ...]:
    """Every broken rule, in the order of the lines."""
    lines = text.splitlines()
    found = [
        *_title(lines),
        *_order(lines),
        *_headline(lines),
        *_steps(lines, "**Problem**"),
        *_steps(lines, "**Solution**"),
        *(complaint for number, line in enumerate(lines, start=1) for complaint in _line(number, line)),
        *(c for number, line in _prose(lines) for c in _prose_line(number, line)),
    ]
    return tuple(sorted(found, key=lambda c: c.line))


def _title(lines: list[str]) -> Iterator[Complaint]:
    if not lines or not _TITLE.match(lines[0]):
        yield Complaint(
            line=1, rule="title", message="The title must read `[<target>][perf] <what changes>`."
        )


def _order(lines: list[str]) -> Iterator[Complaint]:
    """All sections are there, in their order."""
    last = 0
    for section in _SECTIONS:
        place = _find(lines, section)
        if not place:
            yield Complaint(line=0, rule="sections", message=f"The section {section} is missing.")
        elif place < last:
            yield Complaint(
                line=place, rule="sections", message=f"The section {section} stands too late or early."
            )
        last = max(last, place)


def _headline(lines: list[str]) -> Iterator[Complaint]:
    place = _find(lines, "**TLDR:**")
    if place and not _NUMBER.search(lines[place - 1].replace("**TLDR:**", "")):
        yield Complaint(line=place, rule="tldr-number", message="The TLDR must have the main number.")


def _steps(lines: list[str], section: str) -> Iterator[Complaint]:
    """4 to 6 steps, counted from 1, one fact each; cost last, or what is left as it was."""
    start = _find(lines, section)
    if not start:
        return
    steps = _numbered(lines, start)
    name = section.strip("*")
    if not MIN_STEPS <= len(steps) <= MAX_STEPS:
        message = f"{name} has {len(steps)} steps; {MIN_STEPS} to {MAX_STEPS} are wanted."
        yield Complaint(line=start, rule="step-count", message=message)
    if [number for _, number, _ in steps] != list(range(1, len(steps) + 1)):
        yield Complaint(line=start, rule="step-count", message=f"{name} must count its steps from 1.")
    for line, _, words in steps:
        if _TWO_FACTS.search(re.sub(r"`[^`]*`", "", words)):
            yield Complaint(line=line, rule="one-fact", message="One fact a line: split this step.")
    if steps and name == "Problem" and not _NUMBER.search(steps[-1][2]):
        yield Complaint(
            line=steps[-1][0], rule="cost", message="The Problem must end with the cost as a number."
        )
    if steps and name == "Solution" and not _UNCHANGED.search(steps[-1][2]):
        message = "The Solution must end with what is left as it was."
        yield Complaint(line=steps[-1][0], rule="unchanged", message=message)


def _line(number: int, line: str) -> Iterator[Complaint]:
    """Rules for every line, code blocks included."""
    if not line.isascii():
        yield Complaint(line=number, rule="ascii", message="Only ASCII characters are allowed.")
    if _FOREIGN.search(line):
        yield Complaint(line=number, rule="foreign", message="Other pull requests and issues are not cited.")
    if _RATIO.search(line) and not (_DIRECTION.search(line) and len(_MEASURED.findall(line)) >= 2):
        message = "A ratio needs its direction and the two numbers behind it."
        yield Complaint(line=number, rule="bare-ratio", message=message)


def _prose_line(number: int, line: str) -> Iterator[Complaint]:
    """Rules for lines outside code blocks."""
    if line.lstrip().startswith("|"):
        yield Complaint(
            line=number, rule="table", message="No tables: use a code block with one line per workload."
        )


def _prose(lines: list[str]) -> Iterator[tuple[int, str]]:
    inside = False
    for number, line in enumerate(lines, start=1):
        if line.startswith("```"):
            inside = not inside
        elif not inside:
            yield number, line


def _numbered(lines: list[str], start: int) -> list[tuple[int, int, str]]:
    """(line, number, words) of the numbered lines up to the next section."""
    steps = []
    for place, line in enumerate(lines[start:], start=start + 1):
        if line.startswith(("**", "```", "<")):
            break
        if found := _STEP.fullmatch(line):
            steps.append((place, int(found[1]), found[2]))
    return steps


def _find(lines: list[str], prefix: str) -> int:
    """The line, from 1, that starts with the prefix; 0 where none does."""
    return next((number for number, line in enumerate(lines, start=1) if line.startswith(prefix)), 0)
