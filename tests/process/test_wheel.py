"""The built wheel alone suffices, in a clean environment and beside names that could collide with ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = [pytest.mark.process, pytest.mark.slow_install]

ROOT = Path(__file__).resolve().parents[2]
TOY = """
import torch
from torch import nn

def make(*, width, device, dtype):
    module = nn.Linear(width, width).to(device, dtype)
    return module, torch.randn(4, width, device=device, dtype=dtype, requires_grad=True)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(ROOT)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    (path,) = out.glob("perfkit-*.whl")
    return path


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Python of an environment that has the wheel, and beside it only what the wheel depends on."""
    home = tmp_path_factory.mktemp("venv")
    venv.create(home, with_pip=False, symlinks=True)
    site = next(home.glob("lib/python*/site-packages"))
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target"]
    subprocess.run([*install, str(site), str(wheel)], check=True, capture_output=True)
    # A plain path: the editable install of this checkout, itself a .pth file there, stays out of it.
    (site / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return home / "bin" / "python"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A user's folder with a harness and recipes of their own."""
    (tmp_path / "harness.py").write_text("raise RuntimeError('the wrong harness')\n")
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "__init__.py").write_text("raise RuntimeError('the wrong recipes')\n")
    (tmp_path / "toy.py").write_text(TOY)
    return tmp_path


def run(python: Path, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [str(python), *words],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def test_the_wheel_holds_everything_and_takes_no_common_name(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "perfkit/_bundled/harness/bootstrap.py" in names
    assert "perfkit/_bundled/harness/programs/time_step.py" in names
    assert "perfkit/_bundled/recipes/layers/llama3-block.py" in names
    assert any(name.startswith("perfkit/report/templates/") for name in names)
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"perfkit"}


def test_perfkit_is_imported_from_the_wheel(python: Path, folder: Path) -> None:
    shown = run(python, "-c", "import perfkit; print(perfkit.__file__)", cwd=folder)
    assert str(python.parents[1]) in shown.stdout, shown.stderr


def test_recipes_and_a_quick_bench(python: Path, folder: Path) -> None:
    listed = run(python, "-m", "perfkit", "recipes", "--json", cwd=folder)
    assert listed.returncode == 0, listed.stderr
    assert {recipe["name"] for recipe in json.loads(listed.stdout)["recipes"]} == {"llama3-block", "rms-norm"}
    words = ("bench", "toy.py:make", "--case", "width=16", "--quick", "--device", "cpu")
    benched = run(python, "-m", "perfkit", *words, cwd=folder)
    assert benched.returncode == 0, benched.stderr
    assert (folder / "reports" / "toy-make-cpu" / "comparison.md").is_file()
