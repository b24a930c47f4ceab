"""Peaks are kept per device key, written whole, and never trusted when damaged."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from perfkit.errors import PerfkitError
from perfkit.machine.peaks_cache import load_peaks, peaks_file, save_peaks
from perfkit.wire.payloads import Peaks, Rate

KEY = "GPU-1234/570.1 + torch 2.13.0"


def some_peaks(key: str = KEY) -> Peaks:
    rate = Rate(name="read", value=4.2e12, unit="bytes_per_s", num_samples=9, spread_percent=0.4, how="sum")
    return Peaks(device_key=key, rates=(rate,), cache_bytes=50 * 2**20, measured_at="2025-01-01")


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    path = save_peaks(some_peaks(), folder=tmp_path)
    assert load_peaks(KEY, folder=tmp_path).peaks == some_peaks()
    assert path.parent == tmp_path / "peaks"
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_the_default_folder_is_the_cache_folder() -> None:
    path = save_peaks(some_peaks())
    assert path.is_relative_to(os.environ["PERFKIT_CACHE_DIR"])
    assert load_peaks(KEY).peaks is not None


def test_an_unknown_device_has_no_peaks_and_no_message(tmp_path: Path) -> None:
    found = load_peaks("other", folder=tmp_path)
    assert found.peaks is None
    assert found.message == ""


@pytest.mark.parametrize("damage", [b"", b"{", b"\xff\xfe", b'{"program": "measure_peaks"}', b"[]"])
def test_a_damaged_file_is_ignored_with_a_message(tmp_path: Path, damage: bytes) -> None:
    save_peaks(some_peaks(), folder=tmp_path).write_bytes(damage)
    found = load_peaks(KEY, folder=tmp_path)
    assert found.peaks is None
    assert "measured again" in found.message
    save_peaks(some_peaks(), folder=tmp_path)
    assert load_peaks(KEY, folder=tmp_path).peaks == some_peaks()


def test_peaks_of_another_device_are_not_taken(tmp_path: Path) -> None:
    other = save_peaks(some_peaks("another GPU"), folder=tmp_path)
    other.rename(peaks_file(KEY, folder=tmp_path))
    found = load_peaks(KEY, folder=tmp_path)
    assert found.peaks is None
    assert "another GPU" in found.message


def test_keys_become_safe_and_distinct_file_names(tmp_path: Path) -> None:
    names = {peaks_file(k, folder=tmp_path).name for k in ("a/b", "a b", "../a b", "a" * 300, "a" * 301)}
    assert len(names) == 5
    for name in names:
        assert "/" not in name
        assert not name.startswith(".")
        assert len(name) < 120


def test_a_folder_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "peaks").write_text("a file in the way")
    with pytest.raises(PerfkitError, match="Cannot keep the measured peaks") as caught:
        save_peaks(some_peaks(), folder=tmp_path)
    assert "PERFKIT_CACHE_DIR" in caught.value.do
