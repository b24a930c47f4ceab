"""Importing the files under investigation: always from their present source, by path or by dotted name."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import re
import sys
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from perfkit.errors import PerfkitError


class FreshLoader(SourceFileLoader):
    """Compiles a file's present bytes and leaves no bytecode behind.

    Python's bytecode cache compares the size and the whole-second time of a file: a variant that is
    rewritten within one second (num_warps=4, then 8) would silently run as it was before.
    """

    def get_code(self, fullname: str) -> CodeType:
        """Code compiled from the file as it is now."""
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


def fresh_spec(name: str, path: Path, *, folders: list[str] | None = None) -> ModuleSpec:
    """An import spec that loads `path` as the module `name`; `folders` makes it a package."""
    loader = FreshLoader(name, str(path))
    spec = importlib.util.spec_from_file_location(
        name, path, loader=loader, submodule_search_locations=folders
    )
    assert spec is not None
    return spec


def private_name(path: Path) -> str:
    """Name under which a target file is imported: unique to its path, and no user's module is called so."""
    stem = re.sub(r"\W", "_", path.stem)
    return f"_perfkit_target_{stem}_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]}"


def import_file(name: str, path: Path) -> ModuleType:
    """Runs a file as the module `name`, which is in sys.modules before its first line runs.

    Raises:
        PerfkitError: no such file, or a syntax error in it. What the file itself raises is passed on.
    """
    if not path.is_file():
        raise PerfkitError(
            f"Cannot load {path}.",
            why="There is no such file.",
            do="Correct the path of the target.",
        )
    spec = fresh_spec(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        assert spec.loader is not None
        spec.loader.exec_module(module)
    except SyntaxError as error:
        del sys.modules[name]
        raise PerfkitError(
            f"Cannot load {path}.",
            why=f"{error.filename}:{error.lineno} has a syntax error: {error.msg}.",
            do="Correct it.",
        ) from error
    except BaseException:
        del sys.modules[name]
        raise
    return module


def import_dotted(name: str, *, import_root: str) -> ModuleType:
    """Imports a dotted module, with `import_root` at the end of sys.path.

    Raises:
        PerfkitError: there is no such module, or an installed package hides the one under import_root.
    """
    append_to_path(import_root)
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        raise PerfkitError(
            f"Cannot import {name}.",
            why=f"There is no module {error.name!r}, neither installed nor under {import_root or '.'}.",
            do="Correct the name, or start from the folder that holds the package.",
        ) from error
    _require_not_hidden(module, import_root=import_root)
    return module


def append_to_path(folder: str) -> None:
    """Puts a folder at the end of sys.path, where it cannot hide an installed package."""
    if folder and folder not in sys.path:
        sys.path.append(folder)
        importlib.invalidate_caches()


def _require_not_hidden(module: ModuleType, *, import_root: str) -> None:
    """Refuses to measure an installed copy of a package while the user stands in its source tree."""
    stem = Path(import_root or ".").resolve() / module.__name__.replace(".", "/")
    found = module_file(module)
    expected = [p for p in (stem.with_suffix(".py"), stem / "__init__.py") if p.is_file()]
    if import_root and expected and found not in [p.resolve() for p in expected]:
        raise PerfkitError(
            f"{module.__name__} was imported from {found}.",
            why=f"That installed copy hides {expected[0]}, which stands under {import_root}.",
            do="Install the tree as editable (pip install -e), or start from another folder.",
        )


def module_file(module: ModuleType) -> Path:
    """Absolute path of the file that a module was loaded from.

    Raises:
        PerfkitError: it has none (a namespace package or a built-in).
    """
    if module.__file__ is None:
        raise PerfkitError(
            f"{module.__name__} has no file.",
            why="It is a namespace package or built in.",
            do="Name the module that defines the target.",
        )
    return Path(module.__file__).resolve()
