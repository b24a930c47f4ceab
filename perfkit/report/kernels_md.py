"""The kernel tables: families side by side, and the most costly names of each subject."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from perfkit.report.markdown import HOLE, code, markdown_table, shortened
from perfkit.report.model import KernelRow
from perfkit.stats import format_percent, format_us

NUM_TOP = 10
_LONGEST_NAME = 90
_SMALLEST_REST = 0.0005
"""A rest that would print as 0.0% is no line of its own."""
_NAMESPACES = re.compile(r"\(anonymous namespace\)::|\b(?:at::native|at::cuda|c10|std)::")


@dataclass(frozen=True, slots=True)
class Section:
    """One table with what its heading names."""

    case: str
    subject: str
    table: str


def family_sections(rows: Sequence[KernelRow]) -> list[Section]:
    """Per case: families down (most costly first, by any subject), subjects across."""
    cases = dict.fromkeys(row.case for row in rows)
    return [Section(case, "", _family_table([r for r in rows if r.case == case])) for case in cases]


def kernel_sections(rows: Sequence[KernelRow], *, num_top: int = NUM_TOP) -> list[Section]:
    """Per case and subject: the `num_top` most costly names, and what is left of the step in one line."""
    pairs = dict.fromkeys((row.case, row.subject) for row in rows)
    return [
        Section(
            case, subject, _kernel_table([r for r in rows if (r.case, r.subject) == (case, subject)], num_top)
        )
        for case, subject in pairs
    ]


def plain_kernel_name(name: str) -> str:
    """A C++ kernel name without return type, argument list and the namespaces that every name shares."""
    bare = _NAMESPACES.sub("", name.removeprefix("void "))
    depth = 0
    for place, letter in enumerate(bare):
        depth += {"<": 1, ">": -1}.get(letter, 0)
        if letter == "(" and depth == 0 and place:
            return bare[:place]
    return bare


def _family_table(rows: Sequence[KernelRow]) -> str:
    subjects = list(dict.fromkeys(row.subject for row in rows))
    by_key = {(row.family, row.subject): row for row in rows}
    largest = {row.family: 0.0 for row in rows}
    for row in rows:
        largest[row.family] = max(largest[row.family], row.time_us)
    families = sorted(largest, key=lambda family: (-largest[family], family))
    columns = ["family"]
    for subject in subjects:
        columns += [f"{subject} time", "share", "calls"]
    cells = [
        [family, *(cell for subject in subjects for cell in _family_cells(by_key.get((family, subject))))]
        for family in families
    ]
    return markdown_table(columns, cells)


def _family_cells(row: KernelRow | None) -> tuple[str, str, str]:
    if row is None:
        return HOLE, HOLE, HOLE
    return format_us(row.time_us), format_percent(row.share), f"{row.num_calls:g}"


def _kernel_table(rows: Sequence[KernelRow], num_top: int) -> str:
    ordered = sorted(rows, key=lambda row: (-row.time_us, row.name))
    cells = [
        (
            code(shortened(plain_kernel_name(row.name), most=_LONGEST_NAME)),
            row.family,
            f"{row.num_calls:g}",
            format_us(row.time_us),
            format_percent(row.share),
        )
        for row in ordered[:num_top]
    ]
    rest_share = 1 - sum(row.share for row in ordered[:num_top])
    if rest_share >= _SMALLEST_REST and ordered[0].share > 0:
        total_us = ordered[0].time_us / ordered[0].share
        cells.append(("all others", HOLE, HOLE, format_us(rest_share * total_us), format_percent(rest_share)))
    return markdown_table(("name", "family", "calls", "time per step", "share"), cells)
