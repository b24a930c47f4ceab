"""recipes: the targets that ship with perfkit."""

from __future__ import annotations

from perfkit.catalog import list_recipes
from perfkit.recipe import Recipe
from perfkit.stages.answer import StageReport, Table
from perfkit.stages.request import StageRequest
from perfkit.stages.running import Say


def run(request: StageRequest, *, say: Say) -> StageReport:
    """Lists them as their files declare them; nothing is imported.

    Raises:
        UsageError: a recipe breaks the contract of recipes.
    """
    recipes = list_recipes()
    columns = ("recipe", "kind", "cases", "cases on a CPU", "summary")
    rows = tuple(
        (
            recipe.name,
            recipe.kind,
            ", ".join(recipe.cases),
            ", ".join(recipe.cpu_cases) or "-",
            recipe.summary,
        )
        for recipe in recipes
    )
    return StageReport(
        tables=(Table(title="Recipes", columns=columns, rows=rows),),
        document={"recipes": [_document(recipe) for recipe in recipes]},
    )


def _document(recipe: Recipe) -> dict[str, object]:
    return {
        "name": recipe.name,
        "kind": recipe.kind,
        "summary": recipe.summary,
        "cases": recipe.cases,
        "cpu_cases": recipe.cpu_cases,
        "edge_cases": recipe.edge_cases,
        "blocks": list(recipe.blocks),
        "regions": list(recipe.regions),
        "providers": list(recipe.providers),
    }
