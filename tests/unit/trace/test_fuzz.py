"""Mutated traces are read as a plain parser reads them, or refused in one message; never a traceback."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perfkit.errors import PerfkitError
from perfkit.trace import read_trace
from perfkit.trace.doctor import diagnose
from perfkit.trace.events import Event
from perfkit.trace.stream import stream_trace
from tests.support.traces import SHARED_TRACES, annotation, kernel, launch

REAL = SHARED_TRACES / "public" / "hta" / "cuda_event_sync_multi_stream.json.gz"
BYTES = st.sampled_from([*b'{}[],:"\\ntf0123456789eE+-. \x00\xff\xc3\xef', *b"NaInu"])
MUTATIONS = st.lists(
    st.tuples(st.sampled_from(["set", "insert", "delete", "cut", "swap"]), st.floats(0, 0.9999), BYTES),
    max_size=4,
)
KEYS = ("pid", "tid", "ts", "dur", "id")


def sample() -> bytes:
    if REAL.exists():
        return gzip.decompress(REAL.read_bytes())
    events = [launch(1, 1), kernel("k", 5, 1.5, correlation=1), annotation("a", 0, 10)]
    return json.dumps({"schemaVersion": 1, "traceEvents": events, "traceName": "x"}).encode()


SAMPLE = sample()


def mutated(mutations: list[tuple[str, float, int]]) -> bytes:
    data = bytearray(SAMPLE)
    for kind, fraction, byte in mutations:
        place = int(fraction * len(data))
        if kind == "set" and data:
            data[place] = byte
        elif kind == "insert":
            data.insert(place, byte)
        elif kind == "delete":
            del data[place : place + byte]
        elif kind == "cut":
            del data[max(place, len(data) - byte) :]
        else:
            data[place : place + 8] = data[place : place + 8][::-1]
    return bytes(data)


def seen(events: list[Event]) -> list[tuple[Any, ...]]:
    return [(e.ph, e.name, e.cat, e.pid, e.tid, _number(e.ts), _number(e.dur), e.id) for e in events]


def _number(value: Any) -> Any:
    """Late clocks are kept digit by digit; a plain parser rounds them to a double."""
    return float(value) if isinstance(value, Decimal) else value


def outcome(read: Callable[[], list[Event]]) -> list[tuple[Any, ...]] | None:
    try:
        return seen(read())
    except PerfkitError:
        return None


def reference(data: bytes) -> list[tuple[Any, ...]]:
    document = json.loads(data.decode("utf-8-sig"))
    events = document["traceEvents"] if isinstance(document, dict) else document
    return [(*(e.get(k, "") for k in ("ph", "name", "cat")), *(e.get(k) for k in KEYS)) for e in events]


@given(MUTATIONS)
@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_mutations(tmp_path: Path, mutations: list[tuple[str, float, int]]) -> None:
    path = tmp_path / "mutated.json"
    path.write_bytes(mutated(mutations))
    events = outcome(lambda: read_trace(path).events)
    assert outcome(lambda: [e for b in stream_trace(path, batch_bytes=4096) for e in b.events]) == events
    if events is not None:
        assert events == reference(path.read_bytes())
    diagnose(path)
