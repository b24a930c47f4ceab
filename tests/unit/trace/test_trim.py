"""Trimming keeps what belongs to the window, and device work where it was launched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from perfkit.errors import UsageError
from perfkit.stages.trace_trim import trim_trace
from perfkit.trace import kernel_sum_us, read_trace
from perfkit.trace.summary import summarise
from perfkit.trace.trim import Cut, trim
from tests.support.traces import annotation, kernel, launch, op, shared_trace, write_trace


def flow(phase: str, ident: int, ts: float) -> dict[str, Any]:
    return {"ph": phase, "id": ident, "pid": 0, "tid": 7, "ts": ts, "cat": "ac2g", "name": "ac2g"}


def events() -> list[dict[str, Any]]:
    made = [{"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "p"}}, op("whole", 0, 1000)]
    for step in range(3):
        start = 100 * step
        made += [
            annotation(f"ProfilerStep#{step}", start, 100),
            annotation(f"part {step}", start + 10, 20),
            op(f"op{step}", start + 12, 5),
            launch(step, start + 15),
            flow("s", step, start + 15),
            kernel(f"late{step}", start + 500, 10, correlation=step),
            flow("f", step, start + 500),
            kernel(f"own{step}", start + 50, 10),
        ]
    return made


def kept(tmp_path: Path, **conditions: Any) -> set[str]:
    out = tmp_path / "out.json"
    trim_trace(write_trace(tmp_path, events(), traceName="x"), out=out, overwrite=True, **conditions)
    trace = read_trace(out)
    assert "traceName" in trace.header
    return {e.name if e.ph in "XM" else f"{e.ph}{e.id}" for e in trace.events}


def test_steps_take_their_device_work_along(tmp_path: Path) -> None:
    expected = {"process_name", "whole", "ProfilerStep#1", "part 1", "op1", "cudaLaunchKernel"}
    assert kept(tmp_path, steps=(1, 2)) == expected | {"late1", "own1", "s1", "f1"}


def test_annotations(tmp_path: Path) -> None:
    found = kept(tmp_path, annotation="^part [02]$")
    assert {"late0", "late2", "op0", "op2", "s0", "f2"} <= found
    assert not {"late1", "own0", "op1", "f1"} & found


def test_a_time_span_takes_what_overlaps_it(tmp_path: Path) -> None:
    assert kept(tmp_path, time_us=(505, 600)) == {"process_name", "whole", "late0"}


def test_categories_and_combined_conditions(tmp_path: Path) -> None:
    kernels = {f"{kind}{step}" for kind in ("late", "own") for step in range(3)}
    assert {
        n for n in kept(tmp_path, cats=frozenset({"kernel"})) if n[-1].isdigit() and len(n) > 2
    } == kernels
    found = kept(tmp_path, steps=(0, 2), annotation="part", cats=frozenset({"kernel"}))
    assert {n for n in found if n in kernels} == {"late0", "late1"}


@pytest.mark.parametrize("conditions", [{}, {"steps": (7, 9)}, {"annotation": "("}, {"annotation": "nope"}])
def test_nothing_to_keep_is_a_usage_error(tmp_path: Path, conditions: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        kept(tmp_path, **conditions)
    assert not (tmp_path / "out.json").exists()


def test_batches_do_not_change_the_cut() -> None:
    path = shared_trace("h200/fsdp/rank0_trace")
    cut = Cut(steps=(1, 2))
    small = [bytes(raw) for raw in trim(path, cut, batch_bytes=1 << 16).raws]
    assert small == [bytes(raw) for raw in trim(path, cut).raws]


def test_a_step_of_a_real_trace_keeps_its_kernel_time(tmp_path: Path) -> None:
    path = shared_trace("h200/graphed_callables24")
    whole = summarise([read_trace(path).events], trace="")
    trim_trace(path, out=tmp_path / "x.json.gz", steps=(1, 2))
    assert kernel_sum_us(read_trace(tmp_path / "x.json.gz")) == whole.steps[1].summed_ns / 1000
