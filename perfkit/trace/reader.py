"""Reads a profiler trace, plain or gzipped, into typed events; refuses what it cannot read in one message."""

from __future__ import annotations

import codecs
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from isal import igzip

from perfkit.errors import PerfkitError
from perfkit.trace.events import DecimalEvent, Event

GZIP_MAGIC = b"\x1f\x8b"
BOM = codecs.BOM_UTF8
LARGEST_EXACT_US = 2.0**43
"""Above this many microseconds (102 days) neighbouring doubles lie more than a nanosecond apart."""
_CHUNK = 1 << 22
_HEADER = msgspec.json.Decoder(dict[str, msgspec.Raw])
_EVENTS = msgspec.json.Decoder(list[Event])
_DECIMAL_EVENTS = msgspec.json.Decoder(list[DecimalEvent])
_BYTE = re.compile(r"\(byte (\d+)\)")


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

    @property
    def distributed_info(self) -> dict[str, Any]:
        """The profiler's record of the process group; empty without one."""
        value = self._header_value("distributedInfo")
        return value if isinstance(value, dict) else {}

    def slices(self) -> Iterator[Event]:
        """Every complete event that has a start."""
        return (event for event in self.events if event.is_slice)

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
    try:
        header, events_json = _split(data, path)
        events = _decode_events(events_json)
    except msgspec.DecodeError as error:
        raise _malformed(path, data, error) from error
    return Trace(path, events, header, events_json)


def read_text(path: Path) -> memoryview:
    """The unpacked bytes of a trace, without a byte order mark, known to be UTF-8.

    Raises:
        PerfkitError: the file cannot be opened, unpacked or is not UTF-8.
    """
    try:
        data = path.read_bytes()
        if data.startswith(GZIP_MAGIC):
            data = igzip.decompress(data)  # type: ignore[no-untyped-call]
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(path, error) from error
    _require_utf8(path, data)
    return memoryview(data)[len(BOM) if data.startswith(BOM) else 0 :]


def _split(data: memoryview, path: Path) -> tuple[dict[str, msgspec.Raw], msgspec.Raw]:
    if bytes(data[:64]).lstrip().startswith(b"["):
        return {}, msgspec.Raw(data)
    try:
        header = _HEADER.decode(data)
    except msgspec.ValidationError as error:
        raise _not_a_trace(path) from error
    if "traceEvents" not in header:
        raise _not_a_trace(path)
    return header, header.pop("traceEvents")


def _decode_events(events_json: msgspec.Raw) -> list[Event]:
    events = _EVENTS.decode(events_json)
    if any(type(e.ts) is float and abs(e.ts) > LARGEST_EXACT_US for e in events):
        return list(_DECIMAL_EVENTS.decode(events_json))
    return events


def _require_utf8(path: Path, data: bytes) -> None:
    if data.isascii():
        return
    decoder = codecs.getincrementaldecoder("utf-8")()
    view = memoryview(data)
    for start in range(0, len(data), _CHUNK):
        try:
            decoder.decode(view[start : start + _CHUNK], final=start + _CHUNK >= len(data))
        except UnicodeDecodeError as error:
            raise PerfkitError(
                f"Cannot read {path}.",
                why=f"It is not UTF-8 text (near byte {start + error.start}).",
                do=_DOCTOR.format(path),
            ) from error


_DOCTOR = "Run `perfkit trace doctor {}` to see what is wrong and whether it can be repaired."


def _malformed(path: Path, data: memoryview, error: msgspec.DecodeError) -> PerfkitError:
    where = "" if _BYTE.search(str(error)) else f" The file holds {len(data)} bytes of JSON."
    return PerfkitError(
        f"Cannot read {path}.", why=f"The JSON is damaged: {error}.{where}", do=_DOCTOR.format(path)
    )


def _unreadable(path: Path, error: Exception) -> PerfkitError:
    if isinstance(error, OSError) and error.errno is not None:
        why, do = f"{error.strerror}.", "Give the path of a profiler trace (.json or .json.gz)."
    else:
        why, do = f"The gzip data is damaged ({error}).", _DOCTOR.format(path)
    return PerfkitError(f"Cannot read {path}.", why=why, do=do)


def _not_a_trace(path: Path) -> PerfkitError:
    return PerfkitError(
        f"Cannot read {path}.",
        why="It is JSON, but neither an object with `traceEvents` nor a list of events.",
        do="Give a trace that torch.profiler exported (export_chrome_trace).",
    )
