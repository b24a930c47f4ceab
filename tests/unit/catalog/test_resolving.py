"""Every form of target and effort is resolved; what does not fit is refused before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfkit.catalog import Remembered, Resolved, TargetOptions, list_recipes, resolve, variant_sources
from perfkit.errors import UsageError
from perfkit.wire.codec import file_digest

OWN = """
import torch
from torch import nn

class Block(nn.Module): ...

def make(*, tokens, dim=64, device, dtype):
    return None, {}

def ready(device):
    return None, {}
"""

KERNEL = '''"""A kernel."""
kind = "kernel"
source = "kern.py"
cases = {"big": {"rows": 4096}}
def inputs(*, rows, device, dtype): ...
def reference(x): ...
def target(x): ...
def provider_lib(x): ...
'''


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the user's, with code of their own, as the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(OWN)
    package = tmp_path / "mypackage"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('imported')")
    (package / "layers.py").write_text(OWN)
    (tmp_path / "scale.py").write_text(KERNEL)
    (tmp_path / "kern.py").write_text("x = 1\n")
    return tmp_path


def names(resolved: Resolved) -> list[str]:
    return [case.name for case in resolved.cases]


def refused(text: str, **options: object) -> str:
    with pytest.raises(UsageError) as caught:
        resolve(text, device="cpu", options=TargetOptions(**options))  # type: ignore[arg-type]
    return str(caught.value)


def test_the_listing_has_layers_before_kernels_and_no_helpers() -> None:
    found = {recipe.name: recipe.kind for recipe in list_recipes()}
    assert {"llama3-block": "layer", "rms-norm": "kernel"}.items() <= found.items()
    assert list(found).index("llama3-block") < list(found).index("rms-norm")
    assert "rms_norm_triton" not in found


def test_a_helper_file_and_an_underscore_are_not_listed(tmp_path: Path) -> None:
    folder = tmp_path / "kernels"
    folder.mkdir()
    (folder / "scale.py").write_text(KERNEL)
    (folder / "kern.py").write_text("x = 1\n")
    (folder / "_draft.py").write_text("kind = broken(")
    assert [recipe.name for recipe in list_recipes(tmp_path)] == ["scale"]


def test_a_recipe_by_name_on_the_cpu() -> None:
    resolved = resolve("llama3-block", device="cpu")
    assert names(resolved) == ["tiny", "small"]
    assert resolved.trees == ("eager", "regions", "block")
    assert resolved.providers == ()
    assert resolved.checkpoint == "none"
    target = resolved.target
    assert (target.name, target.kind, target.module, target.attribute) == ("llama3-block", "layer", "", "")
    assert target.file.endswith("recipes/layers/llama3-block.py")
    assert target.source_sha256 == file_digest(resolved.file)
    assert resolved.text == "llama3-block"


def test_a_recipe_on_a_gpu_has_the_large_cases() -> None:
    assert names(resolve("llama3-block", device="cuda:0")) == ["4k", "16k"]


def test_a_kernel_has_providers_edge_cases_and_its_tolerance() -> None:
    resolved = resolve("rms-norm", device="cuda:1")
    assert resolved.providers == ("target", "eager", "compile", "torch", "liger")
    assert resolved.trees == ()
    assert "tail" in [case.name for case in resolved.edge_cases]
    assert resolved.tolerance("bf16") == "reduction"
    assert resolved.tolerance("fp64") == ""


def test_a_recipe_by_path(here: Path) -> None:
    resolved = resolve("scale.py", device="cuda:0")
    assert (resolved.target.name, resolved.target.import_root) == ("scale", str(here))
    assert resolved.text == "scale.py"


def test_the_digest_covers_the_source_of_a_kernel(here: Path) -> None:
    before = resolve("scale.py", device="cpu").target.source_sha256
    (here / "kern.py").write_text("x = 2\n")
    assert resolve("scale.py", device="cpu").target.source_sha256 != before


def test_cases_for_a_gpu_serve_on_the_cpu_with_a_note(here: Path) -> None:
    resolved = resolve("scale.py", device="cpu")
    assert names(resolved) == ["big"]
    assert "declares no cpu_cases" in resolved.notes[0]
    assert resolve("scale.py", device="cuda:0").notes == ()


def test_a_callable_in_a_file(here: Path) -> None:
    resolved = resolve("model.py:make", device="cpu", options=TargetOptions(case_tables=("tokens=64,dim=8",)))
    target = resolved.target
    assert (target.name, target.file, target.attribute) == ("model-make", str(here / "model.py"), "make")
    assert (target.module, target.import_root) == ("", str(here))
    assert resolved.cases[0].name == "tokens64-dim8"
    assert resolved.cases[0].values == {"tokens": 64, "dim": 8}
    assert resolved.trees == ("eager",)


def test_a_callable_in_a_package_is_found_without_importing_it(here: Path) -> None:
    options = TargetOptions(case_tables=("big:tokens=64",), blocks=("Block",), regions=("Block.forward",))
    resolved = resolve("mypackage.layers:make", device="cpu", options=options)
    target = resolved.target
    assert (target.file, target.module, target.import_root) == ("", "mypackage.layers", str(here))
    assert resolved.file == here / "mypackage" / "layers.py"
    assert names(resolved) == ["big"]
    assert resolved.trees == ("eager", "regions", "block")


def test_a_callable_without_required_keywords_needs_no_case(here: Path) -> None:
    assert resolve("model.py:ready", device="cpu").cases[0].values == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lama3-blok", "There is no target 'lama3-blok'.*Did you mean llama3-block?"),
        ("zzz", "The recipes are .*llama3-block.*the efforts below reports are none."),
        ("nofile.py", "There is no file nofile.py."),
        ("nofile.py:make", "There is no file nofile.py."),
        ("model.py:mke", "model.py has no 'mke'.*Did you mean make?"),
        ("model.py:", "names no callable"),
        ("model.py", "this file is not a recipe"),
        ("mypackage.nolayers:make", "There is no module mypackage.nolayers."),
        ("mypackage.layers.deeper:make", "mypackage.layers is a module, not a package."),
        ("nopackage:make", "There is no module nopackage."),
        ("mypackage.layers:mak", "mypackage.layers has no 'mak'.*Did you mean make?"),
        ("mypackage", "holds no effort.json"),
        ("some/where:make", "A target is a recipe's name"),
        ("model.py:make", "needs a case.*make() requires tokens.*--case tokens=..."),
        ("", "There is no target ''"),
    ],
)
def test_an_unknown_target_is_refused(here: Path, text: str, expected: str) -> None:
    message = refused(text)
    for part in expected.split(".*"):
        assert part in message


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        ("rms-norm", {"trees": ("eager",)}, "--trees makes no sense for rms-norm."),
        ("rms-norm", {"checkpoint": "full"}, "--ac makes no sense"),
        ("rms-norm", {"blocks": ("A",)}, "--blocks makes no sense"),
        ("rms-norm", {"regions": ("f",)}, "--regions makes no sense"),
        ("rms-norm", {"providers": ("ligr",)}, "Did you mean liger?"),
        ("llama3-block", {"providers": ("target",)}, "--providers makes no sense"),
        ("llama3-block", {"cases": ("tinny",)}, "Did you mean tiny?"),
        ("llama3-block", {"cases": ("4k",)}, "The cases of llama3-block on the CPU are tiny, small."),
        ("llama3-block", {"cases": ()}, "No case is selected."),
        ("llama3-block", {"blocks": ("Blocc",)}, "--blocks: llama3-block.py has no 'Blocc'."),
        ("model.py:ready", {"trees": ("block",)}, "Name them with --blocks"),
        ("model.py:ready", {"trees": ("regions",)}, "Name them with --regions"),
        ("model.py:ready", {"checkpoint": "full"}, "--ac needs to know the blocks"),
        ("model.py:make", {"case_tables": ("tokens=0",)}, "tokens=0: a whole number in a case is a size"),
        ("model.py:make", {"case_tables": ("tokens=-4",)}, "tokens=-4"),
        ("model.py:make", {"case_tables": ("tokens=4,dmi=3",)}, "Did you mean dim?"),
        ("model.py:make", {"case_tables": ("dim=3",)}, "make() requires tokens"),
        ("model.py:make", {"case_tables": ("tokens",)}, "'tokens' is not key=value"),
        ("model.py:make", {"case_tables": ("tokens=4,tokens=5",)}, "tokens is given twice"),
        ("model.py:make", {"case_tables": ("a:tokens=4", "a:tokens=5")}, "Two cases are called 'a'"),
        ("model.py:make", {"case_tables": ("a/b:tokens=4",)}, "name of a case is made of"),
    ],
)
def test_an_option_that_does_not_fit_is_refused(
    here: Path, text: str, options: dict[str, object], expected: str
) -> None:
    assert expected in refused(text, **options)


def test_the_options_choose_in_the_order_asked_for() -> None:
    options = TargetOptions(cases=("small", "tiny", "small"), trees=("block", "eager"), checkpoint="full")
    resolved = resolve("llama3-block", device="cpu", options=options)
    assert names(resolved) == ["small", "tiny"]
    assert resolved.trees == ("block", "eager")
    assert resolved.checkpoint == "full"


def test_values_of_a_stated_case_have_types() -> None:
    table = "mine:tokens=4_096,dim=64,heads=2,kv_heads=1"
    resolved = resolve("llama3-block", device="cpu", options=TargetOptions(case_tables=(table,)))
    assert resolved.cases[0].values == {"tokens": 4096, "dim": 64, "heads": 2, "kv_heads": 1}
    from perfkit.catalog.case_tables import parse_cases

    assert parse_cases(("a=1.5,b=true,c=x:y,d=-2e3,e=none",))["a1.5-bTrue-cx_y-d-2000.0-enone"] == {
        "a": 1.5,
        "b": True,
        "c": "x:y",
        "d": -2000.0,
        "e": "none",
    }


def make_effort(out: Path, name: str) -> Path:
    folder = out / name
    folder.mkdir(parents=True)
    (folder / "effort.json").write_text("{}")
    return folder


def remember(folder: Path) -> Remembered:
    options = TargetOptions(cases=("tiny",), trees=("eager",), blocks=("Attention",))
    return Remembered(text="llama3-block", options=options)


def test_an_effort_by_folder_and_by_name(tmp_path: Path) -> None:
    folder = make_effort(tmp_path / "out", "first")
    for text in (str(folder), "first"):
        resolved = resolve(text, device="cpu", out=tmp_path / "out", read_effort=remember)
        assert resolved.effort == folder
        assert resolved.target.name == "llama3-block"
        assert (names(resolved), resolved.trees, resolved.target.blocks) == (
            ["tiny"],
            ("eager",),
            ("Attention",),
        )
        assert resolved.options == remember(folder).options


def test_options_given_now_win_over_those_of_the_effort(tmp_path: Path) -> None:
    make_effort(tmp_path, "first")
    options = TargetOptions(cases=("small",), trees=("block",))
    resolved = resolve("first", device="cpu", out=tmp_path, options=options, read_effort=remember)
    assert (names(resolved), resolved.trees, resolved.target.blocks) == (
        ["small"],
        ("block",),
        ("Attention",),
    )


def test_a_shape_stated_now_replaces_the_cases_of_the_effort(tmp_path: Path) -> None:
    make_effort(tmp_path, "first")
    options = TargetOptions(case_tables=("tokens=8,dim=64,heads=2,kv_heads=1",))
    resolved = resolve("first", device="cpu", out=tmp_path, options=options, read_effort=remember)
    assert names(resolved) == ["tokens8-dim64-heads2-kv_heads1"]


def test_a_recipe_wins_over_an_effort_of_its_name(tmp_path: Path) -> None:
    make_effort(tmp_path, "rms-norm")
    assert resolve("rms-norm", device="cpu", out=tmp_path, read_effort=remember).effort is None


def test_an_unknown_target_may_be_near_an_effort(tmp_path: Path) -> None:
    make_effort(tmp_path, "attention-h200")
    with pytest.raises(UsageError, match=r"Did you mean attention-h200\?"):
        resolve("attention-h20", device="cpu", out=tmp_path, read_effort=remember)


def test_what_a_variant_starts_from(here: Path) -> None:
    kernel = resolve("scale.py", device="cpu")
    assert variant_sources(kernel) == {"kern.py": here / "kern.py"}
    layer = resolve("model.py:ready", device="cpu")
    assert variant_sources(layer) == {"model.py": here / "model.py"}
    assert variant_sources(layer, ("mypackage", "mypackage.layers")) == {
        "mypackage/__init__.py": here / "mypackage" / "__init__.py",
        "mypackage/layers.py": here / "mypackage" / "layers.py",
    }
    dotted = resolve("mypackage.layers:ready", device="cpu")
    assert variant_sources(dotted) == {"mypackage/layers.py": here / "mypackage" / "layers.py"}
    with pytest.raises(UsageError, match="There is no module mypackage"):
        variant_sources(layer, ("mypackage.x",))
