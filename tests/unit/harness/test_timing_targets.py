"""What is refused before or after timing: interpreted kernels, NaN results, wrong declarations."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from perfkit_harness.kernel_step import KernelStep
from perfkit_harness.nonfinite import check_results
from perfkit_harness.step import NonFinite
from perfkit_harness.targets import KernelTarget
from perfkit_harness.time_kernel import declared_work
from perfkit_harness.torch_private import count_interpreted_launches

from perfkit.errors import PerfkitError
from perfkit.wire.payloads import Work
from perfkit.wire.spec import Spec
from tests.support.specs import kernel_spec


def _target(**names: Any) -> KernelTarget:
    module = ModuleType("recipe")
    vars(module).update({"target": torch.neg, "reference": torch.neg, **names})
    x = torch.ones(4, requires_grad=True)
    cpu = torch.device("cpu")
    return KernelTarget(
        name="neg", inputs={"input": x}, recipe_module=module, file=Path("r.py"), device=cpu, seed=0
    )


def _spec(**values: Any) -> Spec:
    return kernel_spec(Path("/nowhere/r.py"), values=values)


_NAN = [("output", torch.tensor([float("nan")]))]


def test_nan_in_a_result_is_a_failure() -> None:
    with pytest.raises(NonFinite, match="output"):
        check_results(_NAN, _spec(), _target())


def test_nan_is_let_through_where_the_recipe_declares_the_case() -> None:
    check_results(_NAN, _spec(), _target(nonfinite_cases=["tiny"]))
    with pytest.raises(NonFinite):
        check_results(_NAN, _spec(), _target(nonfinite_cases=["other"]))


def test_a_wrong_declaration_is_named() -> None:
    with pytest.raises(PerfkitError, match="nonfinite_cases"):
        check_results([], _spec(), _target(nonfinite_cases="tiny"))


def test_declared_work_gets_the_case_and_the_itemsize() -> None:
    def work(*, rows: int, itemsize: int, **_: object) -> dict[str, dict[str, int]]:
        one = {"read": rows * itemsize, "written": itemsize, "flops": rows}
        return {"forward": one, "full": one, "unheard_of": one}

    found = declared_work(KernelStep(_target(work=work), "target"), _spec(rows=3))
    assert found == (
        Work(direction="forward", num_read_bytes=12, num_written_bytes=4, num_flops=3),
        Work(direction="full", num_read_bytes=12, num_written_bytes=4, num_flops=3),
    )


def test_a_recipe_without_work_declares_none() -> None:
    assert declared_work(KernelStep(_target(), "target"), _spec()) == ()


def test_work_of_another_form_is_explained() -> None:
    step = KernelStep(_target(work=lambda **_: {"forward": {"bytes": 1}}), "target")
    with pytest.raises(PerfkitError, match=r"work of r\.py"):
        declared_work(step, _spec())


def test_torch_calls_are_no_interpreter_launches() -> None:
    with count_interpreted_launches() as launches:
        torch.ones(3).neg()
    assert launches == [0]


def test_interpreted_launches_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    interpreter = pytest.importorskip("triton.runtime.interpreter")

    def run_nothing(self: Any) -> None:
        pass

    monkeypatch.setattr(interpreter.GridExecutor, "__call__", run_nothing)
    grid = interpreter.GridExecutor(lambda: None, [], (0,))
    with count_interpreted_launches() as launches:
        grid()
        grid()
    assert launches == [2]
    assert interpreter.GridExecutor.__call__ is run_nothing
