"""Regions: functions and methods compiled on their own, reached wherever they are bound, without edits."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable
from types import CodeType, FunctionType, ModuleType
from typing import Any

import torch

from perfkit.errors import PerfkitError

from .calling import near_names
from .targets import LayerTarget

_numbers = itertools.count()


def find_region(target: LayerTarget, name: str) -> FunctionType:
    """The function behind `apply_rope`, `RMSNorm.forward` or `nn.RMSNorm.forward`.

    Looked up in the target's own module first, then in the modules that its classes and functions
    come from (torch's own excepted: reach these through a name of the target's module).

    Raises:
        PerfkitError: no such name, two different functions of that name, an inherited method (other
            classes would be compiled with it), or something that is no Python function.
    """
    modules = [target.recipe_module]
    found = _resolve(target.recipe_module, name)
    if found is None:
        modules += _neighbours(target)
        candidates = [(module, _resolve(module, name)) for module in modules[1:]]
        distinct = {id(value): (module, value) for module, value in candidates if value is not None}
        if len(distinct) > 1:
            raise PerfkitError(
                f"The region {name!r} of {target.name} is ambiguous.",
                why=f"It is defined in {', '.join(m.__name__ for m, _ in distinct.values())}.",
                do="Import the one you mean into the target's own file.",
            )
        found = next((value for _, value in distinct.values()), None)
    if found is None:
        known = sorted({known for module in modules for known in _region_names(module)})
        raise PerfkitError(
            f"{target.name} has no region {name!r}.",
            why=f"Neither {target.file} nor the modules of its classes define such a function.",
            do=f"Correct the name{near_names(name, known)}.",
        )
    return _require_function(found, name=name)


def compile_region(function: FunctionType) -> None:
    """Turns a function into a call of its compiled self, in place, for this process.

    Its `__code__` is swapped for a trampoline with the same free variables, so `from x import f`,
    partials and closures are reached too. One region is one code object: the graphs of all instances
    and call sites count together. fullgraph=True: a graph break raises.
    """
    original = FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    original.__kwdefaults__ = function.__kwdefaults__
    original.__qualname__ = function.__qualname__
    original.__module__ = function.__module__
    slot = f"__perfkit_region_{next(_numbers)}"
    function.__globals__[slot] = torch.compile(original, fullgraph=True)
    function.__code__ = _trampoline(function.__code__, slot)


def _trampoline(code: CodeType, slot: str) -> CodeType:
    """Code that forwards every call to the global `slot` and closes over the same variables as `code`."""
    free = ", ".join(code.co_freevars)
    # The dead branch makes the names free variables of the trampoline: the closure must keep its length.
    keep = f"        if 0: {free}\n" if free else ""
    source = (
        f"def outer({free}):\n"
        "    def trampoline(*args, **kwargs):\n"
        f"{keep}        return {slot}(*args, **kwargs)\n"
        "    return trampoline\n"
    )
    namespace: dict[str, Any] = {}
    exec(compile(source, f"<region {code.co_qualname}>", "exec"), namespace)
    trampoline: Callable[..., Any] = namespace["outer"](*code.co_freevars)
    return trampoline.__code__.replace(co_name=code.co_name, co_qualname=code.co_qualname)


def _resolve(module: ModuleType, name: str) -> Any:
    value: Any = module
    for part in name.split("."):
        value = getattr(value, part, None)
        if value is None:
            return None
    return value


def _neighbours(target: LayerTarget) -> list[ModuleType]:
    """Modules that define the target's submodules, and the functions and classes it imported."""
    values: Iterable[Any] = [*target.module.modules(), *vars(target.recipe_module).values()]
    names = dict.fromkeys(_home(value) for value in values)
    names.pop(target.recipe_module.__name__, None)
    return [sys.modules[n] for n in names if n in sys.modules and n.partition(".")[0] != "torch"]


def _home(value: Any) -> str:
    owner = value if isinstance(value, (type, FunctionType)) else type(value)
    return str(owner.__module__)


def _region_names(module: ModuleType) -> list[str]:
    names = []
    for name, value in vars(module).items():
        if isinstance(value, FunctionType):
            names.append(name)
        elif isinstance(value, type):
            names += [f"{name}.{m}" for m, v in vars(value).items() if isinstance(v, FunctionType)]
    return names


def _require_function(value: Any, *, name: str) -> FunctionType:
    function = getattr(value, "__func__", value)
    if not isinstance(function, FunctionType):
        raise PerfkitError(
            f"The region {name!r} cannot be compiled on its own.",
            why=f"It is no Python function but a {type(value).__name__}.",
            do="Name a function or a method; a class is named by its method, as in RMSNorm.forward.",
        )
    holder, _, method = name.rpartition(".")
    defined = function.__qualname__.rpartition(".")[0]
    if holder and method == function.__name__ and defined and defined.split(".")[-1] != holder.split(".")[-1]:
        raise PerfkitError(
            f"The region {name!r} is inherited.",
            why=f"It is defined as {function.__qualname__}, which other classes run too.",
            do=f"Name {function.__qualname__} instead, or define the method in {holder}.",
        )
    return function
