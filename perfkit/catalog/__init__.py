"""From what the user typed to what is meant: a recipe, code of their own, or an effort."""

from perfkit.catalog.efforts import ReadEffort, Remembered
from perfkit.catalog.listing import list_recipes
from perfkit.catalog.options import TargetOptions
from perfkit.catalog.resolved import Resolved
from perfkit.catalog.resolving import resolve
from perfkit.catalog.sources import variant_sources

__all__ = [
    "ReadEffort",
    "Remembered",
    "Resolved",
    "TargetOptions",
    "list_recipes",
    "resolve",
    "variant_sources",
]
