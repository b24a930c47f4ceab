"""A Python file as text: what it defines at its top level, without importing it."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from perfkit.errors import UsageError
from perfkit.recipe.near import did_you_mean


@dataclass(frozen=True, slots=True)
class Outline:
    """The top level of one file. Statements under if, try and with count as top level."""

    file: Path
    docstring: str
    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)
    assigned: dict[str, ast.expr] = field(default_factory=dict)
    imported: set[str] = field(default_factory=set)
    unknowable: bool = False
    """`from x import *` or a module-level `__getattr__` may define any name."""

    def defines(self, name: str) -> bool:
        """Whether the module has this attribute, as far as its text tells."""
        return self.unknowable or name in self.names

    @property
    def names(self) -> set[str]:
        """Every name bound at the top level."""
        return {*self.functions, *self.classes, *self.assigned, *self.imported}


def outline(path: Path) -> Outline:
    """Reads and parses one file.

    Raises:
        UsageError: there is no such file, it cannot be read, or it is not valid Python.
    """
    tree = _parse(path, _read(path))
    found = Outline(path, ast.get_docstring(tree) or "")
    unknowable = _collect(tree.body, found) or "__getattr__" in found.functions
    return Outline(
        path, found.docstring, found.functions, found.classes, found.assigned, found.imported, unknowable
    )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise UsageError(
            f"There is no file {path}.",
            why=f"Looked for it in {path.resolve().parent}.",
            do=did_you_mean(
                path.name,
                (near.name for near in path.resolve().parent.glob("*.py")),
                otherwise="Check the path, or run `perfkit recipes` for the targets that ship with perfkit.",
            ),
        ) from None
    except OSError as error:
        raise UsageError(
            f"Cannot read {path}.", why=f"{error.strerror}.", do="Give the path of a readable Python file."
        ) from error


def _parse(path: Path, text: bytes) -> ast.Module:
    try:
        with warnings.catch_warnings():
            # An invalid escape in the user's file is their business, and would end our tests.
            warnings.simplefilter("ignore")
            return ast.parse(text, filename=str(path))
    except SyntaxError as error:
        raise UsageError(
            f"{path}:{error.lineno or 1}: not valid Python.", why=f"{_sentence(error.msg)}", do="Correct it."
        ) from error
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"{path} is not valid Python.", why=_sentence(str(error)), do="Give the path of a Python file."
        ) from error


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".") + "."


def _collect(body: Iterable[ast.stmt], found: Outline) -> bool:
    """Fills `found`, and says whether a star import was met."""
    star = False
    for statement in body:
        match statement:
            case ast.FunctionDef(name=name):
                found.functions[name] = statement
            case ast.ClassDef(name=name):
                found.classes[name] = statement
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                star |= any(alias.name == "*" for alias in aliases)
                found.imported.update(alias.asname or alias.name.partition(".")[0] for alias in aliases)
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    _assign(target, value, found)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                _assign(target, value, found)
            case ast.If() | ast.Try() | ast.With():
                star |= _collect(_inner(statement), found)
    return star


def _assign(target: ast.expr, value: ast.expr, found: Outline) -> None:
    if isinstance(target, ast.Name):
        found.assigned[target.id] = value
    elif isinstance(target, ast.Tuple | ast.List):
        for item in target.elts:
            _assign(item, value, found)


def _inner(statement: ast.If | ast.Try | ast.With) -> Iterable[ast.stmt]:
    yield from statement.body
    if isinstance(statement, ast.If | ast.Try):
        yield from statement.orelse
    if isinstance(statement, ast.Try):
        for handler in statement.handlers:
            yield from handler.body
        yield from statement.finalbody
