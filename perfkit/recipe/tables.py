"""The literal tables of a recipe: their types, and their values as Python objects."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from perfkit.errors import UsageError
from perfkit.recipe.declared import Cases
from perfkit.recipe.near import listed, near_matches
from perfkit.recipe.source import Outline
from perfkit.wire.spec import CaseValue

_TYPES: dict[str, tuple[Any, str]] = {
    "kind": (str, '"layer" or "kernel"'),
    "cases": (Cases, 'a table like {"4k": {"tokens": 4096}}'),
    "cpu_cases": (Cases, 'a table like {"tiny": {"tokens": 64}}'),
    "edge_cases": (Cases, 'a table like {"tail": {"rows": 3}}'),
    "blocks": (tuple[str, ...], 'a list of class names like ["Block"]'),
    "regions": (tuple[str, ...], 'a list of functions and methods like ["apply_rope", "RMSNorm.forward"]'),
    "source": (str, 'a file name or module like "rms_norm_triton.py"'),
    "tune": (dict[str, tuple[CaseValue, ...]], 'a table like {"num_warps": [4, 8]}'),
    "tolerance": (dict[str, str], 'a table like {"bf16": "reduction"}'),
}
TABLES = tuple(_TYPES)

T = TypeVar("T")


class Tables:
    """Reads the tables of one outlined file."""

    def __init__(self, outline: Outline) -> None:
        self._outline = outline

    def line(self, name: str) -> int:
        """The line on which the table starts."""
        return self._outline.assigned[name].lineno

    def refuse_misspelled(self) -> None:
        """Raises UsageError for a literal whose name is almost a table's: it would be ignored in silence."""
        for name, value in self._outline.assigned.items():
            if name in _TYPES or not isinstance(value, ast.Dict | ast.List | ast.Tuple):
                continue
            if matches := near_matches(name, TABLES, cutoff=0.85):
                raise UsageError(
                    f"{self._outline.file}:{value.lineno}: there is no table {name!r} in a recipe.",
                    why=f"The tables are {listed(TABLES)}.",
                    do=f"Did you mean {matches[0]!r}? If it is yours, choose a name that cannot be confused.",
                )

    def get(self, name: str, default: T, *, check: Callable[[T], str] | None = None) -> T:
        """The value of a table, or `default` where the file has none.

        Raises:
            UsageError: it is not a literal, or not of the table's type, or `check` answers with a complaint.
        """
        expression = self._outline.assigned.get(name)
        if expression is None:
            return default
        kind, example = _TYPES[name]
        try:
            value: T = msgspec.convert(ast.literal_eval(expression), kind)
        except ValueError as error:
            if isinstance(error, msgspec.ValidationError):
                raise self._wrong(name, _complaint(error), f"Write {example}.") from error
            raise self._wrong(
                name,
                "It is not a literal, so it cannot be read without running the file.",
                f"Write {example}, with plain numbers and strings.",
            ) from error
        except (TypeError, SyntaxError, RecursionError) as error:
            raise self._wrong(name, f"It cannot be read ({error}).", f"Write {example}.") from error
        if check is not None and (complaint := check(value)):
            raise self._wrong(name, complaint, f"Write {example}.")
        return value

    def _wrong(self, name: str, why: str, do: str) -> UsageError:
        return UsageError(f"{self._outline.file}:{self.line(name)}: cannot use `{name}`.", why=why, do=do)


def _complaint(error: msgspec.ValidationError) -> str:
    """msgspec's message in the words of a Python file, such as `Expected a list, got str.`"""
    text = (
        str(error).replace("`object`", "a table").replace("`array`", "a list").replace(" - at `$", ", at `")
    )
    return text.replace("`", "") + "."
