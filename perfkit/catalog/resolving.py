"""The one resolver of all verbs: TARGET or EFFORT to what is meant."""

from __future__ import annotations

from pathlib import Path

from perfkit.catalog.case_tables import parse_cases, select
from perfkit.catalog.efforts import ReadEffort, effort_folder, with_remembered
from perfkit.catalog.fitting import fit_providers, fit_trees, refuse_senseless
from perfkit.catalog.listing import recipe_files
from perfkit.catalog.naming import Code, find_code
from perfkit.catalog.options import TargetOptions
from perfkit.catalog.resolved import Resolved
from perfkit.catalog.sources import source_digest
from perfkit.errors import UsageError
from perfkit.recipe import CASE_FUNCTIONS, Cases, Recipe
from perfkit.recipe.checks import check_case, check_names
from perfkit.recipe.near import listed
from perfkit.recipe.source import outline
from perfkit.wire.spec import Case, Target, TargetKind


def resolve(
    text: str,
    *,
    device: str,
    options: TargetOptions | None = None,
    out: Path = Path("reports"),
    read_effort: ReadEffort | None = None,
) -> Resolved:
    """What `text` means: a recipe, a callable of the user's own, or an effort (looked for in this order).

    `device` (`cpu` or `cuda:<index>`) decides which table of cases applies. With `read_effort`, text that
    names the folder of an effort, or an effort below `out`, means the target of that effort, under the
    options that it was started with wherever `options` says nothing.

    Raises:
        UsageError: an unknown target (with near matches), a broken recipe, a case or option that does not
            fit the target.
        PerfkitError: from `read_effort`, when the effort cannot be read.
    """
    given = options or TargetOptions()
    folder = None if read_effort is None or _names_code(text) else effort_folder(text, out)
    if folder is not None and read_effort is not None:
        remembered = read_effort(folder)
        given = with_remembered(given, remembered.options)
        text = remembered.text
    code = find_code(text, out=out)
    if code.recipe is not None:
        return _resolve_recipe(code, code.recipe, given, device=device, effort=folder)
    return _resolve_own(code, given, effort=folder)


def _names_code(text: str) -> bool:
    """Whether the form alone says that this is code: a recipe's name is tried before an effort's."""
    return text.endswith(".py") or ":" in text or any(path.stem == text for path in recipe_files())


def _resolve_recipe(
    code: Code, recipe: Recipe, options: TargetOptions, *, device: str, effort: Path | None
) -> Resolved:
    refuse_senseless(options, kind=recipe.kind, name=recipe.name)
    blocks = recipe.blocks if options.blocks is None else options.blocks
    regions = recipe.regions if options.regions is None else options.regions
    _check_tables(code.file, options)
    declared, whose, notes = _declared_cases(recipe, options, device=device)
    layer = recipe.kind == "layer"
    return Resolved(
        text=code.text,
        options=options,
        target=_target(code, kind=recipe.kind, blocks=blocks, regions=regions, source=recipe.source),
        file=code.file,
        recipe=recipe,
        cases=select(declared, options.cases, whose=whose),
        edge_cases=tuple(Case(name=name, values=values) for name, values in recipe.edge_cases.items()),
        trees=fit_trees(options, blocks=blocks, regions=regions) if layer else (),
        checkpoint=options.checkpoint or "none",
        providers=() if layer else fit_providers(options, recipe),
        effort=effort,
        notes=notes,
    )


def _resolve_own(code: Code, options: TargetOptions, *, effort: Path | None) -> Resolved:
    refuse_senseless(options, kind="layer", name=code.name)
    blocks, regions = options.blocks or (), options.regions or ()
    _check_tables(code.file, options)
    return Resolved(
        text=code.text,
        options=options,
        target=_target(code, kind="layer", blocks=blocks, regions=regions, source=""),
        file=code.file,
        recipe=None,
        cases=select(_own_cases(code, options), options.cases, whose=code.name),
        edge_cases=(),
        trees=fit_trees(options, blocks=blocks, regions=regions),
        checkpoint=options.checkpoint or "none",
        providers=(),
        effort=effort,
        notes=(),
    )


def _target(
    code: Code, *, kind: TargetKind, blocks: tuple[str, ...], regions: tuple[str, ...], source: str
) -> Target:
    return Target(
        name=code.name,
        kind=kind,
        file="" if code.module else str(code.file),
        module=code.module,
        attribute=code.attribute,
        import_root=str(code.import_root),
        source_sha256=source_digest(code.file, source),
        blocks=blocks,
        regions=regions,
        source=source,
    )


def _check_tables(file: Path, options: TargetOptions) -> None:
    if file.suffix != ".py" or not (options.blocks or options.regions):
        return
    outlined = outline(file)
    check_names(options.blocks or (), outlined, where="--blocks")
    check_names(options.regions or (), outlined, where="--regions")


def _declared_cases(
    recipe: Recipe, options: TargetOptions, *, device: str
) -> tuple[Cases, str, tuple[str, ...]]:
    """The cases to choose among, whose they are (for messages), and what was assumed."""
    if options.case_tables:
        stated = parse_cases(options.case_tables)
        complete = set(recipe.signatures) == set(CASE_FUNCTIONS[recipe.kind])
        for name, values in stated.items():
            check_case(name, values, where="--case", signatures=recipe.signatures, complete=complete)
        return stated, "--case", ()
    on_cpu = device == "cpu"
    whose = f"{recipe.name} on {'the CPU' if on_cpu else 'a GPU'}"
    wanted, other = (recipe.cpu_cases, recipe.cases) if on_cpu else (recipe.cases, recipe.cpu_cases)
    if wanted:
        return wanted, whose, ()
    made_for, missing = ("a GPU", "cpu_cases") if on_cpu else ("the CPU", "cases")
    note = f"{recipe.name} declares no {missing}, so its cases made for {made_for} are used."
    return other, whose, (note,)


def _own_cases(code: Code, options: TargetOptions) -> Cases:
    signature = code.signature
    if not options.case_tables:
        if signature is not None and (lacking := signature.lacks(set())):
            example = ",".join(f"{name}=..." for name in lacking)
            raise UsageError(
                f"{code.text} needs a case.",
                why=f"{code.attribute}() requires {listed(lacking)}.",
                do=f"State at least one shape: --case {example}",
            )
        return {"default": {}}
    stated = parse_cases(options.case_tables)
    signatures = {} if signature is None else {code.attribute: signature}
    for name, values in stated.items():
        check_case(name, values, where="--case", signatures=signatures, complete=signature is not None)
    return stated
