"""What a recipe declares is read; what breaks the contract is refused with file and line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from perfkit.errors import UsageError
from perfkit.places import recipes_dir
from perfkit.recipe import is_recipe, read_recipe

LAYER = '''"""A small layer.

More about it.
"""
import torch

kind = "layer"
cases = {"4k": {"tokens": 4096}, "16k": {"tokens": 16384, "dim": 8}}
cpu_cases = {"tiny": {"tokens": 64}}
blocks = ["Block"]
regions = ["rope", "Norm.forward"]


class Norm:
    def forward(self, x): ...


class Block: ...


def rope(q): ...
def build(*, dim=4096, device, dtype, **_): ...
def inputs(*, tokens, dim=4096, device, dtype): ...
'''

KERNEL = '''"""A kernel."""
kind = "kernel"
source = "other.py"
cases = {"2x3": {"rows": 2, "cols": 3}}
edge_cases = {"tail": {"rows": 3, "cols": 4097, "scale": 0.0, "causal": True, "mode": "x"}}
tune = {"num_warps": [4, 8]}
tolerance = {"bf16": "reduction"}
def inputs(*, rows, cols, scale=1.0, causal=False, mode="", device, dtype): ...
def reference(x): ...
def target(x): ...
def provider_torch(x): ...
try:
    import something
    def provider_lib(x): ...
except ImportError:
    pass
'''


def write(folder: Path, text: str, name: str = "small.py") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def refused(folder: Path, text: str) -> UsageError:
    path = write(folder, text)
    with pytest.raises(UsageError) as caught:
        read_recipe(path)
    assert caught.value.why
    assert caught.value.do
    return caught.value


def test_a_layer_is_read_whole(tmp_path: Path) -> None:
    recipe = read_recipe(write(tmp_path, LAYER))
    assert (recipe.name, recipe.kind, recipe.summary) == ("small", "layer", "A small layer.")
    assert recipe.cases == {"4k": {"tokens": 4096}, "16k": {"tokens": 16384, "dim": 8}}
    assert list(recipe.cases) == ["4k", "16k"]
    assert recipe.cpu_cases == {"tiny": {"tokens": 64}}
    assert recipe.edge_cases == {}
    assert (recipe.blocks, recipe.regions) == (("Block",), ("rope", "Norm.forward"))
    assert recipe.functions == {"rope", "build", "inputs"}
    assert recipe.at("cases") == f"{tmp_path / 'small.py'}:8"
    assert recipe.at("build").endswith(":22")


def test_a_kernel_is_read_whole(tmp_path: Path) -> None:
    write(tmp_path, "", "other.py")
    recipe = read_recipe(write(tmp_path, KERNEL))
    assert recipe.kind == "kernel"
    assert recipe.source == "other.py"
    assert recipe.providers == ("torch", "lib")
    assert recipe.tune == {"num_warps": (4, 8)}
    assert recipe.tolerance == {"bf16": "reduction"}
    values = recipe.edge_cases["tail"]
    assert [type(value) for value in values.values()] == [int, int, float, bool, str]


def test_nothing_of_the_file_runs(tmp_path: Path) -> None:
    read_recipe(write(tmp_path, LAYER + "\nraise SystemExit('it ran')\n"))


def test_the_recipes_that_ship_keep_the_contract() -> None:
    files = [p for p in recipes_dir().rglob("*.py") if is_recipe(p)]
    assert {read_recipe(path).kind for path in files} == {"layer", "kernel"}
    assert all(read_recipe(path).summary for path in files)


def test_a_helper_file_is_not_a_recipe(tmp_path: Path) -> None:
    assert not is_recipe(write(tmp_path, "def helper(): ..."))


def test_a_missing_file_names_a_near_one(tmp_path: Path) -> None:
    write(tmp_path, LAYER)
    with pytest.raises(UsageError, match=r"There is no file .*smal\.py") as caught:
        read_recipe(tmp_path / "smal.py")
    assert caught.value.do == "Did you mean small.py?"


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Is a directory"):
        read_recipe(tmp_path)


def test_a_syntax_error_has_its_line(tmp_path: Path) -> None:
    error = refused(tmp_path, 'kind = "layer"\n\ndef build(:\n')
    assert error.what.endswith("small.py:3: not valid Python.")


def test_binary_garbage_is_not_python(tmp_path: Path) -> None:
    path = tmp_path / "garbage.py"
    path.write_bytes(b"\x00\xff\xfe binary")
    with pytest.raises(UsageError, match="not valid Python"):
        read_recipe(path)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('kind = "layer"', "", r"small.py:1: this file is not a recipe\. It has no line `kind"),
        ('kind = "layer"', 'kind = "layr"', r"small.py:7: there is no kind 'layr'.*Did you mean layer\?"),
        ('kind = "layer"', "kind = 3", r"small.py:7: cannot use `kind`. Expected str, got int"),
        ("def build(", "def biuld(", r"needs the function build.*Did you mean biuld\?"),
        ("def inputs(", "def outputs(", "needs the function inputs"),
        ('{"tiny": {"tokens": 64}}', "make()", r"small.py:9: cannot use `cpu_cases`. It is not a literal"),
        ('{"tiny": {"tokens": 64}}', '{"tiny": [64]}', "`cpu_cases`. Expected a table, got a list, at"),
        ('{"tiny": {"tokens": 64}}', '{"tiny": {"tokens": [64]}}', "`cpu_cases`. Expected"),
        ('["Block"]', '"Block"', r"small.py:10: cannot use `blocks`. Expected a list, got str"),
        ('["Block"]', '["Blocc"]', r"small.py:10: small.py has no 'Blocc'.*Did you mean Block\?"),
        ('"Norm.forward"', '"Norm.forwrd"', r"has no 'Norm.forwrd'.*Did you mean Norm.forward\?"),
        ('"rope"', '"rop"', r"has no 'rop'.*Did you mean rope\?"),
        ("cpu_cases =", "cpu_case =", r"small.py:9: there is no table 'cpu_case'.*mean 'cpu_cases'\?"),
        ('"tokens": 64', '"tokens": 0', "case 'tiny'. tokens=0: a whole number in a case is a size"),
        ('"tokens": 64', '"tokens": -1', "tokens=-1: a whole number"),
        ('"tokens": 64', '"tokens": 1e999', "is not a finite number"),
        ('"tokens": 64', '"tokns": 64', "case 'tiny' is incomplete. inputs.. requires tokens"),
        ('"tokens": 64', '"tokens": 64, "dmi": 3', r"gives 'dmi', which nothing takes.*Did you mean dim\?"),
        ('"tokens": 64', '"tokens": 64, "device": "cpu"', "'device' is given by perfkit"),
        ('"tokens": 64', '"tokens": 64, "a b": 3', "'a b' cannot be the keyword of a function"),
        ('"tiny":', '"ti/ny":', "name of a case is made of"),
    ],
)
def test_a_broken_layer_is_refused(tmp_path: Path, old: str, new: str, expected: str) -> None:
    assert old in LAYER
    error = refused(tmp_path, LAYER.replace(old, new))
    assert re.search(expected, str(error), re.S), str(error)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("def reference(", "def ref(", "kernel recipe needs the function reference"),
        ("[4, 8]", "[]", "num_warps has no choices"),
        ('"bf16"', '"bfloat16"', "There is no dtype 'bfloat16'"),
        ("provider_torch", "provider_eager", "a provider cannot be called 'eager'"),
        ('"other.py"', '"otter.py"', "there is no file otter.py beside the recipe"),
    ],
)
def test_a_broken_kernel_is_refused(tmp_path: Path, old: str, new: str, expected: str) -> None:
    write(tmp_path, "", "other.py")
    assert expected in str(refused(tmp_path, KERNEL.replace(old, new)))


def test_a_recipe_needs_cases(tmp_path: Path) -> None:
    text = "\n".join(line for line in LAYER.splitlines() if "cases =" not in line)
    assert "has no cases" in str(refused(tmp_path, text))


def test_a_function_may_be_imported(tmp_path: Path) -> None:
    text = LAYER.replace("def build(*, dim=4096, device, dtype, **_): ...", "from mine import build")
    recipe = read_recipe(write(tmp_path, text))
    assert "build" not in recipe.functions


def test_names_of_a_library_are_not_questioned(tmp_path: Path) -> None:
    text = LAYER.replace('["Block"]', '["TransformerEncoderLayer"]').replace(
        "import torch", "from lib import Blocc"
    )
    assert (
        read_recipe(write(tmp_path, text.replace('"rope"', '"Blocc.forward"'))).regions[0] == "Blocc.forward"
    )


def test_a_function_with_kwargs_takes_any_keyword(tmp_path: Path) -> None:
    text = LAYER.replace("**_", "**config").replace('"tokens": 64', '"tokens": 64, "anything": 3')
    assert read_recipe(write(tmp_path, text)).cpu_cases["tiny"]["anything"] == 3
