"""What must hold between the parts of a recipe, and of any case that a user states."""

from __future__ import annotations

import ast
import keyword
import math
import re
from collections.abc import Iterable, Mapping

from perfkit.errors import UsageError
from perfkit.recipe.near import did_you_mean, listed, near_matches
from perfkit.recipe.signatures import GIVEN_BY_US, Signature
from perfkit.recipe.source import Outline
from perfkit.wire.spec import CaseValue

_CASE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")


def check_case(
    name: str,
    values: Mapping[str, CaseValue],
    *,
    where: str,
    signatures: Mapping[str, Signature],
    complete: bool,
) -> None:
    """Refuses a case that no function could be called with.

    `where` opens the message (`recipe.py:12` or `--case`). `signatures` are those of the functions that share
    the case's keywords; `complete` says that none of these functions is unknown, so that a keyword that no
    signature names is a mistake.

    Raises:
        UsageError: a bad name or value, a keyword that nobody takes, or a required one that is missing.
    """
    if complaint := _bad_name(name) or next(filter(None, map(_bad_value, values, values.values())), ""):
        raise UsageError(f"{where}: cannot use case {name!r}.", why=complaint, do="Correct the case.")
    given = set(values)
    for function, signature in signatures.items():
        if lacking := signature.lacks(given):
            raise UsageError(
                f"{where}: case {name!r} is incomplete.",
                why=f"{function}() requires {listed(lacking)}, and the case gives {listed(values)}.",
                do=f"Add {listed(lacking)} to the case, or give the parameter a default.",
            )
    if not complete or any(signature.takes_any for signature in signatures.values()):
        return
    named = {parameter for signature in signatures.values() for parameter in signature.names}
    for key in values:
        if key not in named:
            known = sorted(named - GIVEN_BY_US)
            raise UsageError(
                f"{where}: case {name!r} gives {key!r}, which nothing takes.",
                why=f"{' and '.join(f'{f}()' for f in signatures)} take {listed(known)}.",
                do=did_you_mean(key, known, otherwise="Remove it from the case."),
            )


def check_names(entries: Iterable[str], outlined: Outline, *, where: str) -> None:
    """Refuses an entry of `blocks` or `regions` that is almost a name of this file (`where` comes first).

    A name may belong to a library that the recipe never names, so only a near miss is certain enough.
    """
    known = {**outlined.classes, **outlined.functions}
    for entry in entries:
        head, _, method = entry.partition(".")
        if head not in known:
            candidates = near_matches(head, known, cutoff=0.8)
            certain = candidates and not outlined.defines(head)
        else:
            definition = known[head]
            methods = _methods(definition) if isinstance(definition, ast.ClassDef) else ()
            candidates = tuple(f"{head}.{near}" for near in near_matches(method, methods, cutoff=0.8))
            certain = bool(method and method not in methods and candidates)
        if certain:
            raise UsageError(
                f"{where}: {outlined.file.name} has no {entry!r}.",
                why=f"It defines {listed(known)}.",
                do=f"Did you mean {candidates[0]}? If it comes from a library, import it by name.",
            )


def _methods(definition: ast.ClassDef) -> tuple[str, ...]:
    return tuple(item.name for item in definition.body if isinstance(item, ast.FunctionDef))


def _bad_name(name: str) -> str:
    if _CASE_NAME.fullmatch(name):
        return ""
    return "The name of a case is made of letters, digits and _ . + - (it becomes part of file names)."


def _bad_value(key: str, value: CaseValue) -> str:
    if not key.isidentifier() or keyword.iskeyword(key):
        return f"{key!r} cannot be the keyword of a function."
    if key in GIVEN_BY_US:
        return f"{key!r} is given by perfkit, from --device and --dtype."
    if isinstance(value, int) and not isinstance(value, bool) and value <= 0:
        return f"{key}={value}: a whole number in a case is a size, so it must be at least 1."
    if isinstance(value, float) and not math.isfinite(value):
        return f"{key}={value} is not a finite number."
    return ""
