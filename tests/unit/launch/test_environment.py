"""The variables that a child sees."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfkit.launch.environment import MARKER, SPOILERS, child_environment

_SLOT = Path("/slots/7")


def test_the_users_variables_are_inherited() -> None:
    base = {"PYTHONPATH": "/mine", "CUDA_VISIBLE_DEVICES": "1", "HOME": "/home/me"}
    assert base.items() <= child_environment(base, slot_dir=_SLOT, marker="m").items()


@pytest.mark.parametrize("name", sorted(SPOILERS))
def test_switches_that_spoil_a_measurement_are_dropped(name: str) -> None:
    assert name not in child_environment({name: "1"}, slot_dir=_SLOT, marker="m")


def test_compile_caches_lie_in_the_slot_whatever_the_shell_says() -> None:
    base = {"TORCHINDUCTOR_CACHE_DIR": "/shared", "TRITON_CACHE_DIR": "/shared"}
    environment = child_environment(base, slot_dir=_SLOT, marker="m")
    assert environment["TORCHINDUCTOR_CACHE_DIR"] == "/slots/7/scratch/inductor"
    assert environment["TRITON_CACHE_DIR"] == "/slots/7/scratch/triton"


def test_extra_variables_win_over_all_but_the_marker() -> None:
    extra = {"TRITON_INTERPRET": "1", "PYTHONUNBUFFERED": "", MARKER: "stolen"}
    environment = child_environment({}, slot_dir=_SLOT, marker="m", extra=extra)
    assert environment["TRITON_INTERPRET"] == "1"
    assert environment["PYTHONUNBUFFERED"] == ""
    assert environment[MARKER] == "m"


def test_the_given_mapping_is_left_alone() -> None:
    base = {"TRITON_INTERPRET": "1"}
    child_environment(base, slot_dir=_SLOT, marker="m", extra={"A": "b"})
    assert base == {"TRITON_INTERPRET": "1"}
