"""NaN and infinity in what was timed: a failure, unless the recipe says that a case is about them."""

from __future__ import annotations

from perfkit.errors import PerfkitError
from perfkit.wire.spec import Spec

from .capture import Results
from .step import require_finite
from .targets import KernelTarget, LayerTarget

DECLARATION = "nonfinite_cases"
"""A recipe's optional list of the cases whose outputs or gradients may hold NaN or infinity."""


def check_results(results: Results, spec: Spec, target: LayerTarget | KernelTarget) -> None:
    """Refuses NaN and infinity in outputs and gradients, except in cases that the recipe declares.

    Raises:
        NonFinite: naming the tensors that hold any.
        PerfkitError: the declaration is no list of names.
    """
    declared = getattr(target.recipe_module, DECLARATION, ())
    if not isinstance(declared, (list, tuple)) or not all(isinstance(name, str) for name in declared):
        raise PerfkitError(
            f"{target.file} declares {DECLARATION} wrongly.",
            why="It is a list of names of cases.",
            do=f'Write it as {DECLARATION} = ["name"].',
        )
    if spec.case is None or spec.case.name not in declared:
        require_finite(results, subject=f"{target.name} ({spec.subject.label})")
