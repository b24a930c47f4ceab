"""The forms in which a target can be typed, each turned into the code it names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from perfkit.catalog.efforts import effort_names
from perfkit.catalog.listing import recipe_files
from perfkit.catalog.modules import find_module, is_dotted
from perfkit.errors import UsageError
from perfkit.recipe import Recipe, read_recipe
from perfkit.recipe.near import did_you_mean, listed
from perfkit.recipe.signatures import Signature, signature_of
from perfkit.recipe.source import Outline, outline

_FORMS = "a recipe's name, path/to/recipe.py, path/to/file.py:callable or package.module:callable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """Where a target's code lies: a recipe, or one callable of the user's."""

    text: str
    name: str
    file: Path
    module: str = ""
    attribute: str = ""
    import_root: Path
    recipe: Recipe | None = None
    signature: Signature | None = None
    """Of the callable, when its `def` stands in the file itself."""


def find_code(text: str, *, out: Path) -> Code:
    """The code that `text` names. Efforts are not looked for, only suggested.

    Raises:
        UsageError: nothing of that name, a file that is not there or not valid, no such callable.
    """
    left, colon, attribute = text.rpartition(":")
    if colon and left.endswith(".py"):
        return _own(text, Path(left), attribute, root=Path(left).resolve().parent)
    if colon and is_dotted(left):
        return _own(text, find_module(left, root=Path.cwd()), attribute, root=Path.cwd(), module=left)
    if text.endswith(".py"):
        return _recipe(_shown(Path(text)), Path(text))
    for path in recipe_files():
        if path.stem == text:
            return _recipe(text, path)
    raise _unknown(text, out)


def _recipe(text: str, path: Path) -> Code:
    recipe = read_recipe(path)
    return Code(text=text, name=recipe.name, file=recipe.file, import_root=recipe.file.parent, recipe=recipe)


def _own(text: str, file: Path, attribute: str, *, root: Path, module: str = "") -> Code:
    first = attribute.partition(".")[0]
    if not is_dotted(attribute):
        raise UsageError(
            f"{text} names no callable.",
            why=f"{attribute!r} after the colon is not a name.",
            do="Name a function that returns (module, inputs): path/to/file.py:callable.",
        )
    signature = None
    if file.suffix == ".py":
        outlined = outline(file)
        _require_defined(outlined, first, shown=module or str(file))
        if attribute in outlined.functions:
            signature = signature_of(outlined.functions[attribute])
    stem = (module or file.stem).rpartition(".")[2]
    return Code(
        text=f"{module or _shown(file)}:{attribute}",
        name=re.sub(r"[^A-Za-z0-9_-]", "-", f"{stem}-{attribute}"),
        file=file.resolve(),
        module=module,
        attribute=attribute,
        import_root=root,
        signature=signature,
    )


def _require_defined(outlined: Outline, name: str, *, shown: str) -> None:
    if outlined.defines(name):
        return
    callables = [*outlined.functions, *outlined.classes]
    raise UsageError(
        f"{shown} has no {name!r}.",
        why=f"It defines {listed(callables)}.",
        do=did_you_mean(name, callables, otherwise="Name one of these, or add the function."),
    )


def _shown(path: Path) -> str:
    """The path as seen from here, so that an effort that moves with its project still names it."""
    absolute = path.resolve()
    here = Path.cwd().resolve()
    return absolute.relative_to(here).as_posix() if absolute.is_relative_to(here) else str(absolute)


def _unknown(text: str, out: Path) -> UsageError:
    recipes = [path.stem for path in recipe_files()]
    efforts = effort_names(out)
    if Path(text).is_dir():
        why = f"The folder {text} holds no effort.json, so it is not an effort."
    elif "/" in text or ":" in text:
        why = f"A target is {_FORMS}."
    else:
        why = f"The recipes are {listed(recipes)}; the efforts below {out} are {listed(efforts)}."
    otherwise = f"Give {_FORMS}; `perfkit recipes` lists the recipes."
    return UsageError(
        f"There is no target {text!r}.",
        why=why,
        do=did_you_mean(text, [*recipes, *efforts], otherwise=otherwise),
    )
