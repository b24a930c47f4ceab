"""Compares text with a golden file; PERFKIT_TEST_REFRESH=1 writes the golden files anew."""

from __future__ import annotations

import os
from pathlib import Path

_FOLDER = Path(__file__).resolve().parents[1] / "golden"
# Read at import: the conftest takes every PERFKIT_ variable away while tests run.
_REFRESH = os.environ.get("PERFKIT_TEST_REFRESH") == "1"


def check_golden(name: str, text: str) -> None:
    """Fails with a line-by-line difference where the text is not what the golden file says."""
    path = _FOLDER / name
    if _REFRESH:
        path.write_text(text, encoding="ascii")
    expected = path.read_text(encoding="ascii")
    assert text.splitlines() == expected.splitlines()
    assert text == expected
