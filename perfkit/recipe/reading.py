"""From a file to a Recipe."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from perfkit.errors import UsageError
from perfkit.recipe.checks import check_case, check_names
from perfkit.recipe.declared import CASE_FUNCTIONS, REQUIRED_FUNCTIONS, Cases, Recipe
from perfkit.recipe.near import did_you_mean, listed
from perfkit.recipe.signatures import Signature, signature_of
from perfkit.recipe.source import Outline, outline
from perfkit.recipe.tables import TABLES, Tables
from perfkit.wire.spec import CaseValue, DtypeName, TargetKind

_PROVIDER = "provider_"
_RESERVED_PROVIDERS = ("target", "eager", "compile")
_DTYPES = get_args(DtypeName)


def is_recipe(path: Path) -> bool:
    """Whether the file declares a `kind`: helper files beside recipes do not.

    Raises:
        UsageError: the file is missing or not valid Python.
    """
    return "kind" in outline(path).assigned


def read_recipe(path: Path) -> Recipe:
    """Reads one recipe file without running it.

    Raises:
        UsageError: no such file, not valid Python, a table that is no literal or of the wrong type, a missing
            kind, function or case, or a case that the functions cannot be called with. The message opens
            with `file:line`.
    """
    outlined = outline(path)
    tables = Tables(outlined)
    kind = _kind(outlined, tables)
    tables.refuse_misspelled()
    _require_functions(outlined, kind)
    recipe = Recipe(
        name=path.stem,
        file=path.resolve(),
        summary=outlined.docstring.partition("\n")[0].strip(),
        kind=kind,
        cases=tables.get("cases", _no_cases()),
        cpu_cases=tables.get("cpu_cases", _no_cases()),
        edge_cases=tables.get("edge_cases", _no_cases()),
        blocks=tables.get("blocks", _no_names()),
        regions=tables.get("regions", _no_names()),
        source=tables.get("source", ""),
        tune=tables.get("tune", _no_choices(), check=_bad_tune),
        tolerance=tables.get("tolerance", _no_classes(), check=_bad_tolerance),
        functions=frozenset(outlined.functions),
        providers=tuple(
            name.removeprefix(_PROVIDER) for name in outlined.functions if name.startswith(_PROVIDER)
        ),
        signatures=_signatures(outlined, kind),
        lines=_lines(outlined),
    )
    _check_whole(recipe, outlined)
    return recipe


def _no_cases() -> Cases:
    return {}


def _no_names() -> tuple[str, ...]:
    return ()


def _no_choices() -> dict[str, tuple[CaseValue, ...]]:
    return {}


def _no_classes() -> dict[str, str]:
    return {}


def _kind(outlined: Outline, tables: Tables) -> TargetKind:
    kinds = tuple(REQUIRED_FUNCTIONS)
    if "kind" not in outlined.assigned:
        raise UsageError(
            f"{outlined.file}:1: this file is not a recipe.",
            why='It has no line `kind = "layer"` or `kind = "kernel"`.',
            do="Add it; or, for code of your own, name a callable: path/to/file.py:callable.",
        )
    kind = tables.get("kind", "")
    if kind not in kinds:
        raise UsageError(
            f"{outlined.file}:{tables.line('kind')}: there is no kind {kind!r}.",
            why=f"The kinds are {listed(kinds)}.",
            do=did_you_mean(kind, kinds, otherwise="Choose one of them."),
        )
    return kind


def _require_functions(outlined: Outline, kind: TargetKind) -> None:
    required = REQUIRED_FUNCTIONS[kind]
    missing = tuple(name for name in required if not outlined.defines(name))
    if missing:
        raise UsageError(
            f"{outlined.file}:1: a {kind} recipe needs the function {listed(missing)}.",
            why=f"It must have {listed(required)}, and defines {listed(sorted(outlined.functions))}.",
            do=did_you_mean(missing[0], outlined.functions, otherwise=f"Add `def {missing[0]}(...)`."),
        )


def _signatures(outlined: Outline, kind: TargetKind) -> dict[str, Signature]:
    return {
        name: signature_of(outlined.functions[name])
        for name in CASE_FUNCTIONS[kind]
        if name in outlined.functions
    }


def _lines(outlined: Outline) -> dict[str, int]:
    tables = {name: value.lineno for name, value in outlined.assigned.items() if name in TABLES}
    return tables | {name: function.lineno for name, function in outlined.functions.items()}


def _bad_tune(tune: dict[str, tuple[CaseValue, ...]]) -> str:
    empty = [name for name, choices in tune.items() if not choices]
    return f"{listed(empty)} has no choices." if empty else ""


def _bad_tolerance(tolerance: dict[str, str]) -> str:
    unknown = [name for name in tolerance if name not in _DTYPES]
    return f"There is no dtype {unknown[0]!r}; they are {listed(_DTYPES)}." if unknown else ""


def _check_whole(recipe: Recipe, outlined: Outline) -> None:
    if not recipe.cases and not recipe.cpu_cases:
        raise UsageError(
            f"{recipe.at('cases')}: the recipe has no cases.",
            why="A case is one shape to measure, and neither `cases` nor `cpu_cases` declares any.",
            do='Add a table like cases = {"4k": {"tokens": 4096}}.',
        )
    complete = set(recipe.signatures) == set(CASE_FUNCTIONS[recipe.kind])
    for table in ("cases", "cpu_cases", "edge_cases"):
        declared: Cases = getattr(recipe, table)
        for name, values in declared.items():
            check_case(name, values, where=recipe.at(table), signatures=recipe.signatures, complete=complete)
    for name in set(_RESERVED_PROVIDERS) & set(recipe.providers):
        raise UsageError(
            f"{recipe.at(_PROVIDER + name)}: a provider cannot be called {name!r}.",
            why="`target`, `eager` (the reference) and `compile` (the reference compiled) are always there.",
            do="Choose another suffix.",
        )
    check_names(recipe.blocks, outlined, where=recipe.at("blocks"))
    check_names(recipe.regions, outlined, where=recipe.at("regions"))
    if recipe.source.endswith(".py") and not (recipe.file.parent / recipe.source).is_file():
        raise UsageError(
            f"{recipe.at('source')}: there is no file {recipe.source} beside the recipe.",
            why=f"Looked for it in {recipe.file.parent}.",
            do="Correct the name, or name a module: package.module.",
        )
