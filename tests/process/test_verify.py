"""verify_numerics in real children: Triton, compiled blocks, and variants against the unmodified code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from perfkit.launch import run_slot
from perfkit.numerics import Judgement, Verdict, judge
from perfkit.places import recipes_dir
from perfkit.wire.payloads import Verified
from perfkit.wire.results import Result
from perfkit.wire.spec import Measure, Spec, Subject
from tests.support.specs import kernel_spec, layer_spec, overlay_file, variant, write

pytestmark = pytest.mark.process

_LAYER = """
from torch import nn
from parts import scaled

class Block(nn.Module):
    def __init__(self, dim, device, dtype):
        super().__init__()
        self.inner = nn.Linear(dim, dim, device=device, dtype=dtype)

    def forward(self, x):
        return scaled(self.inner(x))

def build(*, dim, device, dtype, **_):
    return Block(dim, device, dtype)

def inputs(*, rows, dim, device, dtype):
    import torch
    return {"x": torch.randn(rows, dim, device=device, dtype=dtype, requires_grad=True)}
"""
_PARTS = "def scaled(x):\n    return 3 * x.float().sigmoid().type_as(x)\n"


def slot(spec: Spec, tmp_path: Path) -> Result:
    slot_dir = tmp_path / "slot"
    slot_dir.mkdir()
    return run_slot(spec, slot_dir=slot_dir)


def verify(spec: Spec, tmp_path: Path) -> tuple[Verified, Judgement]:
    result = slot(spec, tmp_path)
    assert result.fate == "ok", result
    assert isinstance(result.payload, Verified)
    return result.payload, judge(result.payload.cases, fudge_factor=2.0, atol=0.0)


def layer(tmp_path: Path, **fields: Any) -> Spec:
    folder = tmp_path / "model"
    write(folder / "parts.py", _PARTS)
    file = write(folder / "block.py", _LAYER)
    fields = {"program": "verify_numerics", "measure": Measure(verify_seeds=(0, 5)), **fields}
    return layer_spec(file, values={"rows": 16, "dim": 32}, target={"blocks": ("Block",)}, **fields)


def test_the_triton_recipe_passes_in_the_interpreter(tmp_path: Path) -> None:
    spec = kernel_spec(
        recipes_dir() / "kernels" / "rms-norm.py",
        program="verify_numerics",
        values={"rows": 5, "cols": 48},
        target={"source": "rms_norm_triton.py"},
        subject=Subject(provider="target"),
    )
    verified, judged = verify(spec, tmp_path)
    assert verified.subject_ran == "triton interpreter"
    assert judged.verdict is Verdict.PASS, judged


def test_a_triton_variant_with_a_wrong_backward_fails(tmp_path: Path) -> None:
    folder = recipes_dir() / "kernels"
    text = (folder / "rms_norm_triton.py").read_text(encoding="ascii")
    right = "wdy_RC - normed_RC * mean_R[:, None]"
    assert right in text
    wrong = write(tmp_path / "v1" / "rms_norm_triton.py", text.replace(right, "wdy_RC"))
    overlay = overlay_file(wrong, replaces="rms_norm_triton.py")
    spec = kernel_spec(
        folder / "rms-norm.py",
        program="verify_numerics",
        values={"rows": 5, "cols": 48},
        target={"source": "rms_norm_triton.py"},
        subject=Subject(variant="v1", overlay=(overlay,), provider="target"),
    )
    _, judged = verify(spec, tmp_path)
    verdicts = {row.tensor: row.verdict for row in judged.cases[0].rows}
    assert verdicts == {"output": Verdict.PASS, "grad:x": Verdict.FAIL, "grad:weight": Verdict.PASS}


def test_a_compiled_block_passes_and_says_that_it_was_compiled(tmp_path: Path) -> None:
    verified, judged = verify(layer(tmp_path, subject=Subject(tree="block")), tmp_path)
    assert verified.subject_ran == "compiled (1 graphs)"
    assert judged.verdict is Verdict.PASS, judged
    assert not verified.cases[0].target_is_reference


@pytest.mark.parametrize(
    ("parts", "verdict"),
    [
        ("import torch\ndef scaled(x):\n    return torch.sigmoid(x) * 3\n", Verdict.PASS),
        ("import torch\ndef scaled(x):\n    return torch.sigmoid(x) * 3.001\n", Verdict.FAIL),
    ],
)
def test_a_variant_of_a_layer_is_compared_with_the_unmodified_code(
    tmp_path: Path, parts: str, verdict: Verdict
) -> None:
    overlay = overlay_file(write(tmp_path / "v1" / "parts.py", parts), replaces="parts")
    verified, judged = verify(layer(tmp_path, subject=variant(overlay)), tmp_path)
    assert judged.verdict is verdict, judged
    assert [case.seed for case in verified.cases] == [0, 5]
    assert any("process of their own" in note for note in verified.cases[0].notes)
    assert not list((tmp_path / "slot").rglob("*.pt"))


def test_a_broken_baseline_is_explained(tmp_path: Path) -> None:
    write(tmp_path / "model" / "block.py", _LAYER)
    write(tmp_path / "model" / "parts.py", "def scaled(x):\n    raise ValueError('no scale')\n")
    overlay = overlay_file(write(tmp_path / "v1" / "parts.py", _PARTS), replaces="parts")
    spec = layer_spec(
        tmp_path / "model" / "block.py",
        program="verify_numerics",
        values={"rows": 2, "dim": 4},
        subject=variant(overlay),
    )
    result = slot(spec, tmp_path)
    assert result.fate == "failed"
    assert "ValueError at parts.py:2 in scaled: no scale" in result.reason
