"""Profiled slots of a layer: kernels by family, and ops that the compiler left to torch."""

from __future__ import annotations

from pathlib import Path

from perfkit.stages.layer_profile import matrix_rows, traced_kernels
from perfkit.wire.payloads import KernelRun, StepTimes, Timing
from perfkit.wire.results import Result, SlotRecord
from perfkit.wire.spec import Case, Spec, Subject
from tests.support.traces import annotation, kernel, launch, make_trace

RUN = KernelRun(direction="full", cache="warm", time_us=18.0, num_kernels=3.0, names_sha256="n")
CASE = Case(name="4k", values={})


def record(*, trace_file: str = "", payload: bool = True) -> SlotRecord:
    times = StepTimes(
        timings=(
            Timing(direction="full", launch="launch", cache="warm", samples_us=(20.0, 22.0, 21.0)),
            Timing(direction="full", launch="graph", cache="warm", fate="not_capturable", reason="a sync"),
        ),
        kernel_runs=(
            KernelRun(direction="full", cache="warm", time_us=18.0, num_kernels=3.0, names_sha256="n"),
        ),
        peak_memory_bytes=1024,
        trace_file=trace_file,
        num_traced_steps=1 if trace_file else 0,
    )
    spec = Spec(
        program="take_profile",
        device="cuda:0",
        subject=Subject(tree="block"),
        case=Case(name="4k", values={}),
    )
    result = (
        Result(spec_hash="h", fate="ok", payload=times)
        if payload
        else Result(spec_hash="h", fate="died", reason="r")
    )
    return SlotRecord(slot="slot", stage="profile", spec=spec, result=result)


def test_a_row_per_launch_state_and_kernels_only_where_they_were_looked_at() -> None:
    launched, replayed = matrix_rows([record()])
    assert launched.wall is not None
    assert launched.wall.median == 21.0
    assert launched.kernel is not None
    assert (launched.num_kernels, launched.peak_memory_bytes) == (3.0, 1024)
    assert (replayed.wall, replayed.kernel, replayed.fate, replayed.reason) == (
        None,
        None,
        "not_capturable",
        "a sync",
    )


def test_a_slot_that_died_keeps_its_row() -> None:
    (row,) = matrix_rows([record(payload=False)])
    assert (row.wall, row.fate, row.reason) == (None, "died", "r")


def test_kernels_of_torch_inside_compiled_code_are_named(tmp_path: Path) -> None:
    events = [
        annotation("Torch-Compiled Region: 0/0", 100, 50),
        *(launch(1, 110), launch(2, 120), launch(3, 130), launch(4, 200)),
        kernel("void at::native::elementwise_kernel<128, complex multiply>", 1000, 7, correlation=1),
        kernel("triton_poi_fused_mul_0", 1010, 5, correlation=2),
        kernel("nvjet_sm90_tst_128x256_64x4_2x1_v_bz_coopA_NTN", 1020, 9, correlation=3),
        kernel("void at::native::elementwise_kernel<128, outside>", 1030, 3, correlation=4),
    ]
    (tmp_path / "slot").mkdir()
    trace = make_trace(tmp_path / "slot", events)
    found = traced_kernels([record(trace_file=trace.path.name)], slots_dir=tmp_path)
    (note,) = found.notes
    assert "block on 4k" in note
    assert "1 launches" in note
    assert "7 us" in note
    assert "complex multiply" in note
    assert sum(row.time_us for row in found.families) == 24.0
    assert found.kernels[0].name.startswith("nvjet")
