"""Label times: attribution through launches, closure, and CPU ops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from perfkit.trace import LabelTimes, label_times
from tests.support.traces import annotation, kernel, launch, make_trace, op


def test_kernels_go_to_the_innermost_label_of_the_launching_thread(tmp_path: Path) -> None:
    events = [
        annotation("ProfilerStep#0", 100, 100),
        annotation("ProfilerStep#1", 200, 100),
        annotation("pk:0", 110, 50),
        annotation("pk:1", 120, 10),
        annotation("pk:7", 112, 30, tid=2),
        annotation("pk:0", 210, 20),
        annotation("pk:other", 260, 30),
        launch(1, 111),
        launch(2, 122),
        launch(3, 121, tid=2),
        launch(4, 180),
        launch(5, 212, name="cudaMemcpyAsync"),
        launch(6, 265),
        kernel("outer", 1000, 4, correlation=1),
        kernel("inner", 1010, 6, correlation=2),
        kernel("other_thread", 1020, 8, correlation=3),
        kernel("outside", 1030, 10, correlation=4),
        kernel("Memcpy DtoD", 1040, 3, correlation=5, cat="gpu_memcpy"),
        kernel("odd_label", 1050, 1, correlation=6),
        kernel("unlinked", 150, 2),
    ]
    times = label_times(make_trace(tmp_path, events))
    assert times.times_us == {0: 3.5, 1: 3.0, 7: 4.0}
    assert [(k.name, k.num_calls, k.time_us) for k in times.kernels[0]] == [
        ("outer", 0.5, 2.0),
        ("Memcpy DtoD", 0.5, 1.5),
    ]
    assert times.unattributed_us == 6.5
    assert {k.name for k in times.unattributed_kernels} == {"outside", "odd_label", "unlinked"}
    assert sum(times.times_us.values()) + times.unattributed_us == times.total_us == 17.0
    assert (times.num_steps, times.num_unlinked) == (2, 0.5)


def test_one_graph_launch_attributes_all_its_kernels(tmp_path: Path) -> None:
    events = [annotation("pk:3", 10, 10), launch(1, 12, name="cudaGraphLaunch")]
    events += [kernel(f"k{i}", 100 + i, 1, correlation=1) for i in range(5)]
    assert label_times(make_trace(tmp_path, events), num_steps=1).times_us == {3: 5.0}


def test_cpu_labels_hold_the_ops_inside_them_and_not_their_own_cost(tmp_path: Path) -> None:
    events = [
        op("aten::mm", 100, 100),  # the dispatcher's outer op: it wraps the label
        annotation("pk:0", 130, 50),
        op("aten::mm", 140, 30),
        op("aten::empty", 145, 5),
        op("evaluate_function", 300, 50),
        op("MulBackward0", 305, 40),
        annotation("pk:1", 310, 20),
        op("aten::mul", 312, 10),
        op("aten::zero_", 335, 4),  # inside a wrapping op, but under no label
        op("aten::add_", 400, 6),
    ]
    times = label_times(make_trace(tmp_path, events), num_steps=1)
    assert times.times_us == {0: 30.0, 1: 10.0}
    assert times.unattributed_us == 10.0
    assert {k.name for k in times.unattributed_kernels} == {"aten::zero_", "aten::add_"}
    assert times.total_us == 50.0
    assert times.labelling_us == pytest.approx(70 + 10 + 26)


def test_a_thousand_nested_labels_close(tmp_path: Path) -> None:
    events = [annotation("ProfilerStep#0", 0, 100_000)]
    for i in range(1000):
        events.append(annotation(f"pk:{i}", 10 + 10 * i, 9))
        events.append(launch(i, 12.345 + 10 * i))
        events.append(kernel("k", 50_000 + i * 0.5, 0.333, correlation=i))
    times = label_times(make_trace(tmp_path, events))
    assert len(times.times_us) == 1000
    assert times.unattributed_us == 0
    assert times.total_us == pytest.approx(333.0)


def labelled_and_plain(tmp_path: Path, *, plain_names: tuple[str, ...]) -> LabelTimes:
    events = [annotation("pk:0", 10, 10), annotation("pk:1", 30, 10)]
    events += [launch(1, 12), launch(2, 32), launch(3, 50)]
    events += [kernel("a", 100, 5, correlation=1), kernel("b", 110, 7, correlation=2)]
    events += [kernel("c", 120, 9, correlation=3)]
    (tmp_path / "labelled").mkdir()
    (tmp_path / "plain").mkdir()
    plain = make_trace(tmp_path / "plain", [kernel(n, 10 * i, 8 + i) for i, n in enumerate(plain_names)])
    return label_times(make_trace(tmp_path / "labelled", events), num_steps=1, plain=plain)


def test_durations_come_from_the_plain_run_when_it_ran_the_same_kernels(tmp_path: Path) -> None:
    times = labelled_and_plain(tmp_path, plain_names=("a", "b", "c"))
    assert times.times_from == "plain"
    assert times.times_us == {0: 8.0, 1: 9.0}
    assert (times.unattributed_us, times.total_us) == (10.0, 27.0)


@pytest.mark.parametrize("names", [("a", "c", "b"), ("a", "b"), ("a", "b", "c", "d")])
def test_a_plain_run_of_other_kernels_is_not_joined(tmp_path: Path, names: tuple[str, ...]) -> None:
    times = labelled_and_plain(tmp_path, plain_names=names)
    assert times.times_from == "labelled"
    assert times.times_us == {0: 5.0, 1: 7.0}


def cpu_runs(tmp_path: Path, plain: list[dict[str, Any]]) -> LabelTimes:
    labelled = []
    for step in (0, 1000):
        labelled += [
            annotation("pk:0", step + 10, 20),
            op("aten::clone", step + 12, 15),
            annotation("pk:1", step + 40, 20),
            op("aten::mul", step + 42, 15),
            annotation("pk:2", step + 70, 20),
            op("aten::add", step + 72, 15),
        ]
    (tmp_path / "labelled").mkdir()
    (tmp_path / "plain").mkdir()
    traces = (make_trace(tmp_path / "labelled", labelled), make_trace(tmp_path / "plain", plain))
    return label_times(traces[0], num_steps=2, plain=traces[1])


def plain_step(start: float, *, last: str = "aten::add_") -> list[dict[str, Any]]:
    """The product resolves its conjugate inside itself; autograd adds in place; a view is no op."""
    return [
        annotation("pk:timed", start, 100),
        op("aten::mul", start + 10, 9),
        op("aten::clone", start + 12, 4),
        op("aten::view", start + 30, 2),
        op(last, start + 40, 6),
    ]


def test_cpu_times_come_from_the_plain_run(tmp_path: Path) -> None:
    warm_up = [annotation("pk:timed", 0, 100), op("aten::mul", 10, 80)]
    times = cpu_runs(tmp_path, warm_up + plain_step(1000) + plain_step(2000))
    assert times.times_from == "plain"
    assert times.times_us == {0: 4.0, 1: 5.0, 2: 6.0}
    assert times.unattributed_us == 2.0
    assert times.total_us == 17.0


def test_a_plain_cpu_run_of_other_ops_is_not_joined(tmp_path: Path) -> None:
    warm_up = [annotation("pk:timed", 0, 100)]
    times = cpu_runs(tmp_path, warm_up + plain_step(1000) + plain_step(2000, last="aten::sub"))
    assert times.times_from == "labelled"
    assert times.times_us == {0: 15.0, 1: 15.0, 2: 15.0}
