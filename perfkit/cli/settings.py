"""Settings that a flag, the environment, pyproject.toml or a default can give, in this order."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfkit.errors import UsageError

_YES = ("1", "true", "yes", "on")
_NO = ("0", "false", "no", "off")

Parse = Callable[[Any], Any]
"""Turns a flag's, variable's or TOML value into the setting's; raises ValueError with a complaint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting; its name is its flag without the dashes."""

    parse: Parse
    default: Any
    metavar: str
    help: str
    default_shown: str = ""
    """What help says of the default where the value itself says too little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """A setting's value and where it came from."""

    value: Any
    source: str


def one_of(*choices: str) -> Parse:
    """A word among these."""

    def parse(raw: Any) -> str:
        if raw not in choices:
            raise ValueError(f"is not one of {', '.join(choices)}")
        return str(raw)

    return parse


def at_least(least: int) -> Parse:
    """A whole number from `least` upwards."""

    def parse(raw: Any) -> int:
        number = raw if isinstance(raw, int) and not isinstance(raw, bool) else _as_int(raw)
        if number is None or number < least:
            raise ValueError(f"is not a whole number of at least {least}")
        return number

    return parse


def seconds(raw: Any) -> float:
    """A positive number of seconds."""
    text = "" if isinstance(raw, bool) else str(raw)
    if not re.fullmatch(r"\d+(\.\d*)?|\.\d+", text) or float(text) <= 0:
        raise ValueError("is not a positive number of seconds")
    return float(text)


def yes_no(raw: Any) -> bool:
    """A switch."""
    if isinstance(raw, bool):
        return raw
    word = str(raw).lower()
    if word in _YES:
        return True
    if word in _NO:
        return False
    raise ValueError("is not true or false")


def device_name(raw: Any) -> str:
    """auto, cpu, cuda or cuda:<index>."""
    if not isinstance(raw, str) or not re.fullmatch(r"auto|cpu|cuda(:\d+)?", raw):
        raise ValueError("is not auto, cpu, cuda or cuda:<index>")
    return raw


def folder(raw: Any) -> Path:
    """A folder, which need not exist."""
    if not isinstance(raw, str | Path) or not str(raw):
        raise ValueError("is not the path of a folder")
    return Path(raw)


def _as_int(raw: Any) -> int | None:
    return int(raw) if isinstance(raw, str) and re.fullmatch(r"\d+", raw) else None


SETTINGS: dict[str, Setting] = {
    "device": Setting(
        parse=device_name,
        default="auto",
        metavar="DEVICE",
        help="auto, cpu, cuda or cuda:<index>; auto takes the first GPU, else the CPU.",
    ),
    "dtype": Setting(
        parse=one_of("fp64", "fp32", "bf16", "fp16"),
        default=None,
        metavar="DTYPE",
        help="fp64, fp32, bf16 or fp16.",
        default_shown="bf16 on a GPU, fp32 on the CPU",
    ),
    "replicates": Setting(
        parse=at_least(1),
        default=None,
        metavar="N",
        help="Fresh processes per subject and case.",
        default_shown="3, or 1 with --quick",
    ),
    "quick": Setting(
        parse=yes_no,
        default=False,
        metavar="",
        help="A smoke run with few steps; its numbers are labelled as such.",
    ),
    "graph": Setting(
        parse=yes_no,
        default=True,
        metavar="",
        help="On a GPU, also replay the step from a CUDA graph.",
        default_shown="yes",
    ),
    "threads": Setting(
        parse=at_least(1),
        default=None,
        metavar="N",
        help="CPU threads of the measured process.",
        default_shown="physical cores",
    ),
    "seed": Setting(
        parse=at_least(0), default=0, metavar="N", help="Seed of weights and inputs.", default_shown="0"
    ),
    "fp32-precision": Setting(
        parse=one_of("ieee", "tf32"),
        default="ieee",
        metavar="NAME",
        help="Precision of fp32 matrix products: ieee or tf32.",
    ),
    "time-limit": Setting(
        parse=seconds,
        default=None,
        metavar="SECONDS",
        help="Longest that one measured process may take.",
        default_shown="600",
    ),
    "out": Setting(
        parse=folder, default=Path("reports"), metavar="DIR", help="Folder that holds the efforts."
    ),
    "quiet": Setting(parse=yes_no, default=False, metavar="", help="Say nothing but warnings and errors."),
    "verbose": Setting(
        parse=yes_no, default=False, metavar="", help="Say more: a line with the time per finished process."
    ),
}


