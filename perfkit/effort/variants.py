"""Variants of an effort: `variants/v1/` holds the files to lay over the target, and a notebook."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

from perfkit.errors import PerfkitError, UsageError
from perfkit.files import write_atomic
from perfkit.wire.codec import file_digest
from perfkit.wire.spec import OverlayFile

_NAME = re.compile(r"v[1-9][0-9]*")
NOTES = "notes.md"

_NOTEBOOK = """# {name}: (say in a few words what changes)

Parent: v0. Started {today}.

## Hypothesis

{hypothesis}

## Expected

{expected}

## Changes

(Each change with its reason.)
"""

_HINTS = (
    "(Which piece of which stage's table this attacks, and why the change should help.)",
    "(The predicted number, written before the first run: which time falls from what to what.)",
)


def list_variants(folder: Path) -> tuple[str, ...]:
    """Names of the variants in `folder` (the effort's variants/), in numeric order."""
    if not folder.is_dir():
        return ()
    names = [entry.name for entry in folder.iterdir() if entry.is_dir() and _NAME.fullmatch(entry.name)]
    return tuple(sorted(names, key=lambda name: int(name[1:])))


def overlay_of(folder: Path, name: str) -> tuple[OverlayFile, ...]:
    """The files of one variant: every file beside the notebook, by path relative to the variant.

    `rms_norm_triton.py` replaces the recipe's source of that name; `package/module.py` replaces the module
    `package.module`.

    Raises:
        UsageError: no such variant, or it holds no file to lay over anything.
    """
    variant = folder / name
    if not variant.is_dir():
        known = ", ".join(list_variants(folder)) or "none yet"
        raise UsageError(
            f"There is no variant {name}.",
            why=f"Variants of this effort: {known}.",
            do="Make one with `perfkit new variant EFFORT`.",
        )
    files = sorted(path for path in variant.rglob("*.py") if "__pycache__" not in path.parts)
    if not files:
        raise UsageError(
            f"Variant {name} changes nothing.",
            why=f"{variant} holds no Python file.",
            do="Copy the file to change into it, or run `perfkit new variant EFFORT` again.",
        )
    return tuple(
        OverlayFile(
            replaces=_replaced(path.relative_to(variant)), path=str(path.resolve()), sha256=file_digest(path)
        )
        for path in files
    )


def new_variant(folder: Path, *, sources: dict[str, bytes], hypothesis: str, today: date) -> Path:
    """Makes the next numbered variant with copies of `sources` (relative path -> content) and a notebook.

    Numbers are never reused: the next one follows the highest that exists.

    Raises:
        OSError: the folder cannot be written.
    """
    taken = list_variants(folder)
    name = f"v{int(taken[-1][1:]) + 1}" if taken else "v1"
    variant = folder / name
    variant.mkdir(parents=True)
    for relative, content in sources.items():
        path = variant / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, content)
    notebook = _NOTEBOOK.format(
        name=name, today=today.isoformat(), hypothesis=hypothesis or _HINTS[0], expected=_HINTS[1]
    )
    write_atomic(variant / NOTES, notebook.encode())
    return variant


def check_name(name: str) -> None:
    """Raises UsageError unless `name` looks like v1, v2, ..."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is not the name of a variant.",
            why="Variants are numbered: v1, v2, ... (v0 is the baseline).",
            do="Run `perfkit new variant EFFORT` to make the next one.",
        )


def notebook_section(folder: Path, name: str, heading: str) -> str:
    """The text below a heading of a variant's notebook; "" while it still holds the printed hint."""
    notes = folder / name / NOTES
    if not notes.is_file():
        return ""
    pattern = rf"^## {re.escape(heading)}$(.*?)(?=^## |\Z)"
    section = re.search(pattern, notes.read_text(errors="replace"), re.M | re.S)
    text = section.group(1).strip() if section else ""
    return "" if any(text == hint for hint in _HINTS) else text


def has_prediction(folder: Path, name: str) -> bool:
    """Whether the notebook's `Expected` section was filled in with a number before the run."""
    return bool(re.search(r"\d", notebook_section(folder, name, "Expected")))


def _replaced(relative: Path) -> str:
    if len(relative.parts) == 1:
        return relative.name
    dotted = relative.with_suffix("")
    parts = dotted.parts[:-1] if dotted.name == "__init__" else dotted.parts
    if not parts:
        raise PerfkitError(
            f"Cannot tell which module {relative} replaces.",
            why="An __init__.py needs the folder of its package around it.",
            do="Lay it out as package/__init__.py below the variant.",
        )
    return ".".join(parts)
