"""Each check, on facts made for it: what is good, what is not, and what it says to do."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import msgspec
import pytest

from perfkit.machine.checks import Check, run_checks, worst
from perfkit.machine.gpus import Gpus, GpuState
from perfkit.machine.load import CpuLoad
from perfkit.machine.state import MachineState, Versions, pinned_version, read_governor, read_state
from perfkit.wire.payloads import MachineFacts

GPU = GpuState(
    index=0,
    name="NVIDIA H200",
    uuid="GPU-aaaa",
    memory_bytes=141 * 2**30,
    process_ids=(),
    sm_clock_mhz=345,
    max_sm_clock_mhz=1980,
    temperature_c=33,
    persistence=True,
)
FACTS = MachineFacts(
    gpus=("NVIDIA H200",),
    cuda_works=True,
    cuda_error="",
    triton_works=True,
    triton_error="",
    compile_works=True,
    compile_error="",
    attention_backends=("flash", "efficient", "math"),
    default_fp32_precision="highest",
    compiler="/usr/bin/gcc",
)
GOOD = MachineState(
    device="cuda:0",
    gpus=Gpus(watched=True, driver="570.1", gpus=(GPU,)),
    gpu=GPU,
    load=CpuLoad(num_cpus=16, busy_cpus=0.3, own_cpus=0.2, load_1min=0.4),
    versions=Versions(torch="2.13.0", triton="3.9.0", triton_wanted="3.9.0"),
    free_disk_bytes=64 * 2**30,
    disk_folder="/data",
    governor="performance",
    torch_facts=FACTS,
)


def with_gpu(**changes: Any) -> MachineState:
    gpu = dataclasses.replace(GPU, **changes)
    return dataclasses.replace(GOOD, gpu=gpu, gpus=dataclasses.replace(GOOD.gpus, gpus=(gpu,)))


def with_facts(**changes: Any) -> MachineState:
    return dataclasses.replace(GOOD, torch_facts=msgspec.structs.replace(FACTS, **changes))


def on_cpu(**changes: Any) -> MachineState:
    nothing = Gpus(watched=False, why_not="NVML does not start: Library Not Found")
    return dataclasses.replace(GOOD, device="cpu", gpu=None, gpus=nothing, **changes)


def found(state: MachineState, name: str) -> Check:
    (check,) = [c for c in run_checks(state) if c.name == name]
    return check


def test_a_fit_machine_has_nothing_to_do() -> None:
    checks = run_checks(GOOD)
    assert worst(checks) == "good"
    assert {c.do for c in checks} == {""}
    assert [c.name for c in checks] == [
        "GPU",
        "GPU processes",
        "GPU slowdown",
        "GPU clocks",
        "CPU load",
        "CPU governor",
        "disk space",
        "torch",
        "triton",
        "C compiler",
        "torch.compile",
        "fp32 matmuls",
        "attention",
    ]


def load(busy_cpus: float) -> MachineState:
    return dataclasses.replace(GOOD, load=dataclasses.replace(GOOD.load, busy_cpus=busy_cpus))


@pytest.mark.parametrize(
    ("state", "name", "verdict", "words"),
    [
        (on_cpu(), "GPU", "warn", "Library Not Found"),
        (
            dataclasses.replace(GOOD, gpu=None, gpus=Gpus(watched=False, why_not="no permission")),
            "GPU",
            "warn",
            "cuda:0 is not watched: no permission",
        ),
        (dataclasses.replace(GOOD, device="cpu", gpu=None), "GPU", "good", "the CPU was asked for"),
        (with_gpu(process_ids=(4242,)), "GPU processes", "bad", "pid 4242"),
        (with_gpu(process_ids=None), "GPU processes", "warn", "does not list"),
        (
            with_gpu(slowdown_reasons=("hardware slowdown",)),
            "GPU slowdown",
            "bad",
            "hardware slowdown at 33 C",
        ),
        (with_gpu(persistence=False), "GPU clocks", "warn", "persistence mode is off"),
        (load(1.2), "CPU load", "warn", "others keep 1.0 of 16 CPUs busy"),
        (load(8.2), "CPU load", "bad", "50.0% of the machine"),
        (dataclasses.replace(GOOD, governor="powersave"), "CPU governor", "warn", "powersave"),
        (
            dataclasses.replace(GOOD, free_disk_bytes=2 * 2**30),
            "disk space",
            "warn",
            "2.00 GiB free at /data",
        ),
        (dataclasses.replace(GOOD, free_disk_bytes=2**20), "disk space", "bad", "1.00 MiB"),
        (
            dataclasses.replace(GOOD, torch_facts=None, torch_error="ImportError: libc10.so"),
            "torch",
            "bad",
            "libc10.so",
        ),
        (with_facts(cuda_works=False, cuda_error="driver too old"), "torch", "bad", "driver too old"),
        (
            dataclasses.replace(
                GOOD, versions=Versions(torch="2.13.0", triton="3.6.0", triton_wanted="3.9.0")
            ),
            "triton",
            "bad",
            "torch 2.13.0 pins 3.9.0",
        ),
        (with_facts(triton_works=False, triton_error="no ptxas"), "triton", "bad", "no ptxas"),
        (
            on_cpu(torch_facts=msgspec.structs.replace(FACTS, triton_works=False, triton_error="no GPU")),
            "triton",
            "warn",
            "no GPU",
        ),
        (with_facts(compiler=""), "C compiler", "bad", "none"),
        (with_facts(compile_works=False, compile_error="gcc failed"), "torch.compile", "bad", "gcc failed"),
        (with_facts(default_fp32_precision="medium"), "fp32 matmuls", "warn", "medium"),
        (with_facts(attention_backends=("math",)), "attention", "warn", "no fused backend"),
        (with_facts(attention_backends=()), "attention", "warn", "none ran"),
    ],
)
def test_what_spoils_a_measurement_is_named(state: MachineState, name: str, verdict: str, words: str) -> None:
    check = found(state, name)
    assert check.state == verdict
    assert words in check.found
    assert bool(check.do) == (verdict != "good")


def test_without_torch_only_torch_itself_is_reported() -> None:
    names = [c.name for c in run_checks(dataclasses.replace(GOOD, torch_facts=None, torch_error="gone"))]
    assert "torch" in names
    assert not {"triton", "C compiler", "torch.compile", "attention"} & set(names)


def test_a_governor_that_cannot_be_read_is_no_check(tmp_path: Path) -> None:
    assert read_governor(tmp_path / "missing") == ""
    assert "CPU governor" not in [c.name for c in run_checks(dataclasses.replace(GOOD, governor=""))]


def test_the_worst_state_wins() -> None:
    checks = [Check(name="a", state=s, found="") for s in ("good", "warn", "bad")]  # type: ignore[arg-type]
    assert worst(checks) == "bad"
    assert worst(checks[:2]) == "warn"
    assert worst([]) == "good"


@pytest.mark.parametrize(
    ("lines", "version"),
    [
        (["numpy", "triton==3.6.0; platform_system == 'Linux'"], "3.6.0"),
        (["triton (==3.5.1)"], "3.5.1"),
        (["triton>=3.0"], ""),
        (["pytorch-triton==1.0"], ""),
        ([], ""),
    ],
)
def test_pinned_versions(lines: list[str], version: str) -> None:
    assert pinned_version("triton", lines) == version


def test_reading_this_machine(tmp_path: Path) -> None:
    state = read_state("cpu", folder=tmp_path / "not" / "there", torch_facts=None, torch_error="not asked")
    assert state.free_disk_bytes > 0
    assert state.disk_folder == str(tmp_path)
    assert state.versions.torch
    assert "torch" in [c.name for c in run_checks(state)]
