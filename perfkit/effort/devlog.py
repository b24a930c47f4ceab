"""`devlog.md`: dated entries in the order in which things happened, dead ends included."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from perfkit.effort.files import append_line

_HEADING = (
    "# Devlog\n\nAppended right after each measurement, decision and dead end; nothing is ever removed.\n"
)


def append_entry(path: Path, title: str, lines: tuple[str, ...] = (), *, now: datetime) -> None:
    """Adds `## <date> <title>` and its lines as a list.

    Raises:
        OSError: the disk is full or the file read-only.
    """
    if not path.exists():
        append_line(path, _HEADING.rstrip("\n").encode())
    stamp = now.isoformat(sep=" ", timespec="seconds")
    body = "".join(f"- {line}\n" for line in lines)
    entry = f"\n## {stamp} {title}\n" + (f"\n{body}" if body else "")
    append_line(path, entry.rstrip("\n").encode())
