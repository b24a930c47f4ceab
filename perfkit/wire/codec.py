"""Encoding, decoding, format versions and the spec hash."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from perfkit.errors import PerfkitError

FORMAT_VERSION = 1
"""Version of every file and of the live pipe. Files of an older version are read, newer ones refused."""

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)


def encode(value: Any) -> bytes:
    """JSON of a wire struct, in declaration order, without a trailing newline."""
    return msgspec.json.encode(value)


def encode_pretty(value: Any) -> bytes:
    """The same JSON, indented by two spaces and ended by a newline, for files that people open."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def decode(data: bytes | str, kind: type[T]) -> T:
    """The struct that `encode` wrote.

    Raises:
        msgspec.DecodeError, msgspec.ValidationError: the data is not JSON, or not of this kind.
    """
    return msgspec.json.decode(data, type=kind)


def replace(value: S, **changes: Any) -> S:
    """A copy of a struct with some fields changed."""
    return msgspec.structs.replace(value, **changes)


class _Versioned(msgspec.Struct):
    version: int = 0


def refuse_newer(data: bytes | str, source: Path) -> None:
    """Refuses a file that a newer perfkit wrote.

    Raises:
        PerfkitError: the file carries a version above FORMAT_VERSION, or is not JSON at all.
    """
    try:
        found = msgspec.json.decode(data, type=_Versioned).version
    except msgspec.MsgspecError as error:
        raise PerfkitError(
            f"Cannot read {source}.",
            why=f"It is not a file that perfkit wrote ({error}).",
            do="Restore it from version control, or move it away and run again.",
        ) from error
    if found > FORMAT_VERSION:
        raise PerfkitError(
            f"Cannot use {source}.",
            why=f"It was written by a newer perfkit (format {found}; this one reads up to {FORMAT_VERSION}).",
            do="Upgrade perfkit, or choose another effort with --effort or --out.",
        )


def digest(data: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal."""
    return digest(path.read_bytes())
