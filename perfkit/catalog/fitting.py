"""Options against the target: what makes no sense is refused, what was left open is filled in."""

from __future__ import annotations

from perfkit.catalog.options import TargetOptions
from perfkit.catalog.resolved import ALWAYS_PROVIDERS
from perfkit.errors import UsageError
from perfkit.recipe import Recipe
from perfkit.recipe.near import did_you_mean, listed
from perfkit.wire.spec import TargetKind, TreeName

_ONLY_FOR: dict[str, tuple[TargetKind, str]] = {
    "blocks": ("layer", "--blocks"),
    "regions": ("layer", "--regions"),
    "trees": ("layer", "--trees"),
    "checkpoint": ("layer", "--ac"),
    "providers": ("kernel", "--providers"),
}


def refuse_senseless(options: TargetOptions, *, kind: TargetKind, name: str) -> None:
    """Raises UsageError for an option that means nothing for a target of this kind."""
    for field, (only_for, flag) in _ONLY_FOR.items():
        if getattr(options, field) is not None and kind != only_for:
            raise UsageError(
                f"{flag} makes no sense for {name}.",
                why=f"It is about a {only_for}, and {name} is a {kind}.",
                do=f"Leave {flag} out.",
            )


def fit_trees(
    options: TargetOptions, *, blocks: tuple[str, ...], regions: tuple[str, ...]
) -> tuple[TreeName, ...]:
    """The trees to run: those asked for, or eager and each tree that the target's tables allow.

    Raises:
        UsageError: a tree, or checkpointing, that needs a table which is empty.
    """
    tables: dict[TreeName, tuple[str, ...]] = {"regions": regions, "block": blocks}
    if options.checkpoint not in (None, "none") and not blocks:
        raise _needs("--ac", "blocks")
    if options.trees is None:
        return ("eager", *(tree for tree, table in tables.items() if table))
    chosen = tuple(dict.fromkeys(options.trees))
    for tree, table in tables.items():
        if tree in chosen and not table:
            raise _needs(f"--trees {tree}", "blocks" if tree == "block" else "regions")
    return chosen


def fit_providers(options: TargetOptions, recipe: Recipe) -> tuple[str, ...]:
    """The providers to run: those asked for, or all.

    Raises:
        UsageError: a provider that the recipe does not have.
    """
    known = (*ALWAYS_PROVIDERS, *recipe.providers)
    if options.providers is None:
        return known
    for name in options.providers:
        if name not in known:
            raise UsageError(
                f"{recipe.name} has no provider {name!r}.",
                why=f"Its providers are {listed(known)}.",
                do=did_you_mean(name, known, otherwise=f"Choose among these, or define provider_{name}()."),
            )
    return tuple(dict.fromkeys(options.providers))


def _needs(option: str, table: str) -> UsageError:
    what = "classes" if table == "blocks" else "functions and methods"
    return UsageError(
        f"{option} needs to know the {table} of this target.",
        why=f"Neither the target nor the command line names any {what} as {table}.",
        do=f"Name them with --{table}, or in the recipe's table `{table}`.",
    )
