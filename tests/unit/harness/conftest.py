"""The harness as a child loads it, and a process that is put back in order after each test."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from tests.support.harness import load_harness

load_harness()


@pytest.fixture(autouse=True)
def _interpreted_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    # Another test of this process may have imported Triton: the variable then cannot be set later.
    monkeypatch.setenv("TRITON_INTERPRET", "1")


@pytest.fixture
def clean_imports() -> Iterator[None]:
    """Undoes what a test imports from outside the installed packages, and its finders and paths."""
    path, finders, modules = list(sys.path), list(sys.meta_path), set(sys.modules)
    yield
    sys.path[:] = path
    sys.meta_path[:] = finders
    for name in set(sys.modules) - modules:
        if _is_temporary(name):
            del sys.modules[name]


def _is_temporary(name: str) -> bool:
    file = getattr(sys.modules[name], "__file__", None)
    return file is None or "pytest-" in file


@pytest.fixture
def clean_compiler() -> Iterator[None]:
    """Dynamo as in a fresh process, before and after."""
    import torch
    from torch._dynamo.utils import counters

    torch._dynamo.reset()
    counters.clear()
    yield
    torch._dynamo.reset()
    counters.clear()
