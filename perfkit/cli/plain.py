"""Tables as plain text: aligned, never cut, never wrapped."""

from __future__ import annotations

import re
from collections.abc import Iterable

from perfkit.stages.answer import StageReport, Table

_NUMBER = re.compile(r"[<>~]?[+-]?[\d,]*\.?\d+([eE][+-]?\d+)?(\s?[%x]|\s[A-Za-z]+(/s)?)?")
_GAP = "  "


def flush_right(table: Table) -> tuple[bool, ...]:
    """Per column, whether it holds numbers only (empty cells and `-` do not count)."""
    return tuple(_all_numbers(row[index] for row in table.rows) for index in range(len(table.columns)))


def widths(table: Table) -> tuple[int, ...]:
    """Width of each column in characters."""
    lines = (table.columns, *table.rows)
    return tuple(max(len(line[index]) for line in lines) for index in range(len(table.columns)))


def table_text(table: Table) -> str:
    """Title, header, rule, rows and notes, each line ended by a newline."""
    sizes, right = widths(table), flush_right(table)
    rule = tuple("-" * size for size in sizes)
    lines = [table.title] if table.title else []
    if table.rows:
        lines += [_line(cells, sizes, right) for cells in (table.columns, rule, *table.rows)]
    else:
        lines.append("(nothing)")
    return "".join(f"{line}\n" for line in (*lines, *table.notes))


def report_text(report: StageReport) -> str:
    """The whole answer: headline and tables, with an empty line between."""
    parts = [f"{report.headline}\n"] if report.headline else []
    return "\n".join([*parts, *map(table_text, report.tables)])


def _line(cells: tuple[str, ...], sizes: tuple[int, ...], right: tuple[bool, ...]) -> str:
    placed = (
        cell.rjust(size) if flush else cell.ljust(size)
        for cell, size, flush in zip(cells, sizes, right, strict=True)
    )
    return _GAP.join(placed).rstrip()


def _all_numbers(cells: Iterable[str]) -> bool:
    filled = [cell for cell in cells if cell not in ("", "-")]
    return bool(filled) and all(_NUMBER.fullmatch(cell) for cell in filled)
