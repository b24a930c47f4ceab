"""Loading targets: recipes, a user's own callables, seeding, and errors that name file and line."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy
import pytest
import torch
from perfkit_harness.load import load_code, load_target, make_target, use_triton_interpreter
from perfkit_harness.seeding import seed_everything
from perfkit_harness.targets import KernelTarget, LayerTarget
from perfkit_harness.tensors import digest_state

from perfkit.errors import PerfkitError
from perfkit.wire.spec import Measure
from tests.support.specs import kernel_spec, layer_spec, write

pytestmark = pytest.mark.usefixtures("clean_imports")

_LAYER = """
from __future__ import annotations
from dataclasses import dataclass
import torch
from torch import nn

@dataclass
class Config:
    dim: int

def build(*, dim, waste=0, device, dtype, **_):
    torch.randn(waste)
    return nn.Linear(Config(dim).dim, 2, device=device, dtype=dtype)

def inputs(*, rows, dim, device, dtype, **_):
    return {"input": torch.randn(rows, dim, device=device, dtype=dtype, requires_grad=True)}
"""

_KERNEL = """
import torch

def inputs(*, rows, device, dtype):
    return {"x": torch.randn(rows, 4, device=device, dtype=dtype, requires_grad=True), "eps": 1e-5}

def reference(x, eps):
    return x * eps

def target(x, eps, *, num_warps=None):
    return x * eps
"""

_OWN = """
import torch
from torch import nn

def block(*, dim, device):
    return nn.Linear(dim, 2, device=device), torch.ones(3, dim, device=device)

not_callable = 3

def module_only(**_):
    return nn.Linear(1, 1)

def no_module(**_):
    return abs, {}

def history(**_):
    return nn.Linear(2, 2), torch.ones(1, 2, requires_grad=True) * 2

def elsewhere(**_):
    return nn.Linear(2, 2, device="meta"), torch.ones(1, 2)
