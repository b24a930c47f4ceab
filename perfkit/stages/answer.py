"""What a stage hands back to the command line."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perfkit.errors import ExitCode


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table for people: cells are finished text, with honest digits and units in the column names.

    A column whose cells are all numbers, with a unit or not (or empty, or `-`), is set flush right.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    """Sentences printed below the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageReport:
    """The answer of one stage.

    `document` is what `--json` prints, after the keys `schema` and `version`, which the command line adds.
    It holds only JSON values and wire structs. `exit_code` follows the slots and the verdict: FAILED when
    any requested slot failed; NEGATIVE and INCONCLUSIVE come from verdict-giving verbs alone.
    """

    headline: str = ""
    """One or two sentences that come first: the answer in words, or the verdict."""
    tables: tuple[Table, ...] = ()
    document: dict[str, Any] = field(default_factory=dict)
    exit_code: ExitCode = ExitCode.GOOD
    files: tuple[Path, ...] = ()
    """Written or updated by this call, in the order in which a reader should open them."""
    warnings: tuple[str, ...] = ()
    """Sentences for stderr: what was left out or weakens the answer."""
