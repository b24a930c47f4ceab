"""The shipped recipes are correct on this GPU, and a wrong kernel is found there too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from perfkit.launch import run_slot
from perfkit.numerics import Judgement, Verdict, judge
from perfkit.places import recipes_dir
from perfkit.recipe import read_recipe
from perfkit.wire.payloads import Verified
from perfkit.wire.spec import Case, Spec, Subject, Target
from tests.support.specs import overlay_file, write

pytestmark = pytest.mark.gpu

RMS_NORM = recipes_dir() / "kernels" / "rms-norm.py"
LLAMA = recipes_dir() / "layers" / "llama3-block.py"
SMALL = {"tokens": 512, "dim": 1024, "heads": 8, "kv_heads": 2, "ffn": 2048}


def spec_of(file: Path, *, case: str, values: dict[str, Any] | None = None, **fields: Any) -> Spec:
    recipe = read_recipe(file)
    target = Target(
        name=recipe.name,
        kind=recipe.kind,
        file=str(file),
        blocks=recipe.blocks,
        regions=recipe.regions,
        source=recipe.source,
    )
    values = values or dict({**recipe.cases, **recipe.edge_cases}[case])
    fields = {"dtype": "bf16", **fields}
    return Spec(
        program="verify_numerics",
        device="cuda:0",
        target=target,
        case=Case(name=case, values=values),
        **fields,
    )


def verify(spec: Spec, tmp_path: Path) -> tuple[Verified, Judgement]:
    result = run_slot(spec, slot_dir=tmp_path)
    assert result.fate == "ok", result
    assert isinstance(result.payload, Verified)
    return result.payload, judge(result.payload.cases, fudge_factor=2.0, atol=0.0, tolerance=spec.tolerance)


@pytest.mark.parametrize(
    "case", ["16384x8192", "1048576x128", "one", "tail", "above", "tall", "near_zero", "large"]
)
def test_rms_norm_is_correct_in_bf16(tmp_path: Path, case: str) -> None:
    verified, judged = verify(spec_of(RMS_NORM, case=case, subject=Subject(provider="target")), tmp_path)
    assert verified.subject_ran == "triton"
    assert all(checked.repeats_equal for checked in verified.cases)
    assert judged.verdict is Verdict.PASS, judged


def test_a_wrong_mask_is_found(tmp_path: Path) -> None:
    text = (RMS_NORM.parent / "rms_norm_triton.py").read_text(encoding="ascii")
    right = "mean_R = tl.sum(wdy_RC * normed_RC, axis=1) / cols"
    assert right in text
    variant = write(
        tmp_path / "v1" / "rms_norm_triton.py", text.replace(right, right.replace("cols", "TILE_C"))
    )
    subject = Subject(
        variant="v1", overlay=(overlay_file(variant, replaces="rms_norm_triton.py"),), provider="target"
    )
    _, judged = verify(spec_of(RMS_NORM, case="above", subject=subject), tmp_path)
    assert judged.verdict is Verdict.FAIL


@pytest.mark.parametrize("tree", ["regions", "block"])
def test_compiled_llama_blocks_are_correct_in_bf16(tmp_path: Path, tree: Any) -> None:
    spec = spec_of(LLAMA, case="small", values=SMALL, subject=Subject(tree=tree))
    verified, judged = verify(spec, tmp_path)
    assert verified.subject_ran.startswith("compiled")
    assert verified.cases[0].narrow_golden_ops == ()
    assert judged.verdict is Verdict.PASS, judged