"""


@pytest.fixture
def layer(tmp_path: Path) -> Path:
    return write(tmp_path / "toy-layer.py", _LAYER)


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return write(tmp_path / "own.py", _OWN)


def _load_layer(file: Path, *, seed: int = 0, **values: Any) -> LayerTarget:
    spec = layer_spec(file, values={"rows": 3, "dim": 4, **values}, measure=Measure(seed=seed))
    loaded = load_target(spec)
    assert isinstance(loaded, LayerTarget)
    return loaded


def test_a_layer_recipe_is_built_with_the_case_and_the_dtype(layer: Path) -> None:
    spec = layer_spec(layer, values={"rows": 3, "dim": 4}, dtype="bf16")
    loaded = load_target(spec)
    assert loaded.module(**loaded.inputs).shape == (3, 2)
    assert loaded.module.weight.dtype == torch.bfloat16
    assert loaded.inputs["input"].requires_grad
    assert loaded.file == layer.resolve()
    assert sys.modules[loaded.recipe_module.__name__] is loaded.recipe_module


def test_equal_seeds_give_equal_weights_inputs_and_what_follows(layer: Path) -> None:
    first = _load_layer(layer)
    drawn = torch.rand(1)
    second = _load_layer(layer)
    assert digest_state(first.module, first.inputs) == digest_state(second.module, second.inputs)
    assert torch.equal(drawn, torch.rand(1))
    other = _load_layer(layer, seed=1)
    assert digest_state(first.module, first.inputs) != digest_state(other.module, other.inputs)


def test_inputs_do_not_depend_on_what_the_weights_consumed(layer: Path) -> None:
    plain, wasteful = _load_layer(layer), _load_layer(layer, waste=7)
    assert not torch.equal(plain.module.weight, wasteful.module.weight)
    assert torch.equal(plain.inputs["input"], wasteful.inputs["input"])


def test_every_source_of_random_numbers_is_seeded() -> None:
    def draw() -> tuple[float, float, float]:
        seed_everything(5)
        return random.random(), float(numpy.random.rand()), float(torch.rand(1))

    assert draw() == draw()


def test_code_is_loaded_once_for_several_seeds_and_dtypes(layer: Path) -> None:
    spec = layer_spec(layer, values={"rows": 3, "dim": 4})
    code, _ = load_code(spec)
    wide = make_target(msgspec.structs.replace(spec, dtype="fp64"), code)
    assert wide.recipe_module is make_target(spec, code).recipe_module
    assert wide.module.weight.dtype == torch.float64


def test_a_kernel_recipe(tmp_path: Path) -> None:
    loaded = load_target(kernel_spec(write(tmp_path / "toy.py", _KERNEL), values={"rows": 3}))
    assert isinstance(loaded, KernelTarget)
    assert loaded.grad_names == ("x",)
    assert loaded.providers == ("target", "eager", "compile")
    assert torch.equal(loaded.reference(**loaded.inputs), loaded.inputs["x"] * 1e-5)


def test_the_shipped_recipes_load() -> None:
    recipes = Path(__file__).resolve().parents[3] / "recipes"
    kernel = kernel_spec(
        recipes / "kernels" / "rms-norm.py",
        target={"source": "rms_norm_triton.py"},
        values={"rows": 2, "cols": 8},
    )
    assert "liger" in load_target(kernel).providers
    values = {"tokens": 8, "dim": 16, "heads": 2, "kv_heads": 1, "ffn": 32}
    loaded = load_target(layer_spec(recipes / "layers" / "llama3-block.py", values=values))
    assert loaded.module(**loaded.inputs).isfinite().all()


def test_a_callable_of_ones_own(own: Path) -> None:
    loaded = load_target(layer_spec(own, target={"attribute": "block"}, values={"dim": 4}))
    assert list(loaded.inputs) == ["input"]
    assert loaded.module(**loaded.inputs).shape == (3, 2)


@pytest.mark.parametrize(
    ("attribute", "fault"),
    [
        ("blokc", r"own\.py:1 defines no 'blokc'.*did you mean block"),
        ("not_callable", "is no function but a int"),
        ("module_only", r"own\.py:\d+ module_only returned a Linear.*pair \(module, inputs\)"),
        ("no_module", r"own\.py:\d+ no_module returned a builtin_function_or_method where a module"),
        (
            "history",
            r"own\.py:\d+ history .* differentiable operations.*input\.detach\(\)\.requires_grad_\(\)",
        ),
        ("elsewhere", r"own\.py:\d+ elsewhere made nothing on cpu.*on meta"),
    ],
)
def test_faults_of_a_callable_are_named_by_file_and_line(own: Path, attribute: str, fault: str) -> None:
    with pytest.raises(PerfkitError, match=fault):
        load_target(layer_spec(own, target={"attribute": attribute}))


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (("def reference", "def refrence"), "defines no 'reference'.*did you mean refrence"),
        (('"eps": 1e-5', '"eps": [1]'), r"toy\.py:\d+ inputs does not make inputs.*eps is a list"),
        (("return {", "return 3; {"), "it returned a int"),
        (
            ("def target(x, eps, *", "def target(y, eps, *"),
            r"do not fit .*toy\.py:\d+ target.*does not take x",
        ),
        (("*, rows, device", "*, cols, device"), "gives 'rows', which nothing takes"),
    ],
)
def test_faults_of_a_kernel_recipe(tmp_path: Path, change: tuple[str, str], fault: str) -> None:
    spec = kernel_spec(write(tmp_path / "toy.py", _KERNEL.replace(*change)), values={"rows": 3})
    with pytest.raises(PerfkitError, match=fault):
        load_target(spec)


def test_a_single_callable_is_no_kernel(own: Path) -> None:
    with pytest.raises(PerfkitError, match="cannot be loaded as a kernel"):
        load_target(kernel_spec(own, target={"attribute": "block"}, values={"dim": 4}))


def test_a_syntax_error_names_its_line(tmp_path: Path) -> None:
    file = write(tmp_path / "broken.py", "kind = 'layer'\ndef build(:\n")
    with pytest.raises(PerfkitError, match=r"broken\.py:2 has a syntax error"):
        load_target(layer_spec(file))
    assert not any(name.startswith("_perfkit_target_broken") for name in sys.modules)


def test_what_the_target_raises_itself_is_passed_on(tmp_path: Path) -> None:
    file = write(tmp_path / "raising.py", "import no_such_library_anywhere\n")
    with pytest.raises(ModuleNotFoundError, match="no_such_library_anywhere"):
        load_target(layer_spec(file))


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PerfkitError, match="There is no such file"):
        load_target(layer_spec(tmp_path / "absent.py"))


def test_files_beside_the_target_can_be_imported(tmp_path: Path) -> None:
    write(tmp_path / "perfkit_test_beside.py", "DIM = 4\n")
    file = write(tmp_path / "own.py", "from perfkit_test_beside import DIM\n" + _OWN)
    loaded = load_target(layer_spec(file, target={"attribute": "block"}, values={"dim": 4}))
    assert loaded.recipe_module.DIM == 4


def test_a_dotted_target_is_found_under_its_import_root(tmp_path: Path) -> None:
    write(tmp_path / "perfkit_test_package" / "__init__.py", "")
    file = write(tmp_path / "perfkit_test_package" / "model.py", _OWN)
    target = {"module": "perfkit_test_package.model", "attribute": "block", "import_root": str(tmp_path)}
    loaded = load_target(layer_spec(None, target=target, values={"dim": 4}))
    assert loaded.file == file.resolve()
    assert sys.path[-1] == str(tmp_path)


def test_a_dotted_target_that_does_not_exist(tmp_path: Path) -> None:
    target = {"module": "perfkit_test_absent.model", "attribute": "block", "import_root": str(tmp_path)}
    with pytest.raises(PerfkitError, match=r"There is no module 'perfkit_test_absent'"):
        load_target(layer_spec(None, target=target))


def test_an_installed_copy_that_hides_the_source_tree_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "site" / "perfkit_test_hidden.py", _OWN)
    write(tmp_path / "tree" / "perfkit_test_hidden.py", _OWN)
    sys.path.append(str(tmp_path / "site"))
    root = str(tmp_path / "tree")
    target = {"module": "perfkit_test_hidden", "attribute": "block", "import_root": root}
    with pytest.raises(PerfkitError, match="That installed copy hides"):
        load_target(layer_spec(None, target=target, values={"dim": 4}))


def test_a_file_rewritten_within_a_second_is_read_again(tmp_path: Path) -> None:
    file = write(tmp_path / "own.py", _OWN)
    spec = layer_spec(file, target={"attribute": "block"}, values={"dim": 4})
    assert load_target(spec).module.out_features == 2
    write(file, _OWN.replace("nn.Linear(dim, 2", "nn.Linear(dim, 3"))
    assert load_target(spec).module.out_features == 3
    assert not (tmp_path / "__pycache__").exists()


def test_triton_that_came_before_the_interpreter_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET")
    monkeypatch.setitem(sys.modules, "triton", sys)
    with pytest.raises(PerfkitError, match="Triton was imported before"):
        use_triton_interpreter()


def test_interpreted_kernels_are_never_measured_on_a_gpu(layer: Path) -> None:
    spec = layer_spec(layer, values={"rows": 3, "dim": 4}, device="cuda:0")
    with pytest.raises(PerfkitError, match="TRITON_INTERPRET=1 is set"):
        load_code(spec)
