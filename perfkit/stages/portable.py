"""Takes the paths of this machine out of what an effort keeps, so that it can be read elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from perfkit import places
from perfkit.wire.results import Result


def portable_text(text: str, roots: Sequence[tuple[Path, str]] | None = None) -> str:
    """The text with known folders (recipes, harness, working folder, Python, home) named shortly."""
    for folder, short in roots if roots is not None else _roots():
        text = text.replace(str(folder), short)
    return text


def portable_result(result: Result) -> Result:
    """The result with portable paths in its reason, failure and environment."""
    failure, environment = result.failure, result.environment
    if failure is not None:
        failure = msgspec.structs.replace(
            failure,
            message=portable_text(failure.message),
            where=portable_text(failure.where),
            traceback=portable_text(failure.traceback),
        )
    if environment is not None:
        environment = msgspec.structs.replace(environment, target_file=portable_text(environment.target_file))
    return msgspec.structs.replace(
        result, reason=portable_text(result.reason), failure=failure, environment=environment
    )


def _roots() -> list[tuple[Path, str]]:
    # Longest first: the virtual environment often lies inside the working folder.
    roots = [
        (Path(sys.prefix), "<python>"),
        (Path(sys.base_prefix), "<python>"),
        (places.recipes_dir(), "recipes"),
        (places.harness_dir(), "harness"),
        (Path.cwd(), "."),
        (Path.home(), "~"),
    ]
    usable = [(folder, short) for folder, short in roots if folder != Path(folder.anchor)]
    return sorted(usable, key=lambda pair: len(str(pair[0])), reverse=True)
