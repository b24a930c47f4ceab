"""The doctor: every kind of damage is named, and the repaired copy loads."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from perfkit.errors import ExitCode, PerfkitError, UsageError
from perfkit.stages.trace_doctor import examine_trace
from perfkit.trace import read_trace
from tests.support.traces import kernel, launch, shared_trace, write_trace


def events() -> list[dict[str, Any]]:
    named = {"ph": "M", "name": "thread_name", "pid": 0, "tid": 7, "args": {"name": "stream 7"}}
    linked = [launch(i, i) for i in range(1, 20)]
    return [*linked, *(kernel(f"k{i}", 100 + 10 * i, 5, correlation=i) for i in range(1, 20)), named]


def text(tmp_path: Path) -> bytes:
    return write_trace(tmp_path, events(), baseTimeNanoseconds=1).read_bytes()


def examine(tmp_path: Path, data: bytes) -> tuple[dict[str, Any], list[str]]:
    """The findings by name, and the names of the kernels that a repair keeps."""
    path, repaired = tmp_path / "bad.json", tmp_path / "good.json"
    path.write_bytes(data)
    report = examine_trace(path, repair=repaired, overwrite=True)
    assert (report.exit_code is ExitCode.GOOD) == report.document["healthy"]
    kept = [e.name for e in read_trace(repaired).events if e.cat == "kernel"]
    return {f.what: f for f in report.document["findings"]}, kept


ALL = [f"k{i}" for i in range(1, 20)]


def test_a_healthy_trace(tmp_path: Path) -> None:
    found, kept = examine(tmp_path, text(tmp_path))
    assert (found, kept) == ({}, ALL)


@pytest.mark.parametrize(
    ("old", "new", "finding", "kept"),
    [
        (b'"k5"', b'"k5\x01"', "control character in a string escaped", None),
        (b'"k5"', b'"k\xff5"', "bytes that are not UTF-8 replaced by U+FFFD", None),
        (b'"k5"', b'"k\\q5"', "wrong escape in a string", None),
        (b'"stream": 7', b'"stream": NaN', "NaN is no JSON; replaced by null", ALL),
        (b'"stream": 7', b'"stream": -Infinity', "-Infinity is no JSON; replaced by null", ALL),
        (b'"correlation": 5}', b'"correlation": 5,}', "comma before a closing bracket removed", ALL),
        (b'"name": "k5"', b'"name": 5', "unreadable event dropped", [k for k in ALL if k != "k5"]),
        (b'"name": "k5"', b'"name": : "k5"', "unreadable event dropped", [k for k in ALL if k != "k5"]),
        (b'"name": "k1"', b'"name" "k1"', "unreadable event dropped", ALL[1:]),
        (b'"ts": 150, ', b"", "slices without a start", [k for k in ALL if k != "k5"]),
        (b'"ts": 150, "dur": 5', b'"ts": 150', "slices without a duration", ALL),
        (b'"ts": 150, "dur": 5', b'"ts": 150, "dur": -5', "negative durations", ALL),
        (b'150, "dur": 5', b'150, "dur": 12', "slices that viewers before Perfetto 57.1 drop", ALL),
        (b'"ts": 150, "dur": 5', b'"ts": -150, "dur": 5', "negative start times", ALL),
        (b'"pid": 10', b'"pid": 99999999999999999999', "integers beyond 64 bits", ALL),
        (b'"correlation": 5}}', b'"correlation": 55}}', "kernel launches without a kernel", ALL),
    ],
)
def test_damage_is_named_and_repaired(
    tmp_path: Path, old: bytes, new: bytes, finding: str, kept: list[str] | None
) -> None:
    data = text(tmp_path)
    assert old in data
    found, names = examine(tmp_path, data[::-1].replace(old[::-1], new[::-1], 1)[::-1])
    assert finding in found
    assert found[finding].fault != "note"
    assert found[finding].where
    assert len(names) == 19 if kept is None else names == kept


def test_truncated_text_and_gzip_keep_what_is_whole(tmp_path: Path) -> None:
    data = text(tmp_path)
    found, kept = examine(tmp_path, data[: data.index(b'"k5"') + 2])
    assert any("ends early" in what for what in found)
    assert kept == ALL[:4]
    found, kept = examine(tmp_path, gzip.compress(data)[:-30])
    assert "gzip data ends early; what is there is kept" in found
    assert kept == ALL[: len(kept)]


def test_a_mark_and_a_bare_list(tmp_path: Path) -> None:
    found, kept = examine(tmp_path, b"\xef\xbb\xbf" + json.dumps(events()).encode())
    assert "byte order mark removed" in found
    assert kept == ALL
    _, kept = examine(tmp_path, json.dumps(events()).encode().replace(b'"k19"', b"k19"))
    assert kept == ALL[:-1]


@pytest.mark.parametrize("data", [b"", b"hello", b"5", b'{"a": 1}', b"\x1f\x8bx"])
def test_what_is_no_trace_is_said_to_be_none(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x"
    path.write_bytes(data)
    report = examine_trace(path)
    assert (report.exit_code, report.document["loadable"]) == (ExitCode.NEGATIVE, False)
    with pytest.raises(PerfkitError, match="Cannot repair"):
        examine_trace(path, repair=tmp_path / "y")
    assert not (tmp_path / "y").exists()


def test_missing_files_and_inputs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PerfkitError, match="Cannot read"):
        examine_trace(tmp_path / "absent")
    path = write_trace(tmp_path, events())
    with pytest.raises(UsageError, match="input"):
        examine_trace(path, repair=path, overwrite=True)


@pytest.mark.parametrize(
    ("name", "finding", "count"),
    [
        ("public/tracelens/b200_eager_overlaps", "slices that viewers before Perfetto 57.1 drop", 38),
        ("public/tracelens/mi300_resnet_ddp_unmatched", "device slices whose launch call is missing", 968),
    ],
)
def test_real_traces(name: str, finding: str, count: int) -> None:
    report = examine_trace(shared_trace(name))
    assert {f.what: f.count for f in report.document["findings"]}[finding] == count
    assert report.exit_code is ExitCode.NEGATIVE
