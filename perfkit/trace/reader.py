"""Reads a profiler trace, plain or gzipped, into typed events; refuses what it cannot read in one message."""

from __future__ import annotations

import codecs
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from isal import igzip

from perfkit.trace.events import DecimalEvent, Event
from perfkit.trace.refusals import cannot_unpack, malformed, not_a_trace, not_utf8

GZIP_MAGIC = b"\x1f\x8b"
BOM = codecs.BOM_UTF8
LARGEST_EXACT_US = 2.0**43
"""Above this many microseconds (102 days) neighbouring doubles lie more than a nanosecond apart."""
LARGEST_US = 2**62 // 1000
"""Starts and durations above this (146 years) do not fit into 64-bit nanoseconds when added."""
_CHUNK = 1 << 22
_HEADER = msgspec.json.Decoder(dict[str, msgspec.Raw])
_EVENTS = msgspec.json.Decoder(list[Event])
_DECIMAL_EVENTS = msgspec.json.Decoder(list[DecimalEvent])


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace in memory. `header` holds every top-level key but the events, as raw JSON."""

    path: Path
    events: list[Event]
    header: dict[str, msgspec.Raw]
    events_json: msgspec.Raw
    """The text of the event list, from which `events` was decoded."""

    @property
    def base_time_ns(self) -> int | None:
        """Absolute nanoseconds of the trace's time zero; None when the trace does not say."""
        value = self._header_value("baseTimeNanoseconds")
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def measured(self) -> list[Event]:
        """Kernels, copies and fills, by start time."""
        return sorted((event for event in self.events if event.is_measured), key=lambda e: e.start_ns)

    def _header_value(self, key: str) -> Any:
        try:
            return msgspec.json.decode(self.header[key]) if key in self.header else None
        except msgspec.DecodeError:  # legal JSON that cannot be represented, such as 1e999: as good as absent
            return None


def read_trace(path: Path) -> Trace:
    """The trace in a `.json` or `.json.gz` file (told apart by its first bytes) or a bare event list.

    Raises:
        PerfkitError: the file is missing, is not a trace, or is malformed; says where.
    """
    data = read_text(path)
    start = len(BOM) if data.startswith(BOM) else 0
    try:
        header, events_json = _split(memoryview(data)[start:], path)
        events = decode_events(events_json)
    except msgspec.DecodeError as error:
        raise malformed(path, error, offset=start) from error
    return Trace(path, events, header, events_json)


def read_text(path: Path) -> bytes:
    """The unpacked bytes of a trace, known to be UTF-8.

    Raises:
        PerfkitError: the file cannot be opened, unpacked or is not UTF-8.
    """
    try:
        data = path.read_bytes()
        if data.startswith(GZIP_MAGIC):
            data = igzip.decompress(data)  # type: ignore[no-untyped-call]
    except (OSError, EOFError, zlib.error) as error:
        raise cannot_unpack(path, error) from error
    _require_utf8(path, data)
    return data


def _split(data: memoryview, path: Path) -> tuple[dict[str, msgspec.Raw], msgspec.Raw]:
    if bytes(data[:64]).lstrip().startswith(b"["):
        return {}, msgspec.Raw(data)
    try:
        header = _HEADER.decode(data)
    except msgspec.ValidationError as error:
        raise not_a_trace(path) from error
    if "traceEvents" not in header:
        raise not_a_trace(path)
    return header, header.pop("traceEvents")


def decode_events(events_json: msgspec.Raw) -> list[Event]:
    """Typed events, with times that a double cannot hold kept digit by digit.

    Raises:
        msgspec.DecodeError: the text is no list of events, or a time is out of all reason.
    """
    events = _EVENTS.decode(events_json)
    late = [i for i, e in enumerate(events) if _is_beyond(e.ts, LARGEST_EXACT_US)]
    lost = [i for i, e in enumerate(events) if e.dur is not None and _is_beyond(e.dur, LARGEST_US)]
    lost += [i for i in late if _is_beyond(events[i].ts, LARGEST_US)]
    if lost:
        raise msgspec.ValidationError(f"Time beyond 64-bit nanoseconds - at `$[{lost[0]}]`")
    if any(type(events[i].ts) is float for i in late):
        return list(_DECIMAL_EVENTS.decode(events_json))
    return events


def _is_beyond(time_us: int | float | None, limit_us: float) -> bool:
    return time_us is not None and not -limit_us <= time_us <= limit_us


def _require_utf8(path: Path, data: bytes) -> None:
    if data.isascii():
        return
    decoder = codecs.getincrementaldecoder("utf-8")()
    view = memoryview(data)
    for start in range(0, len(data), _CHUNK):
        try:
            decoder.decode(view[start : start + _CHUNK], final=start + _CHUNK >= len(data))
        except UnicodeDecodeError as error:
            raise not_utf8(path, start + error.start) from error
