"""Streaming gives what reading at once gives, whatever the batch size."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from perfkit.errors import PerfkitError
from perfkit.trace import read_trace
from perfkit.trace.stream import stream_trace
from tests.support.traces import kernel, shared_trace, write_trace


def tricky(tmp_path: Path) -> Path:
    """Names and arguments that look like borders between events, and header keys on both sides."""
    events = [
        kernel(f'}} , {{ {i} \\" }},{{', i, 1) | {"args": {"a": [{"b": {}}, {"c": 1}]}} for i in range(40)
    ]
    path = write_trace(tmp_path, events, note='"traceEvents": [', nested={"traceEvents": [{}, {}]})
    text = path.read_text().removesuffix("}") + ', "late": [{}, {}], "traceName": "x"}'
    path.write_text(text)
    return path


@pytest.mark.parametrize("batch_bytes", [64, 300, 1000, 1 << 20])
def test_batches_add_up_to_the_whole(tmp_path: Path, batch_bytes: int) -> None:
    path = tricky(tmp_path)
    batches = list(stream_trace(path, batch_bytes=batch_bytes))
    whole = read_trace(path)
    assert [e for b in batches for e in b.events] == whole.events
    assert {k: bytes(v) for k, v in batches[-1].header.items()} == {
        k: bytes(v) for k, v in whole.header.items()
    }
    raw = [json.loads(bytes(r)) for b in batches for r in b.raw_events()]
    assert raw == json.loads(path.read_bytes())["traceEvents"]
    assert (len(batches) > 3) == (batch_bytes <= 1000)


def test_bare_lists_marks_and_gzip(tmp_path: Path) -> None:
    text = json.dumps([kernel("\xe9", i, 1) for i in range(30)], ensure_ascii=False).encode()
    path = tmp_path / "t"
    for content in (text, b"\xef\xbb\xbf" + text, gzip.compress(text)):
        path.write_bytes(content)
        assert [e for b in stream_trace(path, batch_bytes=101) for e in b.events] == read_trace(path).events


@pytest.mark.parametrize("damage", [b"NaN", b'"', b"}", b"\x01", b"\xff"])
@pytest.mark.parametrize("batch_bytes", [200, 1 << 20])
def test_damage_is_refused_at_its_byte(tmp_path: Path, damage: bytes, batch_bytes: int) -> None:
    path = write_trace(tmp_path, [kernel("k", i, 1) for i in range(100)])
    data = path.read_bytes()
    place = data.index(b'"ts": 50') + 6
    path.write_bytes(data[:place] + damage + data[place:])
    with pytest.raises(PerfkitError, match=r"damaged|UTF-8") as caught:
        list(stream_trace(path, batch_bytes=batch_bytes))
    if damage in (b"NaN", b"}", b"\x01"):
        assert f"byte {place})" in caught.value.why


def test_truncation_and_other_json_are_refused(tmp_path: Path) -> None:
    path = write_trace(tmp_path, [kernel("k", i, 1) for i in range(100)])
    path.write_bytes(path.read_bytes()[:-20])
    for content in (path.read_bytes(), b"", b"5", b'{"a": 1}', b'{"a": '):
        path.write_bytes(content)
        with pytest.raises(PerfkitError, match="Cannot read"):
            list(stream_trace(path, batch_bytes=256))
    with pytest.raises(PerfkitError, match="Cannot read"):
        list(stream_trace(tmp_path / "absent"))


@pytest.mark.parametrize("name", ["h200/pp/rank0_trace", "public/kineto/resnet50_2021_schema"])
def test_real_traces(name: str) -> None:
    path = shared_trace(name)
    assert [e for b in stream_trace(path, batch_bytes=1 << 18) for e in b.events] == read_trace(path).events
