"""The contract of a recipe file, and reading one as text: nothing of it is imported or run."""

from perfkit.recipe.declared import CASE_FUNCTIONS, Cases, Recipe
from perfkit.recipe.reading import is_recipe, read_recipe

__all__ = ["CASE_FUNCTIONS", "Cases", "Recipe", "is_recipe", "read_recipe"]
