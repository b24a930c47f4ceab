"""Loads the harness folder the way a child process does, for tests that call its modules directly."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

_HARNESS = Path(__file__).resolve().parents[2] / "harness"
_NAME = "perfkit_harness"


def load_harness() -> ModuleType:
    """The package `perfkit_harness`; its modules import as `perfkit_harness.<name>` afterwards."""
    if _NAME in sys.modules:
        return sys.modules[_NAME]
    spec = importlib.util.spec_from_file_location(
        _NAME, _HARNESS / "__init__.py", submodule_search_locations=[str(_HARNESS)]
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules[_NAME] = package
    spec.loader.exec_module(package)
    return package
