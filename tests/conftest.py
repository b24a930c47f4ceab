"""Shared fixtures: no GPU means a named skip, and no test sees the user's caches or settings."""

from __future__ import annotations

import functools
import os
from pathlib import Path

import pytest

os.environ["MPLBACKEND"] = "Agg"


@functools.cache
def _why_no_gpu() -> str:
    import torch

    return "" if torch.cuda.is_available() else "torch sees no CUDA device on this machine"


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips gpu tests with the reason why they cannot run here."""
    if item.get_closest_marker("gpu") and (why := _why_no_gpu()):
        pytest.skip(why)


@pytest.fixture(autouse=True)
def _own_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [n for n in os.environ if n.startswith("PERFKIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PERFKIT_CACHE_DIR", str(tmp_path / "perfkit-cache"))
    monkeypatch.setenv("COLUMNS", "80")
