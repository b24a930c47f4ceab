"""Reading traces: formats, clocks, and refusals in one message."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from perfkit.errors import PerfkitError
from perfkit.trace import read_trace
from tests.support.traces import all_shared_traces, kernel, shared_trace, write_trace


def test_reads_plain_gzip_bare_list_and_byte_order_mark(tmp_path: Path) -> None:
    plain = write_trace(tmp_path, [kernel("k", 1.5, 2.25)], baseTimeNanoseconds=7)
    packed = tmp_path / "noext"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    bare = tmp_path / "bare.json"
    bare.write_text(" \n" + json.dumps([kernel("k", 1.5, 2.25)]))
    marked = tmp_path / "bom.json"
    marked.write_bytes(b"\xef\xbb\xbf" + plain.read_bytes())
    for path in (plain, packed, bare, marked):
        (event,) = read_trace(path).events
        assert (event.name, event.pid, event.tid) == ("k", 0, 7)
        assert (event.start_ns, event.dur_ns, event.end_ns) == (1500, 2250, 3750)
    assert read_trace(plain).base_time_ns == 7
    assert read_trace(bare).base_time_ns is None


def test_times_are_exact_nanoseconds(tmp_path: Path) -> None:
    path = write_trace(tmp_path, [kernel("a", 5221447418585.622, 138.816), kernel("b", 1682725898237042, 3)])
    first, second = read_trace(path).events
    assert (first.start_ns, first.dur_ns) == (5221447418585622, 138816)
    assert (second.start_ns, second.dur_ns) == (1682725898237042000, 3000)


def test_a_clock_beyond_double_precision_is_read_digit_by_digit(tmp_path: Path) -> None:
    path = tmp_path / "late.json"
    path.write_text('[{"ph":"X","cat":"kernel","name":"k","ts":1682725898237042.123,"dur":0.001}]')
    (event,) = read_trace(path).events
    assert (event.start_ns, event.end_ns) == (1682725898237042123, 1682725898237042124)


def test_odd_but_legal_events_survive(tmp_path: Path) -> None:
    path = tmp_path / "odd.json"
    path.write_text(
        '[{"ph":"M","name":"process_name","pid":"Spans","args":null},{"ph":"i"},{"ph":"X","ts":1,"tid":-1,"args":[]},'
        '{"ph":"X","cat":"kernel","name":"quote \\" \\u00e9","ts":3,"dur":0,"unknown":{"a":[1,{}]}}]'
    )
    trace = read_trace(path)
    assert len(trace.events) == 4
    assert [e.name for e in trace.measured()] == ['quote " \xe9']


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "damaged"),
        (b'{"traceEvents": [', "damaged"),
        (b'{"traceEvents": [{"ph": "X", "ts": NaN}]}', "byte 35"),
        (b'{"traceEvents": [{"ph": 5}]}', "damaged"),
        (b'{"traceEvents": {}}', "damaged"),
        (b'{"traceEvents": [{"name": "\xff"}]}', "UTF-8"),
        (b'{"traceEvents": [{"name": "\xc3', "UTF-8"),
        (b'{"events": []}', "neither"),
        (b"5", "neither"),
        (b'{"traceEvents": [{"ph": "X", "ts": 1e999}]}', "damaged"),
        (gzip.compress(b"[]" * 100)[:-6], "gzip"),
        (b"\x1f\x8bnonsense", "gzip"),
    ],
)
def test_refuses_with_one_message(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    with pytest.raises(PerfkitError, match=message) as caught:
        read_trace(path)
    assert str(path) in caught.value.what
    assert caught.value.do


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.json", tmp_path):
        with pytest.raises(PerfkitError, match="Cannot read"):
            read_trace(path)


@pytest.mark.parametrize("name", all_shared_traces())
def test_agrees_with_a_plain_reference_parse(name: str) -> None:
    path = shared_trace(name)
    document = json.loads(gzip.decompress(path.read_bytes()))
    trace = read_trace(path)
    expected = document["traceEvents"]
    assert set(trace.header) == set(document) - {"traceEvents"}
    assert [(e.ph, e.name, e.cat, e.pid, e.tid, e.ts, e.dur, e.id) for e in trace.events] == [
        (
            e.get("ph", ""),
            e.get("name", ""),
            e.get("cat", ""),
            *(e.get(k) for k in ("pid", "tid", "ts", "dur", "id")),
        )
        for e in expected
    ]
