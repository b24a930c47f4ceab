"""Reads a trace of any size in batches of whole events, with memory bounded by the batch size.

msgspec does not stream, so the text is cut between two events. A cut is found by guessing: the last
place that looks like a border between two objects is tried, and it is right exactly when everything
before it decodes as a list of events. A border inside a string or a nested object cannot decode.
"""

from __future__ import annotations

import codecs
import contextlib
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import msgspec
from isal import igzip

from perfkit.errors import PerfkitError
from perfkit.trace.events import Event
from perfkit.trace.reader import BOM, GZIP_MAGIC, decode_events
from perfkit.trace.refusals import cannot_unpack, error_byte, malformed, not_a_trace, not_utf8

BATCH_BYTES = 1 << 25
_SEARCHED_BYTES = 1 << 20
_BORDER = re.compile(rb"\}\s*,\s*(?=\{)")
_OPENING = re.compile(rb'"traceEvents"\s*:\s*\[')
_HEADER = msgspec.json.Decoder(dict[str, msgspec.Raw])
_RAW_LIST = msgspec.json.Decoder(list[msgspec.Raw])


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive events, decoded and as raw JSON. The header grows: keys after the events come last."""

    events: list[Event]
    events_json: msgspec.Raw
    header: dict[str, msgspec.Raw]

    def raw_events(self) -> list[msgspec.Raw]:
        """The text of each event, in step with `events`."""
        return _RAW_LIST.decode(self.events_json)


def stream_trace(path: Path, *, batch_bytes: int = BATCH_BYTES) -> Iterator[Batch]:
    """The events of a trace in file order; equal to what `read_trace` returns, in pieces.

    Raises:
        PerfkitError: the file is missing, is not a trace, or is malformed. Batches before the damage
            have been handed out by then: a caller must not publish a result until the end.
    """
    with contextlib.closing(_Source(path, batch_bytes)) as source:
        header, buffer = _opening(source)
        while not source.at_end:
            cut = _last_cut(source, buffer)
            if cut is None:
                buffer += source.read()
                continue
            events_json, events, position = cut
            yield Batch(events, events_json, header or {})
            buffer = buffer[position:] + source.read()
        yield _closing(source, header, buffer)


class _Source:
    """Chunks of unpacked UTF-8 text."""

    def __init__(self, path: Path, batch_bytes: int) -> None:
        self.path = path
        self.at_end = False
        self._batch_bytes = batch_bytes
        self.offset = 0
        self._utf8 = codecs.getincrementaldecoder("utf-8")()
        self._opened = contextlib.ExitStack()
        self._file = self._open()

    def close(self) -> None:
        self._opened.close()

    def _open(self) -> BinaryIO:
        try:
            raw = self._opened.enter_context(self.path.open("rb"))
            packed = raw.read(2) == GZIP_MAGIC
            raw.seek(0)
        except OSError as error:
            self.close()
            raise cannot_unpack(self.path, error) from error
        if not packed:
            return raw
        return cast(BinaryIO, self._opened.enter_context(igzip.open(raw, "rb")))  # type: ignore[no-untyped-call]

    def read(self) -> bytes:
        try:
            chunk = self._file.read(self._batch_bytes)
        except (OSError, EOFError, zlib.error) as error:
            raise cannot_unpack(self.path, error) from error
        self.at_end = len(chunk) < self._batch_bytes
        try:
            self._utf8.decode(chunk, final=self.at_end)
        except UnicodeDecodeError as error:
            raise not_utf8(self.path, self.offset + error.start) from error
        first, self.offset = self.offset == 0, self.offset + len(chunk)
        return chunk[len(BOM) :] if first and chunk.startswith(BOM) else chunk


def _opening(source: _Source) -> tuple[dict[str, msgspec.Raw] | None, bytes]:
    """The header keys before the events (None for a bare list), and the text after the opening bracket."""
    buffer = source.read()
    if buffer[:64].lstrip().startswith(b"["):
        return None, buffer[buffer.index(b"[") + 1 :]
    while True:
        for match in _OPENING.finditer(buffer):
            try:
                header = _HEADER.decode(buffer[: match.end()] + b"]}")
            except msgspec.DecodeError:  # the words stood inside a string or a nested object
                continue
            del header["traceEvents"]
            return header, buffer[match.end() :]
        if source.at_end:
            raise _why_no_events(source.path, buffer)
        buffer += source.read()


def _why_no_events(path: Path, buffer: bytes) -> PerfkitError:
    try:
        _HEADER.decode(buffer)
    except msgspec.ValidationError:
        return not_a_trace(path)
    except msgspec.DecodeError as error:
        return malformed(path, error)
    return not_a_trace(path)


def _last_cut(source: _Source, buffer: bytes) -> tuple[msgspec.Raw, list[Event], int] | None:
    """Events before the last border that really is one, and where the text after that border begins.

    An error before the end of the tried text is damage; at its end it says that the border was none.
    """
    for match in reversed(list(_BORDER.finditer(buffer, max(0, len(buffer) - _SEARCHED_BYTES)))):
        events_json = msgspec.Raw(b"[" + buffer[: match.start() + 1] + b"]")
        try:
            return events_json, decode_events(events_json), match.end()
        except msgspec.DecodeError as error:
            stopped = error_byte(error)
            if (
                isinstance(error, msgspec.ValidationError)
                or (stopped or match.start() + 2) < match.start() + 2
            ):
                raise malformed(source.path, error, offset=source.offset - len(buffer) - 1) from error
    return None


def _closing(source: _Source, header: dict[str, msgspec.Raw] | None, buffer: bytes) -> Batch:
    """What is left at the end of the file: the last events, the closing bracket, and late header keys."""
    prefix = b"[" if header is None else b'{"traceEvents":['
    late: dict[str, msgspec.Raw] = {}
    try:
        events_json = msgspec.Raw(prefix + buffer)
        if header is not None:
            late = _HEADER.decode(events_json)
            events_json = late.pop("traceEvents")
        events = decode_events(events_json)
    except msgspec.DecodeError as error:
        offset = source.offset - len(buffer) - len(prefix)
        raise malformed(source.path, error, offset=offset) from error
    return Batch(events, events_json, {**(header or {}), **late})
