"""Settings before the first op, and the record of the environment."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import perfkit_harness.environment as environment
import pytest
import torch

from perfkit.wire.spec import Measure
from tests.support.specs import kernel_spec, layer_spec, write

_CPU = torch.device("cpu")
_CPUINFO = """processor : {0}
model name\t: Test CPU
physical id : 0
core id : {1}
"""


@pytest.fixture
def restored_settings() -> Iterator[None]:
    threads, precision = torch.get_num_threads(), torch.get_float32_matmul_precision()
    yield
    torch.set_num_threads(threads)
    torch.set_float32_matmul_precision(precision)


@pytest.mark.usefixtures("restored_settings")
def test_settings_are_applied_and_recorded() -> None:
    spec = layer_spec(None, measure=Measure(num_threads=1, fp32_precision="tf32"))
    environment.settle(spec)
    found = environment.read_environment(spec, device=_CPU, target_file=None)
    assert (found.num_threads, found.fp32_precision, found.gpu) == (1, "tf32", None)
    environment.settle(msgspec.structs.replace(spec, measure=Measure(num_threads=1)))
    again = environment.read_environment(spec, device=_CPU, target_file=None)
    assert again.fp32_precision == "ieee"
    assert again.torch == torch.__version__
    assert again.cpu


@pytest.mark.usefixtures("restored_settings")
def test_legacy_readers_of_the_precision_still_work() -> None:
    environment.set_fp32_precision("tf32")
    assert torch.get_float32_matmul_precision() == "high"
    assert torch.backends.cuda.matmul.allow_tf32


def test_hyperthreads_of_one_core_count_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    blocks = "\n".join(_CPUINFO.format(cpu, cpu // 2) for cpu in range(8))
    cpuinfo = write(tmp_path / "cpuinfo", blocks)
    quota = write(tmp_path / "cpu.max", "max 100000\n")
    monkeypatch.setattr(environment, "CPUINFO", cpuinfo)
    monkeypatch.setattr(environment, "CGROUP_QUOTA", quota)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3, 4, 5})
    assert environment.num_physical_cores() == 3
    write(quota, "150000 100000\n")
    assert environment.num_physical_cores() == 2
    cpuinfo.unlink()
    write(quota, "max 100000\n")
    assert environment.num_physical_cores() == 6


def test_the_driver_is_read_where_linux_states_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(environment, "DRIVER_FILES", (tmp_path / "version", tmp_path / "proc"))
    assert environment.driver_version() is None
    line = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\n"
    write(tmp_path / "proc", line)
    assert environment.driver_version() == "580.65.06"
    write(tmp_path / "version", "575.51.03\n")
    assert environment.driver_version() == "575.51.03"


def test_libraries_that_the_target_imports_are_recorded_with_their_versions(tmp_path: Path) -> None:
    inside = "def f():\n    from msgspec.json import encode\n    import absent\n"
    text = "import torch, os\nfrom . import x\n" + inside
    file = write(tmp_path / "recipe.py", text)
    spec = kernel_spec(file, target={"source": "numpy.linalg"})
    found = environment.read_environment(spec, device=_CPU, target_file=file)
    assert found.packages["msgspec"] == msgspec.__version__
    assert set(found.packages) == {"msgspec", "numpy"}
    assert found.target_file == str(file)


@pytest.mark.parametrize(
    ("variables", "cache"),
    [
        ({}, "shared"),
        ({"TORCHINDUCTOR_CACHE_DIR": "/x"}, "private"),
        ({"TORCHINDUCTOR_CACHE_DIR": "/x", "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}, "off"),
    ],
)
def test_the_compile_cache_is_named(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], cache: str
) -> None:
    for name in ("TORCHINDUCTOR_CACHE_DIR", "TORCHINDUCTOR_FORCE_DISABLE_CACHES"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    spec = layer_spec(None)
    assert environment.read_environment(spec, device=_CPU, target_file=None).compile_cache == cache
