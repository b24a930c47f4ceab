"""Cases stated on the command line, and the choice among a target's cases."""

from __future__ import annotations

import re
from collections.abc import Mapping

from perfkit.errors import UsageError
from perfkit.recipe import Cases
from perfkit.recipe.near import did_you_mean, listed
from perfkit.wire.spec import Case, CaseValue

_EXAMPLE = "Write it like --case tokens=4096,dim=256 or --case big:tokens=4096,dim=256."
_INTEGER = re.compile(r"[+-]?\d[\d_]*")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_WORDS: dict[str, CaseValue] = {"true": True, "false": False}


def parse_cases(tables: tuple[str, ...]) -> Cases:
    """Reads the values of repeated `--case`: comma-separated `key=value`, with an optional `name:` in front.

    A case without a name is called after its values: `tokens=4096,dim=256` is `tokens4096-dim256`.

    Raises:
        UsageError: a part without `=`, a keyword given twice, or two cases of one name.
    """
    found: Cases = {}
    for table in tables:
        name, values = _parse(table)
        if name in found:
            raise UsageError(
                f"Two cases are called {name!r}.",
                why="Every --case needs a name of its own.",
                do="Put a name in front: --case other:tokens=4096.",
            )
        found[name] = values
    return found


def select(declared: Cases, names: tuple[str, ...] | None, *, whose: str) -> tuple[Case, ...]:
    """The cases of these names in the order asked for; every case when no name is given.

    `whose` completes `The cases of ...` in the message.

    Raises:
        UsageError: a name that is not declared; the message lists those that are.
    """
    chosen = tuple(declared) if names is None else tuple(dict.fromkeys(names))
    for name in chosen:
        if name not in declared:
            raise UsageError(
                f"There is no case {name!r}.",
                why=f"The cases of {whose} are {listed(declared)}.",
                do=did_you_mean(name, declared, otherwise="Choose among these, or state one with --case."),
            )
    if not chosen:
        raise UsageError(
            "No case is selected.",
            why=f"The cases of {whose} are {listed(declared)}.",
            do="Name at least one with --cases, or leave --cases out.",
        )
    return tuple(Case(name=name, values=declared[name]) for name in chosen)


def _parse(table: str) -> tuple[str, dict[str, CaseValue]]:
    head, equals, _ = table.partition("=")
    name, colon, _ = head.rpartition(":")
    body = table[len(name) + len(colon) :]
    values: dict[str, CaseValue] = {}
    for part in body.split(","):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not key or not value:
            raise UsageError(f"Cannot read --case {table}.", why=f"{part!r} is not key=value.", do=_EXAMPLE)
        if key in values:
            raise UsageError(f"Cannot read --case {table}.", why=f"{key} is given twice.", do=_EXAMPLE)
        values[key] = _value(value)
    return name.strip() or _name_after(values), values


def _value(text: str) -> CaseValue:
    if _INTEGER.fullmatch(text):
        return int(text)
    if _NUMBER.fullmatch(text):
        return float(text)
    return _WORDS.get(text.lower(), text)


def _name_after(values: Mapping[str, CaseValue]) -> str:
    return re.sub(r"[^A-Za-z0-9_.+-]", "_", "-".join(f"{key}{value}" for key, value in values.items()))
