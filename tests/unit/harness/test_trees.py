"""Compiled trees: what is compiled, that results stay equal, and what is refused."""

from __future__ import annotations

import functools
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from perfkit_harness.assemble import assemble, compiles
from perfkit_harness.load import load_target
from perfkit_harness.regions import compile_region, find_region
from perfkit_harness.step import LayerStep
from perfkit_harness.targets import LayerTarget
from perfkit_harness.trees import apply_tree, find_blocks, num_graphs, require_compiler, require_graphs

from perfkit.errors import PerfkitError
from perfkit.wire.spec import Measure, Subject
from tests.support.specs import kernel_spec, layer_spec, write

pytestmark = pytest.mark.usefixtures("clean_imports", "clean_compiler")

_MODEL = Path(__file__).resolve().parents[2] / "support" / "toy_model.py"
_REGIONS = ("scale", "closed", "Norm.forward", "Norm.gate")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write(tmp_path / "perfkit_test_model.py", _MODEL.read_text())


def _load(file: Path, **spec: Any) -> LayerTarget:
    loaded = load_target(layer_spec(file, **spec))
    assert isinstance(loaded, LayerTarget)
    return loaded


def _results(step: LayerStep) -> list[torch.Tensor]:
    outputs = step().detach().clone()
    return [outputs, *(grad.clone() for grad in step.grads().values() if grad is not None)]


def _assert_close(found: list[torch.Tensor], expected: list[torch.Tensor]) -> None:
    assert len(found) == len(expected) > 2
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.fixture
def fake_compile(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """torch.compile that compiles nothing and notes every call of what it was given."""
    calls: list[tuple[str, dict[str, Any]]] = []

    def fake(function: Any, **options: Any) -> Any:
        def run(*args: Any, **kwargs: Any) -> Any:
            calls.append((function.__qualname__, options))
            return function(*args, **kwargs)

        return run

    monkeypatch.setattr(torch, "compile", fake)
    return calls


def test_a_region_is_reached_however_it_is_bound(
    model: Path, fake_compile: list[tuple[str, dict[str, Any]]]
) -> None:
    target = _load(model)
    expected = _results(LayerStep(target))
    apply_tree(target, "regions", blocks=(), regions=_REGIONS)
    _assert_close(_results(LayerStep(target)), expected)
    # Two blocks, each with a partial and an alias of scale, one closure, one norm and one super() call.
    names = [name for name, _ in fake_compile]
    assert {n: names.count(n) for n in set(names)} == {
        "scale": 4,
        "make_closure.<locals>.closed": 2,
        "Norm.forward": 2,
        "Norm.gate": 2,
    }
    assert all(options == {"fullgraph": True} for _, options in fake_compile)


# Dynamo looks at .grad of tensors that are no leaves, behind a filter of its own that errors pass by.
@pytest.mark.filterwarnings("ignore:The .grad attribute")
def test_regions_compile_once_for_all_instances(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="eager"))
    target = _load(model)
    expected = _results(LayerStep(target))
    apply_tree(target, "regions", blocks=(), regions=("Norm.forward", "closed"))
    with pytest.raises(PerfkitError, match="Nothing was compiled for the test"):
        require_graphs("the test")
    _assert_close(_results(LayerStep(target)), expected)
    assert num_graphs() == 2
    require_graphs("the test")


def test_a_graph_break_in_a_region_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="eager"))
    broken = _MODEL.read_text().replace(
        "return torch.sin(x)", "torch._dynamo.graph_break(); return torch.sin(x)"
    )
    target = _load(write(tmp_path / "broken.py", broken))
    apply_tree(target, "regions", blocks=(), regions=("scale",))
    with pytest.raises(torch._dynamo.exc.Unsupported):
        LayerStep(target)()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_block_tree_with_checkpointing_computes_the_same(model: Path) -> None:
    spec = layer_spec(model, target={"blocks": ("Block",)})
    expected = _results(assemble(spec))
    compiled = layer_spec(
        model,
        target={"blocks": ("Block",)},
        subject=Subject(tree="block"),
        measure=Measure(checkpoint="selective"),
    )
    _assert_close(_results(assemble(compiled)), expected)
    assert num_graphs() == 1


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_compiled_reference_of_a_kernel(tmp_path: Path) -> None:
    text = (
        "import torch\n"
        "def inputs(*, device, dtype):\n"
        "    return {'x': torch.ones(3, device=device, dtype=dtype, requires_grad=True)}\n"
        "def reference(x):\n"
        "    return x.square().sin()\n"
        "target = reference\n"
    )
    step = assemble(kernel_spec(write(tmp_path / "toy.py", text), subject=Subject(provider="compile")))
    for _ in range(2):
        step.prepare_backward()
        step.backward()
    torch.testing.assert_close(step.forward(), torch.ones(3).sin())
    assert num_graphs() == 1


