"""The options that commands share, in groups, and the way a command takes a group."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from perfkit.cli.completion import complete_effort, complete_target
from perfkit.cli.settings import SETTINGS

Group = Mapping[str, tuple[Any, Any]]
"""Parameter name -> its type and its `typer.Option`, default included."""

TargetOrEffort = Annotated[
    str,
    typer.Argument(
        metavar="TARGET",
        help="A recipe, path/to/recipe.py, path/to/file.py:callable, package.module:callable, or an effort.",
        autocompletion=complete_target,
        show_default=False,
    ),
]
EffortName = Annotated[
    str,
    typer.Argument(
        metavar="EFFORT",
        help="An effort: its folder, or its name below --out.",
        autocompletion=complete_effort,
        show_default=False,
    ),
]


def with_options(*groups: Group) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Adds the options of these groups to a command, which receives them as `**given`.

    Typer reads a command's options from its signature, and offers no other way to share them.
    """

    def widen(command: Callable[..., int]) -> Callable[..., int]:
        own = inspect.signature(command, eval_str=True).parameters.values()
        named = [p for p in own if p.kind is not inspect.Parameter.VAR_KEYWORD]
        shared = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=option, annotation=kind)
            for group in groups
            for name, (kind, option) in group.items()
        ]
        command.__dict__["__signature__"] = inspect.Signature([*named, *shared])
        return command

    return widen


def _setting(name: str) -> tuple[Any, Any]:
    """An option whose value may also come from the environment or pyproject.toml."""
    setting = SETTINGS[name]
    default = setting.default_shown or setting.default
    shown = f"{setting.help} [default: {default}]" if default else setting.help
    if isinstance(setting.default, bool):
        declared = "--graph/--no-graph" if setting.default else f"--{name}"
        return bool | None, typer.Option(None, *_short(name), declared, help=shown, show_default=False)
    return _text(f"--{name}", setting.metavar, shown)


def _short(name: str) -> tuple[str, ...]:
    return {"quiet": ("-q",), "verbose": ("-v",)}.get(name, ())


def _text(flag: str, metavar: str, help: str) -> tuple[Any, Any]:
    return str | None, typer.Option(None, flag, metavar=metavar, help=help, show_default=False)


def _switch(flag: str, help: str) -> tuple[Any, Any]:
    return bool, typer.Option(False, flag, help=help, show_default=False)


DEVICE: Group = {"device": _setting("device")}
DTYPE: Group = {"dtype": _setting("dtype")}
PROCESS: Group = {
    "threads": _setting("threads"),
    "quick": _setting("quick"),
    "time_limit": _setting("time-limit"),
}
MEASURING: Group = {
    **DEVICE,
    **DTYPE,
    **PROCESS,
    "replicates": _setting("replicates"),
    "graph": _setting("graph"),
    "seed": _setting("seed"),
    "fp32_precision": _setting("fp32-precision"),
}
CASES: Group = {
    "cases": _text("--cases", "A,B", "Run only these cases of the target."),
    "case": (
        list[str] | None,
        typer.Option(
            None,
            "--case",
            metavar="[NAME:]KEY=VALUE,...",
            help="A shape of your own, in place of the declared cases. Can be repeated.",
            show_default=False,
        ),
    ),
}
TABLES: Group = {
    "blocks": _text("--blocks", "A,B", "Layers: classes that tree block compiles."),
    "regions": _text("--regions", "f,C.g", "Layers: functions and methods that tree regions compiles."),
    "ac": _text("--ac", "MODE", "Layers: checkpoint each block: none, full or selective. [default: none]"),
}
SUBJECTS: Group = {
    "trees": _text("--trees", "A,B", "Layers: which of eager, regions, block. [default: all that apply]"),
    "providers": _text(
        "--providers", "A,B", "Kernels: which of target, eager, compile and the recipe's own. [default: all]"
    ),
}
VARIANTS: Group = {
    "variants": _text("--variants", "v0,v1", "Variants of the effort; v0 is the baseline. [default: all]")
}
JSON: Group = {"json": _switch("--json", "Print one JSON document to stdout.")}
FOLDER: Group = {"out": _setting("out"), **JSON}
OUTPUT: Group = {
    "effort": _text("--effort", "NAME", "Folder of the effort below --out. [default: <target>-<device>]"),
    **FOLDER,
    "overwrite": _switch("--overwrite", "Measure again what is recorded; the older results stay on file."),
    "dry_run": _switch("--dry-run", "List what would be measured, and start nothing."),
}
GENERAL: Group = {
    "quiet": _setting("quiet"),
    "verbose": _setting("verbose"),
    "debug": _switch("--debug", "Show the traceback of an unexpected error on the screen."),
    "show_config": _switch("--show-config", "Print each setting, its value and its source, and exit."),
}
