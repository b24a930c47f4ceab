"""One effort on disk: its header, its parts, and the guards around them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from perfkit.effort import variants
from perfkit.effort.devlog import append_entry
from perfkit.effort.lock import locked
from perfkit.effort.records import append_record, read_records
from perfkit.errors import PerfkitError
from perfkit.files import write_atomic
from perfkit.wire.codec import FORMAT_VERSION, decode, encode, encode_pretty, refuse_newer
from perfkit.wire.results import SlotRecord
from perfkit.wire.spec import Case, DtypeName, TargetKind

_HEADER = "effort.json"


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """What is investigated and with which options; a change of any field starts a new entry in the header."""

    target: str
    """As it was given on the command line: a recipe, file.py:callable or package.module:callable."""
    kind: TargetKind
    source_sha256: str
    cases: tuple[Case, ...]
    device: str
    dtype: DtypeName
    options: dict[str, Any]
    versions: dict[str, str]


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """`effort.json`. The last setup is in force; stage state is derived from results, never stored."""

    name: str
    made_at: str
    setups: tuple[Setup, ...]
    version: int = FORMAT_VERSION

    @property
    def setup(self) -> Setup:
        """The setup in force."""
        return self.setups[-1]


def read_header(folder: Path) -> Header | None:
    """The header of the effort in `folder`, or None where there is no effort.

    Raises:
        PerfkitError: the header is damaged or was written by a newer perfkit.
    """
    path = folder / _HEADER
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    refuse_newer(data, path)
    try:
        return msgspec.json.decode(data, type=Header)
    except msgspec.MsgspecError as error:
        raise PerfkitError(
            f"Cannot read {path}.",
            why=f"It is damaged ({error}).",
            do="Restore it from version control, or start a new effort with --effort.",
        ) from error


class Effort:
    """An open effort. Make it with `Effort.opened`, which holds the lock."""

    def __init__(self, folder: Path, header: Header, *, setup_is_new: bool) -> None:
        self.folder = folder
        self.header = header
        self.setup_is_new = setup_is_new
        """True when this opening made the effort or changed its setup."""

    @classmethod
    @contextlib.contextmanager
    def opened(cls, folder: Path, setup: Setup) -> Iterator[Effort]:
        """The effort in `folder`, made if it is not there, locked while the block runs.

        A setup that differs from the one in force is appended: what was measured under the old one stays in
        `results.jsonl` and never enters a table of the new one.

        Raises:
            PerfkitError: the folder cannot be written, another perfkit works in it, or it is a newer one's.
        """
        with contextlib.ExitStack() as stack:
            try:
                folder.mkdir(parents=True, exist_ok=True)
                stack.enter_context(locked(folder / "lock"))
                header, setup_is_new = _current_header(folder, setup)
            except OSError as error:
                raise PerfkitError(
                    f"Cannot write to {folder}.",
                    why=f"{error.strerror}.",
                    do="Choose another folder with --out, or make this one writable.",
                ) from error
            yield cls(folder, header, setup_is_new=setup_is_new)

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.name

    @property
    def changed(self) -> bool:
        """Whether an earlier setup of this effort differs from the one in force."""
        return len(self.header.setups) > 1

    def records(self) -> tuple[SlotRecord, ...]:
        """All slots ever recorded here, in the order in which they ended."""
        return read_records(self.folder / "results.jsonl")

    def append(self, record: SlotRecord) -> None:
        """Keeps one slot."""
        append_record(self.folder / "results.jsonl", record)

    def slot_dir(self, slot: str) -> Path:
        """The folder of one slot, made if need be."""
        path = self.folder / "slots" / slot
        path.mkdir(parents=True, exist_ok=True)
        return path

    def note(self, title: str, *lines: str) -> None:
        """Adds a dated entry to the devlog."""
        append_entry(self.folder / "devlog.md", title, lines, now=datetime.now().astimezone())

    def write(self, relative: str, content: str | bytes) -> Path:
        """Writes one file of the effort atomically and returns its path."""
        path = self.folder / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, content.encode() if isinstance(content, str) else content)
        return path

    @property
    def variants_dir(self) -> Path:
        """Where the variants lie."""
        return self.folder / "variants"

    def variant_names(self) -> tuple[str, ...]:
        """v1, v2, ... in numeric order."""
        return variants.list_variants(self.variants_dir)


def _current_header(folder: Path, setup: Setup) -> tuple[Header, bool]:
    known = read_header(folder)
    now = datetime.now().astimezone().isoformat(timespec="seconds")
    if known is None:
        header = Header(name=folder.name, made_at=now, setups=(setup,))
    elif known.setup == decode(encode(setup), Setup):
        # Compared as read from a file: tuples among the options come back as lists.
        return known, False
    else:
        header = msgspec.structs.replace(known, setups=(*known.setups, setup))
    write_atomic(folder / _HEADER, encode_pretty(header))
    return header, True
