"""Where the harness, the recipes, the caches and the efforts lie on disk."""

from __future__ import annotations

import os
from pathlib import Path

_PACKAGE_DIR = Path(__file__).resolve().parent


def _bundled(name: str) -> Path:
    """A folder that lies beside the package in a checkout and inside it in a wheel."""
    in_wheel = _PACKAGE_DIR / "_bundled" / name
    if in_wheel.is_dir():
        return in_wheel
    return _PACKAGE_DIR.parent / name


def harness_dir() -> Path:
    """The folder whose `bootstrap.py` is the first file of every child process."""
    return _bundled("harness")


def recipes_dir() -> Path:
    """The folder of the recipes that ship with perfkit."""
    return _bundled("recipes")


def cache_dir() -> Path:
    """Where measured peaks are kept between runs: `PERFKIT_CACHE_DIR`, or the user's cache folder."""
    if stated := os.environ.get("PERFKIT_CACHE_DIR"):
        return Path(stated)
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "perfkit"
