"""verify_numerics in this process, on tiny kernels and layers: the right pass, each wrong one fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from perfkit_harness.golden import load_state
from perfkit_harness.programs.verify_numerics import run
from torch import nn

from perfkit.errors import PerfkitError
from perfkit.numerics import Judgement, Verdict, judge
from perfkit.wire.payloads import Verified
from perfkit.wire.spec import Measure, Spec, Subject
from tests.support.specs import kernel_spec, layer_spec, overlay_file, write

pytestmark = pytest.mark.usefixtures("clean_imports")

_KERNEL = """
import torch
from torch import nn

def inputs(*, rows, dim, device, dtype):
    make = lambda *s: torch.randn(*s, device=device, dtype=dtype, requires_grad=True)
    return {"score": make(rows, rows), "value": make(rows, dim)}

def masked(score):
    hidden = torch.ones_like(score, dtype=torch.bool).triu(1)
    return score.masked_fill(hidden, float("-inf"))

def reference(score, value):
    return torch.softmax(masked(score).float(), -1).to(value.dtype) @ value

def target(score, value):
    weight = torch.softmax(masked(score).float(), -1).to(value.dtype)
    return (value.T.contiguous() @ weight.T).T

def provider_no_mask(score, value):
    return torch.softmax(score.float(), -1).to(value.dtype) @ value

def provider_last_row_unmasked(score, value):
    open_ = masked(score).clone()
    open_[0] = score[0]
    return torch.softmax(open_.float(), -1).to(value.dtype) @ value

