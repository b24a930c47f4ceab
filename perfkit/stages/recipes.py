"""recipes: what ships with perfkit, read as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from perfkit.catalog import list_recipes
from perfkit.recipe import Recipe
from perfkit.recipe.near import listed
from perfkit.stages.answer import StageReport, Table
from perfkit.stages.request import StageRequest


def run(request: StageRequest, *, say: Callable[[str], None]) -> StageReport:
    """Lists the recipes with their cases.

    Raises:
        UsageError: a recipe breaks the contract of recipes.
    """
    recipes = list_recipes()
    table = Table(
        title="",
        columns=("recipe", "kind", "GPU cases", "CPU cases", "summary"),
        rows=tuple((r.name, r.kind, listed(r.cases), listed(r.cpu_cases), r.summary) for r in recipes),
        notes=("", "Run one with `perfkit investigate RECIPE`. Code of your own is named file.py:callable."),
    )
    return StageReport(tables=(table,), document={"recipes": [_document(recipe) for recipe in recipes]})


def _document(recipe: Recipe) -> dict[str, Any]:
    return {
        "name": recipe.name,
        "kind": recipe.kind,
        "summary": recipe.summary,
        "file": str(recipe.file),
        "cases": recipe.cases,
        "cpu_cases": recipe.cpu_cases,
        "edge_cases": recipe.edge_cases,
        "blocks": recipe.blocks,
        "regions": recipe.regions,
        "providers": recipe.providers,
    }
