"""Variants laid over the import system, and the proof that they run."""

from __future__ import annotations

import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest
from perfkit_harness.load import load_target
from perfkit_harness.targets import KernelTarget

from perfkit.errors import PerfkitError
from perfkit.wire.spec import OverlayFile
from tests.support.specs import kernel_spec, layer_spec, overlay_file, variant, write

pytestmark = pytest.mark.usefixtures("clean_imports")

_SOURCE = "FACTOR = {factor}\n\ndef scale(x):\n    return x * FACTOR\n"
_RECIPE = """
import torch
{imports}

def inputs(*, device, dtype):
    return {{"x": torch.ones(2, device=device, dtype=dtype)}}

def reference(x):
    return x * 2

def target(x):
    {inside}
    return scale(x)
"""
_LAYER = """
from torch import nn
import torch

def build(*, device, dtype, **_):
    return nn.Linear(2, {width}, device=device, dtype=dtype)

def inputs(*, device, dtype, **_):
    return torch.ones(1, 2, device=device, dtype=dtype)
"""


def _recipe(tmp_path: Path, *, imports: str = "", inside: str = "") -> Path:
    return write(tmp_path / "toy-kernel.py", _RECIPE.format(imports=imports, inside=inside))


def _run(file: Path, *overlay: OverlayFile, source: str) -> float:
    loaded = load_target(kernel_spec(file, target={"source": source}, subject=variant(*overlay)))
    assert isinstance(loaded, KernelTarget)
    return float(loaded.provider("target")(**loaded.inputs)[0])


def _package(tmp_path: Path) -> None:
    """A library with three bindings of one function."""
    root = tmp_path / "perfkit_test_lib"
    write(root / "__init__.py", "from perfkit_test_lib.ops.scale import scale\n")
    write(root / "ops" / "__init__.py", "from .scale import scale as op_scale\n")
    write(root / "ops" / "scale.py", _SOURCE.format(factor=2))
    write(root / "functional.py", "from .ops.scale import scale\nTABLE = {'scale': scale}\n")


def test_a_recipes_source_is_imported_by_its_stem(tmp_path: Path) -> None:
    write(tmp_path / "perfkit_test_source.py", _SOURCE.format(factor=2))
    recipe = _recipe(tmp_path, imports="from perfkit_test_source import scale")
    assert _run(recipe, source="perfkit_test_source.py") == 2.0


def test_a_variant_replaces_a_recipes_source(tmp_path: Path) -> None:
    write(tmp_path / "perfkit_test_source.py", _SOURCE.format(factor=2))
    changed = write(tmp_path / "variants" / "v1" / "perfkit_test_source.py", _SOURCE.format(factor=3))
    recipe = _recipe(tmp_path, imports="from perfkit_test_source import scale")
    overlay = overlay_file(changed, replaces="perfkit_test_source.py")
    assert _run(recipe, overlay, source="perfkit_test_source.py") == 3.0
    assert sys.modules["perfkit_test_source"].__file__ == str(changed)


def test_a_variant_of_a_library_module_reaches_every_binding(tmp_path: Path) -> None:
    _package(tmp_path)
    changed = write(tmp_path / "v1" / "any_name.py", _SOURCE.format(factor=5))
    overlay = overlay_file(changed, replaces="perfkit_test_lib.ops.scale")
    recipe = _recipe(tmp_path, imports="from perfkit_test_lib.functional import scale")
    assert _run(recipe, overlay, source="perfkit_test_lib.ops.scale") == 5.0
    for name in ("perfkit_test_lib", "perfkit_test_lib.functional"):
        assert sys.modules[name].scale.__globals__["FACTOR"] == 5
    assert sys.modules["perfkit_test_lib.ops"].op_scale.__globals__["FACTOR"] == 5


def test_a_library_that_the_kernel_imports_when_called_is_proven_too(tmp_path: Path) -> None:
    _package(tmp_path)
    changed = write(tmp_path / "v1" / "scale.py", _SOURCE.format(factor=5))
    overlay = overlay_file(changed, replaces="perfkit_test_lib.ops.scale")
    recipe = _recipe(tmp_path, inside="from perfkit_test_lib.functional import scale")
    assert _run(recipe, overlay, source="perfkit_test_lib.ops.scale") == 5.0


def test_a_variant_of_a_package_keeps_its_submodules(tmp_path: Path) -> None:
    _package(tmp_path)
    changed = write(tmp_path / "v1" / "ops.py", "from .scale import scale\nMARK = 1\n")
    overlay = overlay_file(changed, replaces="perfkit_test_lib.ops")
    recipe = _recipe(tmp_path, imports="from perfkit_test_lib.ops import scale, MARK")
    assert _run(recipe, overlay, source="perfkit_test_lib.ops") == 2.0


