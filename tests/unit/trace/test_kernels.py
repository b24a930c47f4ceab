"""The kernel table: steps, sums, unions, compiled regions, CPU ops."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfkit.errors import PerfkitError
from perfkit.trace import Family, kernel_sum_us, kernel_table, kernel_union_us, read_trace
from tests.support.traces import annotation, kernel, launch, make_trace, op, shared_trace


def two_steps() -> list[dict[str, object]]:
    return [
        annotation("ProfilerStep#0", 100, 100),
        annotation("ProfilerStep#1", 200, 100),
        annotation("ProfilerStep#2", 300, 1),  # opened by the last step(), empty
        annotation("Torch-Compiled Region: 0/0", 110, 20),
        launch(1, 50),
        launch(2, 115),
        launch(3, 150),
        launch(4, 250),
        kernel("warm_up", 60, 1000, correlation=1),
        kernel("k", 120, 10, correlation=2),
        kernel("k", 160, 20, correlation=3),
        kernel("k", 900, 40, correlation=4),
        kernel("Memset (Device)", 915, 5, correlation=4, stream=8, cat="gpu_memset"),
        kernel("unlinked", 170, 2),
    ]


def test_rows_are_per_step_and_split_by_compiled_region(tmp_path: Path) -> None:
    rows = kernel_table(make_trace(tmp_path, two_steps()), num_steps=2)
    assert [(r.name, r.num_calls, r.time_us, r.time_per_call_us, r.inside_compiled_region) for r in rows] == [
        ("k", 1.0, 30.0, 30.0, False),
        ("k", 0.5, 5.0, 10.0, True),
        ("Memset (Device)", 0.5, 2.5, 5.0, False),
        ("unlinked", 0.5, 1.0, 2.0, False),
    ]
    assert rows[2].family is Family.MEMSET
    assert sum(r.share for r in rows) == pytest.approx(1)


def test_sum_counts_overlap_twice_and_union_once(tmp_path: Path) -> None:
    trace = make_trace(tmp_path, two_steps())
    assert kernel_sum_us(trace) == (10 + 20 + 40 + 5 + 2) / 2
    assert kernel_union_us(trace) == (10 + 20 + 40) / 2


def test_a_trace_without_steps_needs_the_number(tmp_path: Path) -> None:
    trace = make_trace(tmp_path, [kernel("k", 0, 10), kernel("k", 20, 10)])
    assert kernel_sum_us(trace, num_steps=4) == 5.0
    with pytest.raises(PerfkitError, match="unknown number"):
        kernel_sum_us(trace)


def test_a_wrong_number_of_steps_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PerfkitError, match="shows 2 profiler steps, 3 were expected"):
        kernel_table(make_trace(tmp_path, two_steps()), num_steps=3)


def test_cpu_rows_count_each_nanosecond_once(tmp_path: Path) -> None:
    events = [
        op("aten::linear", 100, 100),
        op("aten::addmm", 110, 60),
        op("aten::copy_", 120, 20.5),
        op("aten::mul", 300, 7),
        op("aten::mul", 300, 9, tid=2),
    ]
    trace = make_trace(tmp_path, events)
    rows = {r.name: r for r in kernel_table(trace, num_steps=1)}
    assert {name: r.time_us for name, r in rows.items()} == {
        "aten::linear": 40.0,
        "aten::addmm": 39.5,
        "aten::copy_": 20.5,
        "aten::mul": 16.0,
    }
    assert kernel_sum_us(trace, num_steps=1) == 116.0
    assert kernel_union_us(trace, num_steps=1) == 109.0


@pytest.mark.parametrize(
    ("name", "num_calls", "compiled"),
    [
        ("eager_2layer", 230, False),
        ("blockcompile_2layer", 116, True),
        ("cudagraph_whole", 230, False),
        ("graphed_callables24", 1307, False),
    ],
)
def test_real_traces(name: str, num_calls: int, compiled: bool) -> None:
    trace = read_trace(shared_trace(f"h200/{name}"))
    rows = kernel_table(trace, num_steps=3)
    assert sum(r.num_calls for r in rows) == pytest.approx(num_calls)
    assert any(r.inside_compiled_region for r in rows) is compiled
    assert sum(r.time_us for r in rows) == pytest.approx(kernel_sum_us(trace), rel=1e-12)


def test_triton_kernels_of_compiled_blocks_run_inside_the_region() -> None:
    rows = kernel_table(read_trace(shared_trace("h200/blockcompile_2layer")), num_steps=3)
    assert all(r.inside_compiled_region for r in rows if r.name.startswith("triton_"))


def test_the_2021_schema_has_steps_launches_and_kernels() -> None:
    trace = read_trace(shared_trace("public/kineto/resnet50_2021_schema"))
    rows = kernel_table(trace, num_steps=6)
    assert rows[0].family is Family.CONVOLUTION
    assert kernel_union_us(trace) <= kernel_sum_us(trace)
