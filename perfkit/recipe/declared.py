"""What a recipe file declares."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from perfkit.recipe.signatures import Signature
from perfkit.wire.spec import CaseValue, TargetKind

Cases = dict[str, dict[str, CaseValue]]
"""Case name -> the keywords that the recipe's functions receive, in the order of the file."""

REQUIRED_FUNCTIONS: dict[TargetKind, tuple[str, ...]] = {
    "layer": ("build", "inputs"),
    "kernel": ("inputs", "reference", "target"),
}
CASE_FUNCTIONS: dict[TargetKind, tuple[str, ...]] = {"layer": ("build", "inputs"), "kernel": ("inputs",)}
"""The functions among which the keywords of a case are shared out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One recipe, read as text. Tables that the file leaves out are empty."""

    name: str
    file: Path
    summary: str
    """First line of the docstring."""
    kind: TargetKind
    cases: Cases
    cpu_cases: Cases
    edge_cases: Cases
    blocks: tuple[str, ...]
    regions: tuple[str, ...]
    source: str
    tune: dict[str, tuple[CaseValue, ...]]
    tolerance: dict[str, str]
    """dtype name -> tolerance class."""
    functions: frozenset[str]
    """Every `def` at the top level."""
    providers: tuple[str, ...]
    """Suffixes of `provider_<suffix>`, in the order of the file."""
    signatures: dict[str, Signature]
    """Of the functions that receive a case's keywords, as far as they are defined in this very file."""
    lines: dict[str, int]
    """Line of each table and function, for messages."""

    def at(self, name: str) -> str:
        """`path/to/recipe.py:12`, the place of a table or function."""
        return f"{self.file}:{self.lines.get(name, 1)}"