def test_a_variant_replaces_the_targets_own_file(tmp_path: Path) -> None:
    file = write(tmp_path / "toy-layer.py", _LAYER.format(width=3))
    changed = write(tmp_path / "v1" / "toy-layer.py", _LAYER.format(width=4))
    subject = variant(overlay_file(changed, replaces="toy-layer.py"))
    loaded = load_target(layer_spec(file, subject=subject))
    assert loaded.module.out_features == 4
    assert loaded.file == changed.resolve()


def test_a_module_that_was_already_imported_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "perfkit_test_source.py", _SOURCE.format(factor=2))
    recipe = _recipe(tmp_path, imports="from perfkit_test_source import scale")
    _run(recipe, source="perfkit_test_source.py")
    changed = write(tmp_path / "v1" / "perfkit_test_source.py", _SOURCE.format(factor=3))
    with pytest.raises(PerfkitError, match=r"Cannot lay a file over perfkit_test_source.*already imported"):
        _run(
            recipe,
            overlay_file(changed, replaces="perfkit_test_source.py"),
            source="perfkit_test_source.py",
        )


def test_a_variant_that_nothing_imports_is_an_error(tmp_path: Path) -> None:
    _package(tmp_path)
    changed = write(tmp_path / "v1" / "scale.py", _SOURCE.format(factor=5))
    overlay = overlay_file(changed, replaces="perfkit_test_lib.other")
    recipe = _recipe(tmp_path, imports="from perfkit_test_lib.functional import scale")
    with pytest.raises(PerfkitError, match=r"was never imported.*Nothing imported perfkit_test_lib\.other"):
        _run(recipe, overlay, source="perfkit_test_lib.ops.scale")


def test_a_variant_of_a_module_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    changed = write(tmp_path / "v1" / "scale.py", _SOURCE.format(factor=5))
    overlay = overlay_file(changed, replaces="perfkit_test_no_such_module")
    recipe = _recipe(tmp_path, imports="from perfkit_test_no_such_module import scale")
    with pytest.raises(PerfkitError, match="replaces nothing"):
        _run(recipe, overlay, source="perfkit_test_no_such_module")


def test_code_of_the_original_that_is_still_alive_is_found(tmp_path: Path) -> None:
    _package(tmp_path)
    original = tmp_path / "perfkit_test_lib" / "ops" / "scale.py"
    by_path = (
        "import importlib.util\n"
        f"spec = importlib.util.spec_from_file_location('perfkit_test_stale', {str(original)!r})\n"
        "stale = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(stale)\n"
        "KEPT = [stale.scale]\n"
        "from perfkit_test_lib.ops.scale import scale\n"
    )
    changed = write(tmp_path / "v1" / "scale.py", _SOURCE.format(factor=5))
    overlay = overlay_file(changed, replaces="perfkit_test_lib.ops.scale")
    with pytest.raises(PerfkitError, match=r"still alive.*Stale: perfkit_test_stale\.scale"):
        _run(_recipe(tmp_path, imports=by_path), overlay, source="perfkit_test_lib.ops.scale")


def test_a_variant_that_was_edited_since_planning_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "perfkit_test_source.py", _SOURCE.format(factor=2))
    changed = write(tmp_path / "v1" / "perfkit_test_source.py", _SOURCE.format(factor=3))
    overlay = overlay_file(changed, replaces="perfkit_test_source.py")
    write(changed, _SOURCE.format(factor=4))
    recipe = _recipe(tmp_path, imports="from perfkit_test_source import scale")
    with pytest.raises(PerfkitError, match="Its content has changed since"):
        _run(recipe, overlay, source="perfkit_test_source.py")
    changed.unlink()
    with pytest.raises(PerfkitError, match="It is gone"):
        _run(recipe, overlay, source="perfkit_test_source.py")


def test_a_variant_of_something_else_is_refused(tmp_path: Path) -> None:
    changed = write(tmp_path / "v1" / "other.py", "")
    overlay = overlay_file(changed, replaces="other-file.py")
    with pytest.raises(
        PerfkitError, match=r"replaces 'other-file\.py'.*toy-kernel\.py or perfkit_test_source"
    ):
        _run(_recipe(tmp_path), overlay, source="perfkit_test_source.py")


def test_a_compiled_extension_cannot_be_replaced(tmp_path: Path) -> None:
    write(tmp_path / f"perfkit_test_binary{EXTENSION_SUFFIXES[0]}", "")
    changed = write(tmp_path / "v1" / "binary.py", "scale = abs\n")
    overlay = overlay_file(changed, replaces="perfkit_test_binary")
    recipe = _recipe(tmp_path, imports="from perfkit_test_binary import scale")
    with pytest.raises(PerfkitError, match="is a compiled extension"):
        _run(recipe, overlay, source="perfkit_test_binary")


@pytest.mark.parametrize("source", ["random.py", "../elsewhere.py"])
def test_a_source_that_would_hide_python_or_lies_elsewhere_is_refused(tmp_path: Path, source: str) -> None:
    with pytest.raises(PerfkitError, match="A source is a file beside the recipe"):
        _run(_recipe(tmp_path), source=source)
