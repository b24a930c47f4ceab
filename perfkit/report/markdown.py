"""Markdown tables whose source is as readable as their rendering."""

from __future__ import annotations

import re
from collections.abc import Sequence

HOLE = "-"
"""What a cell shows where nothing was measured."""

_NUMBER = re.compile(r"[-+]?[\d.,]+(?:e[-+]?\d+)?\s*(?:%|x|us|ms|s|B|KiB|MiB|GiB|TiB)?")


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table with aligned source, pipes and line breaks escaped; "" for no rows.

    A column whose cells are all numbers (or holes) is set flush right.

    Raises:
        ValueError: a row has another number of cells than there are columns.
    """
    if not rows:
        return ""
    cells = [[_escaped(text) for text in row] for row in (columns, *rows)]
    if any(len(row) != len(columns) for row in cells):
        raise ValueError(f"every row needs {len(columns)} cells")
    right = [is_numeric([row[i] for row in cells[1:]]) for i in range(len(columns))]
    widths = [max(3, *(len(row[i]) for row in cells)) for i in range(len(columns))]
    rule = [
        "-" * (width - 1) + ":" if flush else "-" * width for width, flush in zip(widths, right, strict=True)
    ]
    return "\n".join(_line(row, widths, right) for row in (cells[0], rule, *cells[1:]))


def is_numeric(cells: Sequence[str]) -> bool:
    """Whether a column holds numbers (with or without a unit) and holes only, and at least one number."""
    numbers = [bool(_NUMBER.fullmatch(cell)) for cell in cells if cell not in ("", HOLE)]
    return bool(numbers) and all(numbers)


def code(text: str) -> str:
    """Inline code; a backtick inside becomes a quote, since it would end the code."""
    flat = " ".join(text.split()).replace("`", "'")
    return f"`{flat}`"


def shortened(text: str, *, most: int) -> str:
    """The text with its middle cut out where it is longer than `most` characters."""
    if len(text) <= most:
        return text
    head = (most - 3) * 2 // 3
    return f"{text[:head]}...{text[len(text) - (most - 3 - head) :]}"


def _escaped(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|") or " "


def _line(row: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    parts = [
        cell.rjust(width) if flush else cell.ljust(width)
        for cell, width, flush in zip(row, widths, right, strict=True)
    ]
    return f"| {' | '.join(parts)} |"
