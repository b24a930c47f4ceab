"""Targets, digests, regions and the environment record on a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from perfkit.wire.spec import Case, Measure, Spec, Subject, Target
from tests.support.harness import load_harness

load_harness()

from perfkit_harness.assemble import assemble  # noqa: E402
from perfkit_harness.environment import read_environment, settle  # noqa: E402
from perfkit_harness.tensors import digest_state  # noqa: E402
from perfkit_harness.trees import num_graphs  # noqa: E402

pytestmark = pytest.mark.gpu

_RECIPE = Path(__file__).resolve().parents[2] / "recipes" / "layers" / "llama3-block.py"
_VALUES = {"tokens": 64, "dim": 128, "heads": 4, "kv_heads": 2, "ffn": 448}


def _spec(**subject: str) -> Spec:
    target = Target(
        name="llama3-block",
        kind="layer",
        file=str(_RECIPE),
        blocks=("Block",),
        regions=("apply_rope", "RMSNorm.forward"),
    )
    return Spec(
        program="time_step",
        device="cuda:0",
        dtype="bf16",
        target=target,
        case=Case(name="tiny", values=dict(_VALUES)),
        subject=Subject(**subject),
        measure=Measure(),
    )


@pytest.fixture(autouse=True)
def _compiled_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool])
def test_digests_agree_between_devices(dtype: torch.dtype) -> None:
    tensor = torch.randn(1000, 7).to(dtype)
    assert digest_state(None, {"x": tensor}) == digest_state(None, {"x": tensor.cuda()})


@pytest.mark.filterwarnings("ignore")
def test_compiled_regions_agree_with_eager() -> None:
    settle(_spec())
    eager = assemble(_spec())
    expected = eager()
    digest = digest_state(eager.module, eager.inputs)
    regions = assemble(_spec(tree="regions"))
    assert digest_state(regions.module, regions.inputs) == digest
    # Two bf16 units of the largest outputs, which lie between 4 and 8.
    torch.testing.assert_close(regions(), expected, rtol=2e-2, atol=2 * 2**-5)
    assert num_graphs() >= 2
    regions.check_finite()


def test_the_gpu_is_recorded() -> None:
    gpu = read_environment(_spec(), device=torch.device("cuda:0"), target_file=_RECIPE).gpu
    assert gpu is not None
    assert gpu.uuid
    assert min(gpu.num_sms, gpu.memory_bytes, gpu.l2_bytes) > 0
