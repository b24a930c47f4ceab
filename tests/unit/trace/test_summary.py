"""Summaries: exact unions, steps, graph launches, and the published numbers of real traces."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfkit.trace.groups import DEFAULT_LANES
from perfkit.trace.intervals import arrays, covered_by_both_ns, covered_ns, union
from perfkit.trace.stream import stream_trace
from perfkit.trace.summary import TraceSummary, summarise
from tests.support.traces import annotation, kernel, launch, shared_trace, write_trace

PAIRS = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 12)).map(lambda p: (p[0], p[0] + p[1])), max_size=20
)


def summary_of(path: Path) -> TraceSummary:
    return summarise((b.events for b in stream_trace(path)), trace=str(path))


def points(pairs: list[tuple[int, int]]) -> set[int]:
    return {point for start, end in pairs for point in range(start, end)}


@given(PAIRS, PAIRS)
def test_unions_and_overlaps_equal_counting_every_nanosecond(
    one: list[tuple[int, int]], two: list[tuple[int, int]]
) -> None:
    assert covered_ns(*arrays(one)) == len(points(one))
    assert covered_by_both_ns(*arrays(one), *arrays(two)) == len(points(one) & points(two))
    starts, ends = union(*arrays(one))
    assert np.all(starts < ends)
    assert np.all(ends[:-1] < starts[1:])


def test_window_busy_idle_and_exposed_communication(tmp_path: Path) -> None:
    events = [
        kernel("k", 100, 10),
        kernel("k", 105, 10, stream=8),
        kernel("ncclDevKernel_AllGather_RING_LL(x)", 112, 10, stream=9),
        kernel("Memset (Device)", 130, 1, cat="gpu_memset"),
        kernel("k", 199.999, 0.001),
    ]
    (device,) = summary_of(write_trace(tmp_path, events)).devices
    assert (device.window_ns, device.busy_ns, device.idle_ns) == (100_000, 23_001, 76_999)
    assert (device.compute_ns, device.communication_ns) == (15_001, 10_000)
    assert (device.overlap_ns, device.exposed_communication_ns) == (3_000, 7_000)
    assert (device.num_slices, device.num_streams) == (5, 3)
    groups = {g.name: (g.num_slices, g.summed_ns, g.covered_ns) for g in device.groups}
    assert groups["compute"] == (3, 20_001, 15_001)
    assert groups["all_gather"] == (1, 10_000, 10_000)


def test_steps_count_slices_where_they_were_launched(tmp_path: Path) -> None:
    events = [
        annotation("ProfilerStep#0", 0, 100),
        annotation("ProfilerStep#1", 100, 100),
        annotation("ProfilerStep#2", 200, 5),
        launch(1, 10),
        launch(2, 150, name="cudaGraphLaunch"),
        launch(3, 300),
        kernel("a", 500, 10, correlation=1),
        kernel("b", 520, 10, correlation=2),
        kernel("b", 540, 20, correlation=2),
        kernel("c", 600, 5, correlation=3),
        kernel("d", 50, 1),
    ]
    summary = summary_of(write_trace(tmp_path, events))
    assert [(s.name, s.num_slices, s.summed_ns, s.span_ns) for s in summary.steps] == [
        ("ProfilerStep#0", 2, 11_000, 460_000),
        ("ProfilerStep#1", 2, 30_000, 40_000),
    ]
    (graph,) = summary.graph_launches
    assert (graph.call, graph.slices_per_launch, graph.num_launches) == ("cudaGraphLaunch", 2, 1)
    lost = summary.unattributed
    assert (lost.num_without_launch, lost.num_outside_steps, lost.outside_steps_ns) == (1, 1, 5_000)
    assert lost.num_unclassified == 5
    assert set(summary.step_spread) == {"cpu_ns", "busy_ns", "span_ns"}


def test_no_device_slices(tmp_path: Path) -> None:
    summary = summary_of(write_trace(tmp_path, [annotation("x", 0, 1)]))
    assert (summary.num_measured_slices, summary.devices, summary.steps) == (0, (), ())


def test_batches_do_not_change_the_answer() -> None:
    path = shared_trace("h200/pp/rank1_trace")
    small = summarise((b.events for b in stream_trace(path, batch_bytes=1 << 16)), trace=str(path))
    assert small == summary_of(path)


def test_known_numbers_of_a_large_training_trace() -> None:
    (device,) = summary_of(shared_trace("public/hta/nccl2020_216k_events")).devices
    assert (device.window_ns, device.busy_ns, device.compute_ns) == (
        1_732_965_000,
        1_000_613_000,
        620_516_000,
    )
    assert device.busy_ns + device.idle_ns == device.window_ns


def test_known_idle_share_of_a_decode_step() -> None:
    (device,) = summary_of(shared_trace("public/tracelens/vllm_decode_hipgraph")).devices
    assert 100 * device.idle_ns / device.window_ns == pytest.approx(0.237, abs=0.0005)


@pytest.mark.parametrize(
    ("name", "slices"),
    [
        ("public/tracelens/vllm_decode_hipgraph", 421),
        ("public/tracelens/sglang_decode_hipgraph", 544),
        ("h200/cudagraph_whole", 230),
        ("h200/cudagraph_branches", 258),
    ],
)
def test_slices_per_graph_launch(name: str, slices: int) -> None:
    assert summary_of(shared_trace(name)).graph_launches[0].slices_per_launch == slices


@pytest.mark.parametrize(
    ("name", "unlinked"),
    [("hta/compile_cudagraph_nccl_rank0", 872), ("tracelens/mi300_resnet_ddp_unmatched", 968)],
)
def test_slices_without_a_launch_are_counted(name: str, unlinked: int) -> None:
    assert summary_of(shared_trace(f"public/{name}")).unattributed.num_without_launch == unlinked


@pytest.mark.parametrize(
    ("name", "collective", "group"),
    [
        ("ncclDevKernel_AllGather_RING_LL(x)", "_allgather_base", "all_gather"),
        ("ncclDevKernel_AllGather_RING_LL(x)", "", "all_gather"),
        ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(x)", "", "reduce_scatter"),
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "", "all_reduce"),
        ("ncclKernel_Reduce_RING_LL_Sum_float(x)", "", "reduce"),
        ("ncclDevKernel_SendRecv(x)", "", "send_recv"),
        ("ncclDevKernel_SendRecv(x)", "all_to_allv", "all_to_all"),
        ("ncclDevKernel_Generic(x)", "", "other_communication"),
        ("ncclDevKernel_Generic(x)", "barrier", "other_communication"),
        ("void vllm::cross_device_reduce_1stage<x>", "", "all_reduce"),
        ("nvjet_sm90", "", "compute"),
        ("at::native::reduce_kernel", "", "compute"),
    ],
)
def test_lane_group(name: str, collective: str, group: str) -> None:
    assert DEFAULT_LANES.group_of(name, cat="kernel", collective=collective) == group
