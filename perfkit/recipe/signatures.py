"""Which keywords a function takes, read from its `def`."""

from __future__ import annotations

import ast
from dataclasses import dataclass

GIVEN_BY_US = frozenset({"device", "dtype"})
"""Keywords that perfkit passes beside those of the case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """Parameters that can be given by keyword."""

    names: tuple[str, ...]
    required: tuple[str, ...]
    """Those without a default."""
    takes_any: bool
    """It has `**kwargs`. `**_` is not counted: by its name it only swallows what other functions use."""
    line: int

    def lacks(self, given: set[str]) -> tuple[str, ...]:
        """Required keywords that neither the case nor perfkit gives."""
        return tuple(name for name in self.required if name not in given | GIVEN_BY_US)


def signature_of(function: ast.FunctionDef) -> Signature:
    """The signature of a `def` statement."""
    args = function.args
    positional = [*args.posonlyargs, *args.args]
    with_default = {arg.arg for arg in positional[len(positional) - len(args.defaults) :]}
    with_default |= {
        arg.arg for arg, value in zip(args.kwonlyargs, args.kw_defaults, strict=True) if value is not None
    }
    names = tuple(arg.arg for arg in (*args.args, *args.kwonlyargs))
    swallows = args.kwarg is not None and args.kwarg.arg.startswith("_")
    return Signature(
        names=names,
        required=tuple(name for name in names if name not in with_default),
        takes_any=args.kwarg is not None and not swallows,
        line=function.lineno,
    )
