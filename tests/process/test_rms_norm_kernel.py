"""The Triton RMSNorm against float64, in Triton's interpreter.

The interpreter truncates to bf16 where a GPU rounds, so the kernels are checked in fp32 here; the GPU
tests check bf16.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from perfkit.places import recipes_dir

pytestmark = pytest.mark.process

SCRIPT = """
import importlib.util, json, sys
import torch

folder = sys.argv[1]
sys.path.insert(0, folder)
spec = importlib.util.spec_from_file_location("recipe", folder + "/rms-norm.py")
recipe = importlib.util.module_from_spec(spec)
spec.loader.exec_module(recipe)

def errors(x, weight, dy):
    leaves = [x.detach().requires_grad_(), weight.detach().requires_grad_()]
    wide = [leaf.detach().double().requires_grad_() for leaf in leaves]
    y, y64 = recipe.target(*leaves), recipe.reference(*wide)
    mine = (y, *torch.autograd.grad(y, leaves, dy))
    golden = (y64, *torch.autograd.grad(y64, wide, dy.double()))
    return [float((a - g).abs().max() / g.abs().max()) for a, g in zip(mine, golden)]

found = {}
for name, case in (recipe.cpu_cases | recipe.edge_cases).items():
    torch.manual_seed(0)
    made = recipe.inputs(**case, device="cpu", dtype=torch.float32)
    found[name] = errors(made["x"], made["weight"], torch.randn_like(made["x"]))
x = torch.randn(64, 6, 5)
found["3d"] = errors(x, torch.randn(5), torch.randn_like(x))
found["strided"] = errors(x.transpose(0, 2), torch.randn(64), torch.randn(64, 6, 5).transpose(0, 2))
x = torch.randn(3, 4, requires_grad=True)
weight = torch.randn(4, requires_grad=True)
(expanded,) = torch.autograd.grad(recipe.target(x, weight).sum(), [x])
(golden,) = torch.autograd.grad(recipe.reference(x.double(), weight.double()).sum(), [x])
found["expanded_dy"] = [float((expanded - golden).abs().max() / golden.abs().max())]
import rms_norm_triton
rms_norm_triton._num_sms = lambda device: 50  # so many partial sums that adding them takes two rounds
x = torch.randn(90, 2049)
found["many_parts"] = errors(x, torch.randn(2049), torch.randn_like(x))
refused = []
for bad in (torch.zeros(1, 8, dtype=torch.float64), torch.zeros(1, 40000)):
    try:
        recipe.target(bad, torch.zeros(bad.shape[-1], dtype=bad.dtype))
    except ValueError as error:
        refused.append(str(error))
json.dump({"errors": found, "refused": refused}, sys.stdout)
"""


@pytest.fixture(scope="module")
def answer() -> dict[str, dict[str, list[float]]]:
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(recipes_dir() / "kernels")],
        env=os.environ | {"TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    found: dict[str, dict[str, list[float]]] = json.loads(run.stdout)
    return found


def test_output_and_gradients_are_close_to_float64(answer: dict[str, dict[str, list[float]]]) -> None:
    assert {"tiny", "small", "tail", "one", "tall", "3d", "strided", "expanded_dy", "many_parts"} <= set(
        answer["errors"]
    )
    wrong = {name: found for name, found in answer["errors"].items() if not max(found) < 1e-5}
    assert wrong == {}


def test_what_would_lose_precision_or_not_fit_is_refused(answer: dict[str, list[str]]) -> None:
    assert len(answer["refused"]) == 2
    assert "float64" in answer["refused"][0]
    assert "32768" in answer["refused"][1]
