"""Writes trace files: to a temporary name first, then renamed; never over an input."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, cast

import msgspec
from isal import igzip

from perfkit.errors import PerfkitError, UsageError

_JOIN_EVENTS = 20_000


def stem_of(path: Path) -> str:
    """File name without `.json` or `.json.gz`."""
    return path.name.removesuffix(".gz").removesuffix(".json")


def require_writable(out: Path, *, inputs: Sequence[Path], overwrite: bool) -> None:
    """Refuses an output that would destroy something.

    Raises:
        UsageError: it is one of the inputs, it exists and `overwrite` is not set, or its folder is missing.
    """
    if any(out.exists() and path.exists() and out.samefile(path) for path in inputs):
        raise UsageError(
            f"Cannot write {out}.",
            why="It is an input, and inputs are never changed.",
            do="Choose another name.",
        )
    if out.exists() and not overwrite:
        raise UsageError(
            f"Cannot write {out}.", why="It exists.", do="Choose another name with -o, or give --overwrite."
        )
    if not out.parent.is_dir():
        raise UsageError(
            f"Cannot write {out}.", why=f"The folder {out.parent} does not exist.", do="Create it first."
        )


@contextlib.contextmanager
def replacing(out: Path) -> Iterator[BinaryIO]:
    """A file that takes the place of `out` when the block ends well, and vanishes when it does not.

    Raises:
        PerfkitError: the disk is full or the folder read-only.
    """
    temporary = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    try:
        with contextlib.ExitStack() as opened:
            raw = opened.enter_context(temporary.open("wb"))
            packed = out.suffix == ".gz"
            yield (
                cast(BinaryIO, opened.enter_context(igzip.open(raw, "wb")))  # type: ignore[no-untyped-call]
                if packed
                else raw
            )
        temporary.replace(out)
    except OSError as error:
        raise PerfkitError(
            f"Cannot write {out}.",
            why=f"{error.strerror or error}.",
            do="Free space, or choose another place.",
        ) from error
    finally:
        temporary.unlink(missing_ok=True)


def write_json(out: Path, *, header: Mapping[str, msgspec.Raw], raws: Iterable[msgspec.Raw]) -> None:
    """A trace as JSON, gzipped if the name ends in `.gz`. Header values and events are written as they are.

    Raises:
        PerfkitError: it cannot be written.
    """
    with replacing(out) as file:
        file.write(b"{")
        for name, value in header.items():
            file.write(msgspec.json.encode(name) + b":" + value + b",\n")
        file.write(b'"traceEvents":[\n')
        separator = b""
        for part in _parts(raws):
            file.write(separator + b",\n".join(part))
            separator = b",\n"
        file.write(b"\n]}\n")


def _parts(raws: Iterable[msgspec.Raw]) -> Iterator[list[msgspec.Raw]]:
    part: list[msgspec.Raw] = []
    for raw in raws:
        part.append(raw)
        if len(part) == _JOIN_EVENTS:
            yield part
            part = []
    if part:
        yield part
