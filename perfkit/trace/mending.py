"""Makes damaged trace text loadable, change by change, and says where each change was made."""

from __future__ import annotations

import codecs
import re
import zlib
from dataclasses import dataclass, field

import msgspec

from perfkit.trace.reader import BOM, GZIP_MAGIC, decode_events
from perfkit.trace.refusals import error_byte

MAX_DROPPED = 1000
"""After so many unreadable events the text is given up: it is not a damaged trace but something else."""
_TOKEN = re.compile(
    rb'"(?:[^"\\]++|\\.)*+"'  # a string, with whatever bytes in it
    rb"|-?\b(?:NaN|nan|Infinity|inf|Inf)\b"
    rb"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
    rb"|,(?=\s*[\]}])",
    re.DOTALL,
)
_CONTROL = re.compile(rb"[\x00-\x1f]")
_WRONG_ESCAPE = re.compile(rb'\\(?:u(?![0-9a-fA-F]{4})|[^"\\/bfnrtu])')
_BORDER = re.compile(rb"\}\s*,\s*(?=\{)")
_OPENING = re.compile(rb'"traceEvents"\s*:\s*\[')
_ANYTHING = msgspec.json.Decoder(msgspec.Raw)


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that was wrong with the text, and what was done about it."""

    what: str
    byte: int
    """Offset in the unpacked text as it was when the change was made."""


@dataclass(slots=True)
class Mended:
    """Loadable text, or None where nothing helped."""

    text: bytes | None
    changes: list[Change] = field(default_factory=list)


def mend(data: bytes) -> Mended:
    """Repairs packing, encoding, tokens, missing ends and unreadable events, in this order."""
    changes: list[Change] = []
    text = _decoded(_unmarked(_unpacked(data, changes), changes), changes)
    if not _loads(text):
        text = _closed(_tokens_mended(text, changes), changes)
    dropped = _without_unreadable(text, changes)
    return Mended(dropped, changes)


def _unpacked(data: bytes, changes: list[Change]) -> bytes:
    if not data.startswith(GZIP_MAGIC):
        return data
    parts: list[bytes] = []
    rest = data
    while rest.startswith(GZIP_MAGIC):
        unpacker = zlib.decompressobj(wbits=31)
        for start in range(0, len(rest), 1 << 16):
            try:
                parts.append(unpacker.decompress(rest[start : start + (1 << 16)]))
            except zlib.error as error:
                changes.append(Change(f"gzip data damaged ({error}); what came before it is kept", len(data)))
                return b"".join(parts)
            if unpacker.eof:
                rest = unpacker.unused_data + rest[start + (1 << 16) :]
                break
        else:
            changes.append(Change("gzip data ends early; what is there is kept", sum(map(len, parts))))
            break
    return b"".join(parts)


def _unmarked(text: bytes, changes: list[Change]) -> bytes:
    if not text.startswith(BOM):
        return text
    changes.append(Change("byte order mark removed", 0))
    return text[len(BOM) :]


def _decoded(text: bytes, changes: list[Change]) -> bytes:
    try:
        codecs.decode(text, "utf-8")
        return text
    except UnicodeDecodeError as error:
        changes.append(Change("bytes that are not UTF-8 replaced by U+FFFD", error.start))
        return text.decode("utf-8", errors="replace").encode()


def _loads(text: bytes) -> bool:
    try:
        _ANYTHING.decode(text)
    except msgspec.DecodeError:
        return False
    return True


def _tokens_mended(text: bytes, changes: list[Change]) -> bytes:
    def mended(match: re.Match[bytes]) -> bytes:
        token = match[0]
        if token.startswith(b'"'):
            return _string_mended(token, match.start(), changes)
        if token == b",":
            changes.append(Change("comma before a closing bracket removed", match.start()))
            return b""
        if token[-1:].isalpha():
            changes.append(Change(f"{token.decode()} is no JSON; replaced by null", match.start()))
            return b"null"
        return token

    return _TOKEN.sub(mended, text)


def _string_mended(token: bytes, start: int, changes: list[Change]) -> bytes:
    control = _CONTROL.search(token)
    if control:
        changes.append(Change("control character in a string escaped", start + control.start()))
        token = _CONTROL.sub(lambda match: b"\\u%04x" % match[0][0], token)
    wrong = _WRONG_ESCAPE.search(token)
    if wrong:
        changes.append(Change("wrong escape in a string", start + wrong.start()))
        token = _WRONG_ESCAPE.sub(lambda match: b"\\" + match[0], token)
    return token


def _closed(text: bytes, changes: list[Change]) -> bytes:
    """Text that ends in the middle is cut after its last whole event and closed."""
    try:
        _ANYTHING.decode(text)
        return text
    except msgspec.DecodeError as error:
        if error_byte(error) is not None:  # damage in the middle, not a missing end
            return text
    opening = _OPENING.search(text)
    start = opening.end() if opening else 0
    closing = b"]}" if opening else b"]"
    borders = [match.start() + 1 for match in _BORDER.finditer(text, start)]
    ends = [len(text.rstrip()), *reversed(borders), start + (0 if opening else 1)]
    for end in ends[:200]:
        if _loads(text[:end] + closing):
            changes.append(Change("the text ends early; closed after the last whole event", end))
            return text[:end] + closing
    return text


def _without_unreadable(text: bytes, changes: list[Change]) -> bytes | None:
    """Drops the event around each place at which the text or a field's type is wrong."""
    for _ in range(MAX_DROPPED):
        place = _fault(text)
        if place is None:
            return text
        opening = _OPENING.search(text)
        first = opening.end() if opening else text.find(b"[") + 1
        span = _event_around(text, place, first)
        if span is None:
            return None
        changes.append(Change("unreadable event dropped", span[0]))
        text = text[: span[0]] + text[span[1] :]
    return None


def _fault(text: bytes) -> int | None:
    """Byte at which reading stops; None when everything reads. -1 when it cannot be located."""
    try:
        _ANYTHING.decode(text)  # damaged text first: a wrong type is only located in text that is whole
        events = text
        if not text.lstrip().startswith(b"["):
            events = msgspec.json.decode(text, type=dict[str, msgspec.Raw])["traceEvents"]
        decode_events(msgspec.Raw(events))
    except KeyError:
        return -1
    except msgspec.ValidationError as error:
        return _place_of_event(text, str(error))
    except msgspec.DecodeError as error:
        stopped = error_byte(error)
        return -1 if stopped is None else stopped
    return None


def _place_of_event(text: bytes, message: str) -> int:
    found = re.search(r"\$\[(\d+)\]", message)
    if found is None:
        return -1
    raws = text
    if not text.lstrip().startswith(b"["):
        raws = msgspec.json.decode(text, type=dict[str, msgspec.Raw])["traceEvents"]
    opening = _OPENING.search(text)
    place = opening.end() if opening else text.find(b"[") + 1
    for number, raw in enumerate(msgspec.json.decode(raws, type=list[msgspec.Raw])):
        place = text.index(bytes(raw), place)
        if number == int(found[1]):
            return place + 1
        place += len(raw)
    return -1


def _event_around(text: bytes, place: int, first: int) -> tuple[int, int] | None:
    """From the event's first byte to the first byte of the next one (or the end of the last one)."""
    if place < first:
        return None
    borders = [match.end() for match in _BORDER.finditer(text, first, min(len(text), place))]
    start = borders[-1] if borders else first
    following = _BORDER.search(text, place)
    if following:
        return start, following.end()
    end = text.rfind(b"]", place)
    if end < 0:
        return None
    before = text[:start].rstrip()
    return (len(before) - 1 if before.endswith(b",") else start), end