def test_eager_compiles_nothing(model: Path, fake_compile: list[tuple[str, dict[str, Any]]]) -> None:
    target = _load(model)
    apply_tree(target, "eager", blocks=("Block",), regions=_REGIONS)
    LayerStep(target)()
    assert fake_compile == []


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("scal", "no region 'scal'.*did you mean scale"),
        ("Norm.forwrd", "did you mean Norm.forward"),
        ("PARTIAL", "no Python function but a partial"),
        ("Norm", "no Python function but a type.*RMSNorm.forward"),
        ("Norm.inherited", r"'Norm\.inherited' is inherited.*Name Base\.inherited instead"),
    ],
)
def test_region_names_that_cannot_be_compiled(model: Path, name: str, fault: str) -> None:
    with pytest.raises(PerfkitError, match=fault):
        find_region(_load(model), name)


def test_regions_are_found_where_the_target_imported_its_classes_from(model: Path) -> None:
    text = "from perfkit_test_model import build, inputs\n"
    target = _load(write(model.parent / "entry.py", text))
    assert find_region(target, "scale").__module__ == "perfkit_test_model"
    assert find_region(target, "Norm.forward").__qualname__ == "Norm.forward"


def test_a_name_of_two_modules_is_ambiguous(model: Path) -> None:
    write(
        model.parent / "perfkit_test_other.py", "def scale(x):\n    return x\n\ndef other():\n    return 1\n"
    )
    text = "from perfkit_test_model import build, inputs\nfrom perfkit_test_other import other\n"
    with pytest.raises(PerfkitError, match=r"ambiguous.*perfkit_test_model, perfkit_test_other"):
        find_region(_load(write(model.parent / "entry.py", text)), "scale")


def test_a_region_that_is_not_reached_leaves_other_functions_alone(
    fake_compile: list[tuple[str, dict[str, Any]]],
) -> None:
    def made(factor: int) -> Any:
        def multiply(x: int, *, extra: int = 1) -> int:
            return x * factor + extra

        return multiply

    double, triple = made(2), made(3)
    compile_region(double)
    assert (double(5), double(5, extra=0), triple(5)) == (11, 10, 16)
    assert len(fake_compile) == 2


def test_blocks_are_found_by_class_and_by_base_class(model: Path) -> None:
    module = _load(model).module
    assert [type(m).__name__ for m in find_blocks(module, ("Block",))] == ["Block", "Block"]
    assert [type(m).__name__ for m in find_blocks(module, ("Base",))] == ["Norm", "Norm"]
    with pytest.raises(PerfkitError, match=r"no block of class 'Blok'.*did you mean Block"):
        find_blocks(module, ("Blok",))


@pytest.mark.parametrize(("tree", "table"), [("regions", "regions"), ("block", "blocks")])
def test_a_tree_needs_its_table(model: Path, tree: Any, table: str) -> None:
    with pytest.raises(PerfkitError, match=f"tree '{tree}'. It declares no {table}"):
        apply_tree(_load(model), tree, blocks=(), regions=())


def test_a_missing_compiler_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setenv("CXX", "odd-compiler -O2")
    with pytest.raises(PerfkitError, match="odd-compiler is not on the PATH"):
        require_compiler(torch.device("cpu"))
    require_compiler(torch.device("cuda:0"))


def test_which_specs_must_compile() -> None:
    assert compiles(layer_spec(None, subject=Subject(tree="block")))
    assert not compiles(layer_spec(None))
    assert compiles(kernel_spec(Path("k.py"), subject=Subject(provider="compile")))
    assert not compiles(kernel_spec(Path("k.py"), subject=Subject(provider="target")))