class _Flipped(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()
    @staticmethod
    def backward(ctx, dy):
        return -dy

def provider_backward_sign(score, value):
    return reference(_Flipped.apply(score), value)

def provider_low_accumulator(score, value):
    weight = torch.softmax(masked(score).float(), -1)
    out = torch.zeros(score.shape[0], value.shape[1], dtype=torch.bfloat16)
    for k in range(score.shape[1]):
        out = out + (weight[:, k, None] * value[None, k]).to(torch.bfloat16)
    return out.to(value.dtype)

def provider_detached(score, value):
    return reference(score, value.detach())

def provider_no_backward(score, value):
    return reference(score.detach(), value.detach())

def provider_dtype(score, value):
    return reference(score, value).double()

def provider_shape(score, value):
    return reference(score, value)[:-1]

def provider_nan(score, value):
    out = reference(score, value).clone()
    out[3, 1] = float("nan")
    return out

def provider_pair(score, value):
    return reference(score, value), value

calls = []
def provider_unsteady(score, value):
    calls.append(None)
    return reference(score, value) * (1.0 + (1e-7 if len(calls) % 2 else 0.0))

def provider_sometimes_wrong(score, value):
    calls.append(None)
    return reference(score, value) * (1.0 if len(calls) % 2 else 1.1)
"""

_LAYER = """
import torch
from torch import nn

class Norm(nn.Module):
    def __init__(self, dim, device, dtype):
        super().__init__()
        self.weight = nn.Parameter(1 + torch.randn(dim, device=device, dtype=dtype) / 8)
        self.unused = nn.Parameter(torch.ones(1, device=device, dtype=dtype))
        turn = torch.polar(torch.ones(dim // 2), torch.randn(dim // 2))
        self.register_buffer("turn", turn, persistent=False)
        self.register_buffer("num_calls", torch.zeros((), device=device, dtype=dtype))

    def forward(self, x, shift):
        self.num_calls += 1
        x = x * self.num_calls
        wide = x.float()
        wide = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-5)
        turned = torch.view_as_complex(wide.unflatten(-1, (-1, 2))) * self.turn
        return torch.view_as_real(turned).flatten(-2).type_as(x) * self.weight + shift, x

def build(*, dim, device, dtype, **_):
    return Norm(dim, device, dtype)

def inputs(*, rows, dim, device, dtype):
    return {"x": torch.randn(rows, dim, device=device, dtype=dtype, requires_grad=True), "shift": 0.5}
"""


def verify(spec: Spec, tmp_path: Path) -> tuple[Verified, Judgement]:
    verified, environment = run(spec, slot_dir=tmp_path)
    assert environment.device == "cpu"
    judged = judge(
        verified.cases,
        fudge_factor=spec.measure.fudge_factor,
        atol=spec.measure.atol,
        tolerance=spec.tolerance,
    )
    return verified, judged


def kernel(tmp_path: Path, provider: str, **fields: Any) -> tuple[Verified, Judgement]:
    file = write(tmp_path / "masked_softmax.py", _KERNEL)
    values = {"rows": 33, "dim": 5}
    spec = kernel_spec(file, values=values, subject=Subject(provider=provider), **fields)
    return verify(spec, tmp_path)


@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
def test_a_right_kernel_passes_in_every_dtype(tmp_path: Path, dtype: str) -> None:
    verified, judged = kernel(tmp_path, "target", dtype=dtype)
    assert judged.verdict is Verdict.PASS, judged
    assert [case.seed for case in verified.cases] == [0, 1]
    assert verified.subject_ran == "eager"
    names = [tensor.name for tensor in verified.cases[0].tensors]
    assert names == ["output", "grad:score", "grad:value"]
    for case in verified.cases:
        assert case.repeats_equal
        assert case.narrow_golden_ops == ()
        assert "Tensor.float" in case.notes[0]


def test_seeds_draw_other_inputs(tmp_path: Path) -> None:
    verified, _ = kernel(tmp_path, "target")
    first, second = (case.tensors[0].digest_target for case in verified.cases)
    assert first != second


@pytest.mark.parametrize(
    ("provider", "wrong"),
    [
        ("no_mask", "output"),
        ("last_row_unmasked", "output"),
        ("backward_sign", "grad:score"),
        ("low_accumulator", "output"),
        ("detached", "grad:value"),
        ("no_backward", "grad:score"),
        ("dtype", "output"),
        ("shape", "output"),
        ("nan", "output"),
        ("pair", "output"),
        ("sometimes_wrong", "output"),
    ],
)
def test_each_wrong_kernel_fails_where_it_is_wrong(tmp_path: Path, provider: str, wrong: str) -> None:
    _, judged = kernel(tmp_path, provider)
    assert judged.verdict is Verdict.FAIL
    for case in judged.cases:
        assert wrong in [row.tensor for row in case.rows if row.verdict is Verdict.FAIL]


def test_a_wrong_backward_leaves_the_forward_row_passing(tmp_path: Path) -> None:
    _, judged = kernel(tmp_path, "backward_sign")
    verdicts = {row.tensor: row.verdict for row in judged.cases[0].rows}
    assert verdicts == {"output": Verdict.PASS, "grad:score": Verdict.FAIL, "grad:value": Verdict.PASS}


def test_nondeterminism_is_recorded(tmp_path: Path) -> None:
    verified, judged = kernel(tmp_path, "unsteady", measure=Measure(verify_seeds=(3,)))
    assert verified.cases[0].repeats_equal is False
    assert any("Not deterministic" in note for note in judged.cases[0].notes)


def test_the_reference_itself_is_told_apart(tmp_path: Path) -> None:
    verified, judged = kernel(tmp_path, "eager")
    assert verified.cases[0].target_is_reference
    assert judged.verdict is Verdict.INCONCLUSIVE


def test_a_layer_is_checked_with_all_gradients_and_its_buffers_restored(tmp_path: Path) -> None:
    file = write(tmp_path / "norm.py", _LAYER)
    spec = layer_spec(file, values={"rows": 6, "dim": 8}, dtype="bf16")
    verified, judged = verify(spec, tmp_path)
    case = verified.cases[0]
    assert {tensor.name: tensor.missing for tensor in case.tensors} == {
        "output[0]": "",
        "output[1]": "",
        "grad:weight": "",
        "grad:unused": "target, reference, golden",
        "grad:x": "",
    }
    # The reference compared with itself: bit for bit the same errors, so the state was restored each time.
    assert all(t.target_error == t.reference_error for t in case.tensors)
    assert case.repeats_equal
    assert case.narrow_golden_ops == ()
    assert case.target_is_reference
    assert judged.verdict is Verdict.INCONCLUSIVE


def test_golden_is_really_fp64(tmp_path: Path) -> None:
    # In fp32 the reference errs by fp32 rounding; a golden run narrowed by .float() would show no error.
    file = write(tmp_path / "norm.py", _LAYER)
    verified, _ = verify(layer_spec(file, values={"rows": 6, "dim": 8}), tmp_path)
    error = verified.cases[0].tensors[0].reference_error
    assert error is not None
    assert 1e-9 < error < 1e-5


def test_a_checkpointed_layer_is_no_longer_the_reference(tmp_path: Path) -> None:
    file = write(
        tmp_path / "norm.py", _LAYER.replace("self.num_calls += 1", "pass").replace("* self.num_calls", "")
    )
    spec = layer_spec(
        file,
        values={"rows": 6, "dim": 8},
        target={"blocks": ("Norm",)},
        measure=Measure(checkpoint="full"),
    )
    verified, judged = verify(spec, tmp_path)
    assert not verified.cases[0].target_is_reference
    assert judged.verdict is Verdict.LIMITED  # the unused parameter


def test_a_reference_that_narrows_unseen_is_inconclusive(tmp_path: Path) -> None:
    hidden = """def reference(score, value):
    with torch._C.DisableTorchFunction():
        score = score.float()
"""
    file = write(tmp_path / "k.py", _KERNEL.replace("def reference(score, value):\n", hidden))
    spec = kernel_spec(file, values={"rows": 4, "dim": 2}, subject=Subject(provider="target"))
    verified, judged = verify(spec, tmp_path)
    assert "aten._to_copy.default (float32)" in verified.cases[0].narrow_golden_ops
    assert judged.verdict is Verdict.INCONCLUSIVE


def test_a_variant_of_a_kernels_source_is_checked_against_the_recipes_reference(tmp_path: Path) -> None:
    write(tmp_path / "impl.py", "def twice(x):\n    return x + x\n")
    recipe = """
import torch
from impl import twice

def inputs(*, rows, device, dtype):
    return {"x": torch.randn(rows, device=device, dtype=dtype, requires_grad=True)}

def reference(x):
    return 2 * x

def target(x):
    return twice(x)
"""
    file = write(tmp_path / "double.py", recipe)
    wrong = write(tmp_path / "v1" / "impl.py", "def twice(x):\n    return x + x.detach()\n")
    spec = kernel_spec(
        file,
        values={"rows": 8},
        target={"source": "impl.py"},
        subject=Subject(variant="v1", overlay=(overlay_file(wrong, replaces="impl.py"),), provider="target"),
    )
    _, judged = verify(spec, tmp_path)
    assert {row.tensor: row.verdict for row in judged.cases[0].rows} == {
        "output": Verdict.PASS,
        "grad:x": Verdict.FAIL,
    }


def test_state_is_copied_by_name_and_other_parameters_are_refused() -> None:
    source, module = nn.Linear(3, 2), nn.Linear(3, 2)
    parameters = {name: p.detach() for name, p in source.named_parameters()}
    module.register_buffer("table", torch.zeros(1))
    assert load_state(module, parameters, {"freqs": torch.zeros(2)}) == ["freqs", "table"]
    assert torch.equal(module.weight, source.weight)
    with pytest.raises(PerfkitError, match="different parameters: bias"):
        load_state(nn.Linear(3, 2, bias=False), parameters, {})
    with pytest.raises(PerfkitError, match="different parameters: bias, weight"):
        load_state(nn.Linear(3, 4), parameters, {})


def test_a_golden_run_that_is_too_large_says_so(tmp_path: Path) -> None:
    full = "import torch\n" + _KERNEL.replace(
        "def reference(score, value):\n",
        "def reference(score, value):\n"
        "    if score.dtype == torch.float64:\n"
        "        raise torch.OutOfMemoryError('CUDA out of memory.')\n",
    )
    spec = kernel_spec(
        write(tmp_path / "k.py", full), values={"rows": 4, "dim": 2}, subject=Subject(provider="target")
    )
    with pytest.raises(PerfkitError, match="The golden run of toy, case tiny does not fit into memory"):
        run(spec, slot_dir=tmp_path)


def test_fp64_cannot_be_verified(tmp_path: Path) -> None:
    file = write(tmp_path / "norm.py", _LAYER)
    with pytest.raises(PerfkitError, match="Nothing can be verified in fp64"):
        run(layer_spec(file, values={"rows": 6, "dim": 8}, dtype="fp64"), slot_dir=tmp_path)
