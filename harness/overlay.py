"""Variants laid over the import system before anything imports what they replace, and proof of it.

Three things can be replaced, told apart by `OverlayFile.replaces`:

- the target's own file, by its file name: the variant's file is run in its place;
- a kernel recipe's `source`, a file beside the recipe: recipes import it by its stem, as in
  `from rms_norm_triton import RMSNormFunction`, and a finder answers for that top-level name;
- any module, by its dotted path, such as `liger_kernel.ops.rms_norm`: the finder answers for it.

Baseline and variant never share a process. C extensions cannot be replaced this way.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import SOURCE_SUFFIXES, ModuleSpec
from pathlib import Path
from types import FunctionType, ModuleType

from perfkit.errors import PerfkitError
from perfkit.wire.codec import file_digest
from perfkit.wire.spec import OverlayFile, Target

from .imports import fresh_spec, private_name


class SourceFinder(MetaPathFinder):
    """First finder on sys.meta_path; knows where each replaced module is to be loaded from."""

    def __init__(self, files: dict[str, Path]) -> None:
        self._files = files
        self.originals: dict[str, Path] = {}
        """Where the other finders would have loaded each module from, filled when it is imported."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a replaced module; None for every other name."""
        file = self._files.get(fullname)
        if file is None:
            return None
        original = self._original(fullname, path, target)
        folders = None
        if original is not None and original.origin is not None:
            self.originals[fullname] = _require_source(fullname, Path(original.origin))
            folders = original.submodule_search_locations
        return fresh_spec(fullname, file, folders=None if folders is None else list(folders))

    def _original(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> ModuleSpec | None:
        for finder in sys.meta_path:
            if finder is not self and (spec := finder.find_spec(fullname, path, target)) is not None:
                return spec
        return None


@dataclass(frozen=True)
class Replacement:
    """One variant file and the module that it becomes."""

    module: str
    file: Path
    sha256: str
    original: Path | None
    """The replaced file where it is known beforehand; dotted modules are located when imported."""


@dataclass(frozen=True)
class Overlay:
    """The laid overlay of this process."""

    replacements: tuple[Replacement, ...]
    finder: SourceFinder
    target_file: Path | None
    """What to run as the target's file; None for a target that is named as a dotted module."""

    def missing(self) -> tuple[Replacement, ...]:
        """Replacements that nothing has imported so far."""
        return tuple(r for r in self.replacements if r.module not in sys.modules)


def lay(target: Target, files: Sequence[OverlayFile]) -> Overlay:
    """Puts the variant's files, and the recipe's source, in front of the import system.

    Raises:
        PerfkitError: a variant file is gone or was edited, it replaces nothing of this target, or the
            module it replaces was already imported.
    """
    replacements = tuple(_replacement(target, file) for file in files)
    target_file = Path(target.file) if target.file else None
    known = _source_beside(target)
    for replacement in replacements:
        if target_file is not None and replacement.module == private_name(target_file):
            target_file = replacement.file
        else:
            known[replacement.module] = replacement.file
    for module in known:
        _require_not_imported(module)
    finder = SourceFinder(known)
    sys.meta_path.insert(0, finder)
    return Overlay(replacements=replacements, finder=finder, target_file=target_file)


def _is_file_name(text: str) -> bool:
    return text.endswith(tuple(SOURCE_SUFFIXES))


def _source_beside(target: Target) -> dict[str, Path]:
    """The recipe's own source file, importable by its stem."""
    if not (target.file and _is_file_name(target.source)):
        return {}
    source = Path(target.file).parent / target.source
    if source.parent != Path(target.file).parent or source.stem in sys.stdlib_module_names:
        raise PerfkitError(
            f"{target.file} cannot use the source {target.source!r}.",
            why="A source is a file beside the recipe, under a name that is not Python's own.",
            do="Move or rename it.",
        )
    return {source.stem: source}


def _replacement(target: Target, file: OverlayFile) -> Replacement:
    path = Path(file.path)
    if not path.is_file() or file_digest(path) != file.sha256:
        raise PerfkitError(
            f"The variant file {path} is not what it was when the run was planned.",
            why="It is gone." if not path.is_file() else "Its content has changed since.",
            do="Run again; variants are measured by their content.",
        )
    if target.file and file.replaces == Path(target.file).name:
        original = Path(target.file)
        return Replacement(private_name(original), path, file.sha256, original)
    if target.file and file.replaces == target.source and _is_file_name(target.source):
        original = Path(target.file).parent / target.source
        return Replacement(original.stem, path, file.sha256, original)
    if all(part.isidentifier() for part in file.replaces.split(".")):
        return Replacement(file.replaces, path, file.sha256, None)
    own = [name for name in (Path(target.file).name, target.source) if name]
    raise PerfkitError(
        f"The variant replaces {file.replaces!r}, which is no part of {target.name}.",
        why=f"A variant replaces {' or '.join(own)}, or a dotted module such as package.module.",
        do="Correct the variant's file name.",
    )


def _require_not_imported(module: str) -> None:
    if (loaded := sys.modules.get(module)) is not None:
        raise PerfkitError(
            f"Cannot lay a file over {module}.",
            why=f"It was already imported from {getattr(loaded, '__file__', None)}; old bindings may remain.",
            do="Measure each variant in a process of its own.",
        )


def _require_source(module: str, origin: Path) -> Path:
    if origin.suffix not in SOURCE_SUFFIXES:
        raise PerfkitError(
            f"Cannot lay a file over {module}.",
            why=f"{origin} is a compiled extension.",
            do="Replace the Python module that calls it.",
        )
    return origin


def prove(overlay: Overlay) -> None:
    """Proves that every variant file is what runs, and that nothing holds code of a file it replaced.

    Raises:
        PerfkitError: a variant was never imported, another file was, or a stale binding remains.
    """
    for replacement in overlay.replacements:
        module = sys.modules.get(replacement.module)
        if module is None:
            raise PerfkitError(
                f"The variant {replacement.file} was never imported.",
                why=f"Nothing imported {replacement.module} while the target was loaded and called.",
                do="Check which module the target really uses.",
            )
        _require_loaded_from(module, replacement)
        original = replacement.original or overlay.finder.originals.get(replacement.module)
        if original is None:
            raise PerfkitError(
                f"The variant {replacement.file} replaces nothing.",
                why=f"Without it there would be no module {replacement.module}.",
                do="Correct the dotted path that the variant's file is named after.",
            )
        _require_no_stale_code(original, replacement)


def _require_loaded_from(module: ModuleType, replacement: Replacement) -> None:
    found = Path(module.__file__ or "")
    if found.resolve() != replacement.file.resolve() or file_digest(found) != replacement.sha256:
        raise PerfkitError(
            f"{replacement.module} did not come from the variant.",
            why=f"It was loaded from {found}, not from {replacement.file} as planned.",
            do="Check for other import hooks, and do not edit a variant while it is measured.",
        )


def _require_no_stale_code(original: Path, replacement: Replacement) -> None:
    """Searches all live functions, which also finds methods, closures and what containers hold."""
    gc.collect()
    names = {str(original), str(original.resolve())} - {str(replacement.file)}
    stale = {
        f"{function.__module__}.{function.__qualname__}"
        for function in gc.get_objects()
        if type(function) is FunctionType and function.__code__.co_filename in names
    }
    stale |= {n for n, m in list(sys.modules.items()) if getattr(m, "__file__", None) in names}
    if stale:
        raise PerfkitError(
            f"Code of {original} is still alive beside the variant {replacement.file}.",
            why=f"Stale: {', '.join(sorted(stale)[:5])}.",
            do="Find what loads the original by another name, and lay the variant over that as well.",
        )
