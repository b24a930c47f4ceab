"""Efforts as far as naming one goes; what is inside them belongs to perfkit.effort."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from perfkit.catalog.options import TargetOptions

MARK = "effort.json"
"""The file that makes a folder an effort."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What an effort was started with."""

    text: str
    """The target as `Resolved.text` gave it."""
    options: TargetOptions


ReadEffort = Callable[[Path], Remembered]
"""Reads the folder of an effort; the caller brings it, for catalog and effort know nothing of each other."""


def is_effort(folder: Path) -> bool:
    """Whether the folder holds an effort."""
    return (folder / MARK).is_file()


def effort_folder(text: str, out: Path) -> Path | None:
    """The effort that `text` names, as a folder or as a name below `out`; None where there is none."""
    return next((folder for folder in (Path(text), out / text) if is_effort(folder)), None)


def effort_names(out: Path) -> tuple[str, ...]:
    """Names of the efforts below `out`, sorted."""
    if not out.is_dir():
        return ()
    return tuple(sorted(folder.name for folder in out.iterdir() if is_effort(folder)))


def with_remembered(given: TargetOptions, remembered: TargetOptions) -> TargetOptions:
    """The options given now, and where they say nothing those that the effort was started with."""
    return TargetOptions(
        cases=remembered.cases if given.cases is None and not given.case_tables else given.cases,
        case_tables=given.case_tables or remembered.case_tables,
        blocks=remembered.blocks if given.blocks is None else given.blocks,
        regions=remembered.regions if given.regions is None else given.regions,
        trees=remembered.trees if given.trees is None else given.trees,
        checkpoint=remembered.checkpoint if given.checkpoint is None else given.checkpoint,
        providers=remembered.providers if given.providers is None else given.providers,
    )
