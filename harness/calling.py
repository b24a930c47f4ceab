"""Calls a recipe's functions with a case's keywords, and explains what does not fit, by file and line."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from perfkit.errors import PerfkitError
from perfkit.wire.spec import Case, CaseValue

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def near_names(name: str, known: Iterable[str]) -> str:
    """` (did you mean x, y?)`, or nothing when no known name is close."""
    near = difflib.get_close_matches(name, list(known), n=3)
    return f" (did you mean {', '.join(near)}?)" if near else ""


def where_is(function: Any) -> str:
    """`recipe.py:12 build`: file, first line and name of a function, class or method."""
    bare = inspect.unwrap(getattr(function, "__func__", function))
    name = getattr(bare, "__qualname__", type(bare).__qualname__)
    if (code := getattr(bare, "__code__", None)) is not None:
        return f"{code.co_filename}:{code.co_firstlineno} {name}"
    try:
        file = inspect.getsourcefile(bare)
        line = inspect.getsourcelines(bare)[1]
    except (TypeError, OSError):
        return name
    return f"{file}:{line} {name}"


@dataclass(frozen=True)
class Signature:
    """Which keywords a function takes."""

    names: tuple[str, ...]
    required: tuple[str, ...]
    takes_any: bool
    """It has `**kwargs`."""
    discards: bool
    """Its `**kwargs` are named with a leading underscore: taken and thrown away."""

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Signature:
        """Reads a callable's signature.

        Raises:
            PerfkitError: it cannot be called with keywords.
        """
        parameters = inspect.signature(function).parameters.values()
        only = [p.name for p in parameters if p.kind is p.POSITIONAL_ONLY and p.default is p.empty]
        if only:
            raise PerfkitError(
                f"Cannot call {where_is(function)} with keywords.",
                why=f"Its parameters {', '.join(only)} can be given by position only.",
                do="Remove the `/` from its signature.",
            )
        named = [p for p in parameters if p.kind in _NAMED]
        rest = next((p.name for p in parameters if p.kind is p.VAR_KEYWORD), "")
        return cls(
            names=tuple(p.name for p in named),
            required=tuple(p.name for p in named if p.default is p.empty),
            takes_any=bool(rest),
            discards=rest.startswith("_"),
        )


def call_with_case(
    function: Callable[..., Any], *, case: Case, device: torch.device, dtype: torch.dtype
) -> Any:
    """Calls a function with those of the case's keywords, `device` and `dtype` that it takes.

    Raises:
        PerfkitError: it needs a keyword that the case does not give.
    """
    offered: dict[str, CaseValue | torch.device | torch.dtype] = {
        **case.values,
        "device": device,
        "dtype": dtype,
    }
    signature = Signature.of(function)
    missing = [name for name in signature.required if name not in offered]
    if missing:
        raise PerfkitError(
            f"Cannot call {where_is(function)}.",
            why=f"It needs {', '.join(missing)}, and the case {case.name!r} gives {_listed(offered)}.",
            do="Add the keyword to the case, or give the parameter a default.",
        )
    return function(**{k: v for k, v in offered.items() if signature.takes_any or k in signature.names})


def require_keywords_used(functions: Iterable[Callable[..., Any]], *, case: Case) -> None:
    """Refuses a case keyword that every function would leave unused: most likely a misspelt name.

    `**_` (a leading underscore) discards, so it does not count as taking a keyword; `**kwargs` does.

    Raises:
        PerfkitError: naming the keyword and the functions.
    """
    functions = tuple(functions)
    signatures = [Signature.of(function) for function in functions]
    if any(s.takes_any and not s.discards for s in signatures):
        return
    known = {name for s in signatures for name in s.names} - {"device", "dtype"}
    for name in case.values:
        if name not in known:
            raise PerfkitError(
                f"The case {case.name!r} gives {name!r}, which nothing takes.",
                why=f"{' and '.join(where_is(f) for f in functions)} take {_listed(known)}.",
                do=f"Correct the keyword{near_names(name, known)}, or add it as a parameter.",
            )


def as_keywords(inputs: Any, *, module: nn.Module, source: str) -> dict[str, Any]:
    """Keywords of `module(**inputs)` from a dict, a tuple of positional arguments or a single tensor.

    Raises:
        PerfkitError: the inputs are something else, or do not fit the module's forward.
    """
    if isinstance(inputs, torch.Tensor):
        inputs = (inputs,)
    signature = Signature.of(module.forward)
    if isinstance(inputs, (list, tuple)):
        if len(inputs) > len(signature.names):
            raise PerfkitError(
                f"{source} returned {len(inputs)} positional inputs.",
                why=f"{where_is(module.forward)} has the named parameters {_listed(signature.names)}.",
                do="Return a dict of keywords that the module's forward takes.",
            )
        inputs = dict(zip(signature.names, inputs, strict=False))
    if not isinstance(inputs, Mapping) or not all(isinstance(key, str) for key in inputs):
        raise PerfkitError(
            f"{source} returned inputs of type {type(inputs).__name__}.",
            why="Inputs are a dict of keywords, a tuple of positional arguments or one tensor.",
            do="Return one of these.",
        )
    require_fits(module.forward, inputs, source=source)
    return dict(inputs)


def require_fits(function: Callable[..., Any], inputs: Mapping[str, Any], *, source: str) -> None:
    """Refuses keywords that a function does not take, or lacks.

    Raises:
        PerfkitError: naming both sides by file and line.
    """
    signature = Signature.of(function)
    unknown = [] if signature.takes_any else [name for name in inputs if name not in signature.names]
    missing = [name for name in signature.required if name not in inputs]
    if unknown or missing:
        fault = f"does not take {', '.join(unknown)}" if unknown else f"also needs {', '.join(missing)}"
        raise PerfkitError(
            f"The inputs do not fit {where_is(function)}.",
            why=f"{source} gives {_listed(inputs)}, and the function {fault}.",
            do="Make the names of the inputs and of the parameters agree.",
        )


def get_function(namespace: Any, name: str, *, file: Path, purpose: str) -> Callable[..., Any]:
    """A callable of a loaded module.

    Raises:
        PerfkitError: the module has no such attribute, or it cannot be called.
    """
    value = vars(namespace).get(name)
    if value is None:
        callables = [n for n, v in vars(namespace).items() if callable(v) and not n.startswith("_")]
        raise PerfkitError(
            f"{file}:1 defines no {name!r}.",
            why=f"{purpose}.",
            do=f"Define it{near_names(name, callables)}.",
        )
    if not callable(value):
        raise PerfkitError(
            f"{name!r} of {file} is no function but a {type(value).__name__}.",
            why=f"{purpose}.",
            do="Make it a function.",
        )
    function: Callable[..., Any] = value
    return function


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "nothing"
