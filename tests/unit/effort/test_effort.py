"""The effort folder survives kills, full disks, newer versions and two processes at once."""

from __future__ import annotations

import errno
import json
import os
from datetime import date
from pathlib import Path

import msgspec
import pytest

from perfkit.effort import Effort, read_header
from perfkit.effort.files import append_line, whole_lines
from perfkit.effort.folder import Setup
from perfkit.effort.lock import locked
from perfkit.effort.variants import has_prediction, list_variants, new_variant, overlay_of
from perfkit.errors import PerfkitError, UsageError
from perfkit.wire.codec import FORMAT_VERSION
from perfkit.wire.results import Result, SlotRecord
from perfkit.wire.spec import Case, Spec

SETUP = Setup(
    target="llama3-block",
    kind="layer",
    source_sha256="0" * 64,
    cases=(Case(name="tiny", values={"tokens": 64}),),
    device="cpu",
    dtype="fp32",
    options={},
    versions={"torch": "2.13.0"},
)


def record(slot: str) -> SlotRecord:
    spec = Spec(program="time_step", device="cpu")
    return SlotRecord(slot=slot, stage="bench", spec=spec, result=Result(spec_hash="h", fate="ok"))


def test_records_come_back_in_order(tmp_path: Path) -> None:
    with Effort.opened(tmp_path / "e", SETUP) as effort:
        effort.append(record("a"))
        effort.append(record("b"))
    with Effort.opened(tmp_path / "e", SETUP) as effort:
        assert [r.slot for r in effort.records()] == ["a", "b"]
        assert not effort.setup_is_new


def test_a_torn_last_line_is_ignored_and_then_cut_off(tmp_path: Path) -> None:
    with Effort.opened(tmp_path / "e", SETUP) as effort:
        effort.append(record("a"))
        results = effort.folder / "results.jsonl"
        with results.open("ab") as file:
            file.write(b'{"slot": "torn", "sta')
        assert [r.slot for r in effort.records()] == ["a"]
        effort.append(record("b"))
        assert [r.slot for r in effort.records()] == ["a", "b"]


def test_a_damaged_line_in_the_middle_is_named(tmp_path: Path) -> None:
    with Effort.opened(tmp_path / "e", SETUP) as effort:
        effort.append(record("a"))
        append_line(effort.folder / "results.jsonl", b"{not json")
        effort.append(record("b"))
        with pytest.raises(PerfkitError, match="line 2"):
            effort.records()


def test_a_full_disk_leaves_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "lines"
    append_line(path, b"first")
    real_write = os.write

    def full_after_two_bytes(handle: int, data: memoryview) -> int:
        if len(data) > 2:
            return real_write(handle, bytes(data[:2]))
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full_after_two_bytes)
    with pytest.raises(OSError, match="No space"):
        append_line(path, b"second")
    monkeypatch.undo()
    assert path.read_bytes() == b"first\n"
    append_line(path, b"third")
    assert whole_lines(path) == [b"first", b"third"]


def test_a_second_process_is_refused_and_told_who_holds_the_lock(tmp_path: Path) -> None:
    with (
        Effort.opened(tmp_path / "e", SETUP),
        pytest.raises(PerfkitError, match="Another perfkit") as refused,
        locked(tmp_path / "e" / "lock"),
    ):
        pass
    assert f"pid {os.getpid()}" in refused.value.why
    with Effort.opened(tmp_path / "e", SETUP):
        pass


@pytest.mark.parametrize("name", ["effort.json", "results.jsonl"])
def test_a_newer_version_is_refused(tmp_path: Path, name: str) -> None:
    with Effort.opened(tmp_path / "e", SETUP) as effort:
        effort.append(record("a"))
    path = tmp_path / "e" / name
    data = json.loads(path.read_text())
    data["version"] = FORMAT_VERSION + 1
    path.write_text(json.dumps(data) + "\n")
    with pytest.raises(PerfkitError, match=r"newer"), Effort.opened(tmp_path / "e", SETUP) as effort:
        effort.records()


def test_options_that_hold_tuples_are_recognised_again(tmp_path: Path) -> None:
    setup = msgspec.structs.replace(SETUP, options={"target": {"case_tables": ("width=16",)}})
    for _ in range(2):
        with Effort.opened(tmp_path / "e", setup) as effort:
            assert not effort.changed


def test_changed_options_are_kept_beside_the_old_ones(tmp_path: Path) -> None:
    with Effort.opened(tmp_path / "e", SETUP):
        pass
    changed = msgspec.structs.replace(SETUP, dtype="bf16")
    with Effort.opened(tmp_path / "e", changed) as effort:
        assert effort.setup_is_new
        assert effort.changed
    header = read_header(tmp_path / "e")
    assert header is not None
    assert [setup.dtype for setup in header.setups] == ["fp32", "bf16"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_unwritable_folder_is_one_clear_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(PerfkitError, match="Cannot write"), Effort.opened(tmp_path / "e", SETUP):
        pass


def test_a_file_where_the_folder_should_be_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "reports").write_text("a file")
    with pytest.raises(PerfkitError, match="Cannot write"), Effort.opened(tmp_path / "reports" / "e", SETUP):
        pass


def test_variant_numbers_are_never_reused(tmp_path: Path) -> None:
    sources = {"rms_norm_triton.py": b"x = 1\n", "package/module.py": b"y = 2\n"}
    for _ in range(2):
        new_variant(tmp_path, sources=sources, hypothesis="", today=date(2026, 1, 2))
    assert list_variants(tmp_path) == ("v1", "v2")
    assert [f.replaces for f in overlay_of(tmp_path, "v2")] == ["package.module", "rms_norm_triton.py"]


def test_a_variant_without_a_file_or_of_another_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "v1").mkdir()
    with pytest.raises(UsageError, match="changes nothing"):
        overlay_of(tmp_path, "v1")
    with pytest.raises(UsageError, match="no variant v7"):
        overlay_of(tmp_path, "v7")


def test_a_prediction_counts_only_when_it_holds_a_number(tmp_path: Path) -> None:
    folder = new_variant(tmp_path, sources={"a.py": b""}, hypothesis="h", today=date(2026, 1, 2))
    assert not has_prediction(tmp_path, "v1")
    notes = folder / "notes.md"
    text = notes.read_text()
    notes.write_text(text.replace("(The predicted number", "faster\n(The number"))
    assert not has_prediction(tmp_path, "v1")
    notes.write_text(text.replace("(The predicted number, written", "forward 120 us -> 80 us. (Written"))
    assert has_prediction(tmp_path, "v1")
