"""A whole trace for rewriting: typed events beside their own text, so that what is untouched stays so."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from perfkit.trace.events import Event
from perfkit.trace.reader import read_trace

RawObject = dict[str, msgspec.Raw]
_RAW_LIST = msgspec.json.Decoder(list[msgspec.Raw])
_RAW_OBJECT = msgspec.json.Decoder(RawObject)


@dataclass(frozen=True, slots=True)
class Document:
    """`raws[i]` is the text of `events[i]`."""

    path: Path
    header: RawObject
    events: list[Event]
    raws: list[msgspec.Raw]


def read_document(path: Path) -> Document:
    """The trace with the text of each event.

    Raises:
        PerfkitError: the file cannot be read, or is malformed.
    """
    trace = read_trace(path)
    return Document(path, trace.header, trace.events, _RAW_LIST.decode(trace.events_json))


def raw_object(raw: msgspec.Raw) -> RawObject | None:
    """Keys of a JSON object with their values as text; None when it is no object. No text is no keys."""
    try:
        return _RAW_OBJECT.decode(raw) if raw else {}
    except msgspec.ValidationError:
        return None


def raw_json(value: object) -> msgspec.Raw:
    """A value as JSON text."""
    return msgspec.Raw(msgspec.json.encode(value))


def with_fields(raw: msgspec.Raw, **fields: object) -> msgspec.Raw:
    """An event's text with some keys set. Every other value keeps its very digits."""
    keys = raw_object(raw) or {}
    keys.update({name: raw_json(value) for name, value in fields.items()})
    return raw_json(keys)
