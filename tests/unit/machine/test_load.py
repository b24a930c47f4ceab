"""CPU load with our own work taken out."""

from __future__ import annotations

import pytest

from perfkit.machine.load import CpuSample, load_between, read_load


def test_own_work_is_subtracted() -> None:
    # In 2 s on 8 CPUs, 5 CPU seconds were spent, 1 of them by us: 2.5 busy, 0.5 own, 2 foreign.
    load = load_between(
        CpuSample(at_s=10.0, busy_s=100.0, own_s=3.0),
        CpuSample(at_s=12.0, busy_s=105.0, own_s=4.0),
        num_cpus=8,
    )
    assert load.busy_cpus == pytest.approx(2.5)
    assert load.own_cpus == pytest.approx(0.5)
    assert load.foreign_cpus == pytest.approx(2.0)
    assert load.foreign_share == pytest.approx(0.25)


def test_coarse_clocks_never_give_a_negative_load() -> None:
    load = load_between(
        CpuSample(at_s=0.0, busy_s=0.0, own_s=0.0), CpuSample(at_s=1.0, busy_s=0.9, own_s=1.0), num_cpus=2
    )
    assert load.foreign_cpus == 0.0


def test_a_real_sample_lies_within_the_machine() -> None:
    load = read_load(sample_s=0.0, sleep=lambda seconds: sum(range(2_000_000)) and None)
    assert load.num_cpus >= 1
    assert load.own_cpus >= 0
