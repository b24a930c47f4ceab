"""How a layer runs: eager, with compiled regions, or with each block compiled."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence

import torch
from torch import nn

from perfkit.errors import PerfkitError
from perfkit.wire.spec import TreeName

from .calling import near_names
from .regions import compile_region, find_region
from .targets import LayerTarget
from .torch_private import num_compiled_graphs


def apply_tree(target: LayerTarget, tree: TreeName, *, blocks: Sequence[str], regions: Sequence[str]) -> None:
    """Makes the target run as the tree says, in place and for this process; compilation is lazy.

    `regions`: each named function or method is compiled alone with fullgraph=True. `block`: each
    instance of a named class gets `.compile()`, where graph breaks are allowed and show in the count.
    Apply checkpointing first: a compiled block then contains its checkpoint.

    Raises:
        PerfkitError: the target declares nothing to compile, a name is unknown, or the compiler that
            Inductor needs is missing.
    """
    if tree == "eager":
        return
    require_compiler(target.device)
    if tree == "regions":
        _require_declared(target, regions, tree=tree, table="regions")
        functions = {id(f): f for f in (find_region(target, name) for name in regions)}
        for function in functions.values():
            compile_region(function)
    else:
        _require_declared(target, blocks, tree=tree, table="blocks")
        for block in find_blocks(target.module, blocks):
            block.compile()


def find_blocks(module: nn.Module, names: Sequence[str]) -> list[nn.Module]:
    """Every instance of the named classes (or of their subclasses), in module order.

    Raises:
        PerfkitError: a name has no instance in the module.
    """
    found = [m for m in module.modules() if any(c.__name__ in names for c in type(m).__mro__)]
    present = {c.__name__ for m in module.modules() for c in type(m).__mro__}
    for name in names:
        if name not in present:
            classes = sorted({type(m).__name__ for m in module.modules()})
            raise PerfkitError(
                f"The target has no block of class {name!r}.",
                why=f"Its modules are of the classes {', '.join(classes)}.",
                do=f"Correct the table `blocks`{near_names(name, classes)}.",
            )
    return found


def num_graphs() -> int:
    """Graphs compiled in this process so far; a graph shared by many instances counts once."""
    return num_compiled_graphs()


def forget_compiled() -> None:
    """Lets torch.compile start anew: what was compiled is dropped, what was counted stays counted."""
    torch._dynamo.reset()


def require_graphs(what: str) -> None:
    """Refuses a compiled run in which nothing was compiled; call it after the warm-up.

    Raises:
        PerfkitError: no graph was compiled, so eager code would be timed under a compiled tree's name.
    """
    if num_graphs() == 0:
        raise PerfkitError(
            f"Nothing was compiled for {what}.",
            why="torch.compile fell back to eager, or the step never reaches what it was asked to compile.",
            do="Run it with TORCH_LOGS=graph_breaks in the environment, and see the slot's log.",
        )


def require_compiler(device: torch.device) -> None:
    """On the CPU, Inductor generates C++.

    Raises:
        PerfkitError: the C++ compiler that it would call is not there.
    """
    compiler = (os.environ.get("CXX") or ("clang++" if sys.platform == "darwin" else "g++")).split()[0]
    if device.type == "cpu" and shutil.which(compiler) is None:
        raise PerfkitError(
            "Cannot compile on the CPU.",
            why=f"torch.compile needs a C++ compiler there, and {compiler} is not on the PATH.",
            do="Install g++, set CXX to another C++ compiler, or measure the eager tree only.",
        )


def _require_declared(target: LayerTarget, names: Sequence[str], *, tree: str, table: str) -> None:
    if not names:
        raise PerfkitError(
            f"{target.name} cannot run as the tree {tree!r}.",
            why=f"It declares no {table}.",
            do=f"Add the table `{table}` to the recipe or give it as an option, or leave the tree out.",
        )