def choose(
    flags: Mapping[str, Any], *, environ: Mapping[str, str] | None = None, start: Path | None = None
) -> dict[str, Chosen]:
    """Every setting's value and source. A flag that is None was not given.

    Raises:
        UsageError: a value that its setting cannot take, an unknown key in [tool.perfkit], or a
            pyproject.toml that is not TOML.
    """
    variables = os.environ if environ is None else environ
    file, table = _project_table(Path.cwd() if start is None else start)
    chosen = {}
    for name, setting in SETTINGS.items():
        flag, variable = flags.get(name), variables.get(_variable(name))
        if flag is not None:
            chosen[name] = _parsed(setting, flag, f"--{name}")
        elif variable:
            chosen[name] = _parsed(setting, variable, _variable(name))
        elif name in table:
            chosen[name] = _in_project(_parsed(setting, table[name], f"{file} [tool.perfkit] {name}"), file)
        else:
            chosen[name] = Chosen(value=setting.default, source="default")
    if chosen["quiet"].value and chosen["verbose"].value:
        raise UsageError(
            "Cannot be quiet and verbose at once.",
            why=f"quiet comes from {chosen['quiet'].source}, verbose from {chosen['verbose'].source}.",
            do="Leave one of them out.",
        )
    return chosen


def _variable(name: str) -> str:
    return f"PERFKIT_{name.upper().replace('-', '_')}"


def _parsed(setting: Setting, raw: Any, source: str) -> Chosen:
    try:
        return Chosen(value=setting.parse(raw), source=source)
    except ValueError as error:
        raise UsageError(f"{source}: cannot use {raw!r}.", why=f"It {error}.", do=setting.help) from error


def _in_project(chosen: Chosen, file: Path) -> Chosen:
    """A path in pyproject.toml starts from the folder of that file, wherever perfkit is called."""
    if isinstance(chosen.value, Path):
        return Chosen(value=file.parent / chosen.value, source=chosen.source)
    return chosen


def _project_table(start: Path) -> tuple[Path, dict[str, Any]]:
    """[tool.perfkit] of the nearest pyproject.toml that has one, from `start` upwards."""
    for directory in (start, *start.parents):
        file = directory / "pyproject.toml"
        if file.is_file() and (table := _read_table(file)) is not None:
            return file, table
    return start, {}


def _read_table(file: Path) -> dict[str, Any] | None:
    import tomllib

    try:
        document = tomllib.loads(file.read_text())
    except (ValueError, OSError) as error:
        raise UsageError(f"Cannot read {file}.", why=f"{error}.", do="Correct it.") from error
    table = document.get("tool", {}).get("perfkit")
    if table is None:
        return None
    if not isinstance(table, dict):
        raise UsageError(
            f"Cannot use {file}.", why="tool.perfkit is not a table.", do="Write [tool.perfkit]."
        )
    for key in table:
        if key not in SETTINGS:
            raise _unknown(key, file)
    return table


def _unknown(key: str, file: Path) -> UsageError:
    from perfkit.recipe.near import did_you_mean, listed

    return UsageError(
        f"{file}: there is no setting {key!r} in [tool.perfkit].",
        why=f"The settings are {listed(SETTINGS)}.",
        do=did_you_mean(key, SETTINGS, otherwise="Remove it."),
    )
