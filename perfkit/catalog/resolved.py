"""What a target turned out to be."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from perfkit.catalog.options import TargetOptions
from perfkit.recipe import Recipe
from perfkit.wire.spec import Case, CheckpointMode, DtypeName, Target, TreeName

ALWAYS_PROVIDERS = ("target", "eager", "compile")
"""Providers that every kernel has: the kernel under test, its reference, and the reference compiled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """A target with everything that the command line left open filled in."""

    text: str
    """Names the target again from the same folder: a recipe's name, or a path or module and callable."""
    options: TargetOptions
    """As given, joined with those of the effort; `text` and this are what an effort must remember."""
    target: Target
    file: Path
    """The file that declares the target."""
    recipe: Recipe | None
    cases: tuple[Case, ...]
    edge_cases: tuple[Case, ...]
    """Shapes that are checked, never timed."""
    trees: tuple[TreeName, ...]
    """Layers: what to run, baseline first; () for a kernel."""
    checkpoint: CheckpointMode
    providers: tuple[str, ...]
    """Kernels: what to run; () for a layer."""
    effort: Path | None
    """The folder, when the text named an effort rather than a target."""
    notes: tuple[str, ...]
    """Sentences for the user: what was assumed."""

    def tolerance(self, dtype: DtypeName) -> str:
        """The recipe's tolerance class for a dtype; "" where it declares none."""
        return "" if self.recipe is None else self.recipe.tolerance.get(dtype, "")
