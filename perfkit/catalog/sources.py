"""The files that make up a target: their digest, and what a variant starts from."""

from __future__ import annotations

from pathlib import Path

from perfkit.catalog.modules import find_module
from perfkit.catalog.resolved import Resolved
from perfkit.errors import UsageError
from perfkit.wire.codec import digest, file_digest


def source_digest(file: Path, source: str) -> str:
    """SHA-256 of the declaring file, joined with that of a kernel's source file where it has one.

    A source that is a module of a library not installed here counts by the declaring file alone: the library
    may only be needed by one provider, and its version is recorded with every slot.
    """
    own = file_digest(file)
    if not source:
        return own
    try:
        return digest(f"{own} {file_digest(source_file(file, source))}".encode())
    except UsageError:
        return own


def source_file(file: Path, source: str) -> Path:
    """The file that a recipe's `source` names: one beside it, or a module.

    Raises:
        UsageError: there is no such module.
    """
    return file.parent / source if source.endswith(".py") else find_module(source, root=file.parent)


def variant_sources(resolved: Resolved, modules: tuple[str, ...] = ()) -> dict[str, Path]:
    """What a new variant starts from: path relative to the variant's folder -> the file to copy there.

    `modules` are dotted names. Without them it is the kernel's source, or the file that declares the target.

    Raises:
        UsageError: no such module, or one that is not a Python file.
    """
    if modules:
        return dict(_laid_out(name, find_module(name, root=_root(resolved))) for name in modules)
    target = resolved.target
    if target.source:
        path = source_file(resolved.file, target.source)
        return (
            {target.source: path} if target.source.endswith(".py") else dict([_laid_out(target.source, path)])
        )
    if target.module:
        return dict([_laid_out(target.module, resolved.file)])
    return {resolved.file.name: resolved.file}


def _root(resolved: Resolved) -> Path:
    return Path(resolved.target.import_root or ".")


def _laid_out(module: str, path: Path) -> tuple[str, Path]:
    if path.suffix != ".py":
        raise UsageError(
            f"A variant cannot start from {module}.",
            why=f"It is {path}, not a Python file.",
            do="Name the Python module that calls it.",
        )
    folder = module.replace(".", "/")
    return (f"{folder}/__init__.py" if path.name == "__init__.py" else f"{folder}.py"), path
