"""`results.jsonl`: one line per slot, append-only."""

from __future__ import annotations

from pathlib import Path

import msgspec

from perfkit.effort.files import append_line, whole_lines
from perfkit.errors import PerfkitError
from perfkit.wire.codec import FORMAT_VERSION, encode
from perfkit.wire.results import SlotRecord


def append_record(path: Path, record: SlotRecord) -> None:
    """Adds one slot. Raises OSError when the disk is full; nothing is half-written then."""
    append_line(path, encode(record))


def read_records(path: Path) -> tuple[SlotRecord, ...]:
    """Every slot in the order in which it ended.

    Raises:
        PerfkitError: a line is damaged or was written by a newer perfkit; the message names the line.
    """
    decoder = msgspec.json.Decoder(SlotRecord)
    records = []
    for number, line in enumerate(whole_lines(path), start=1):
        try:
            record = decoder.decode(line)
        except msgspec.MsgspecError as error:
            raise PerfkitError(
                f"Cannot read line {number} of {path}.",
                why=f"It is damaged, or a newer perfkit wrote it ({error}).",
                do="Restore the file from version control, or start a new effort with --effort.",
            ) from error
        if record.version > FORMAT_VERSION:
            raise PerfkitError(
                f"Cannot use {path}.",
                why=f"Line {number} was written by a newer perfkit (format {record.version}).",
                do="Upgrade perfkit, or start a new effort with --effort.",
            )
        records.append(record)
    return tuple(records)
