"""A comparison says what weakens it."""

from __future__ import annotations

from perfkit.stages.doubts import doubts
from perfkit.wire.payloads import KernelRun, StepTimes
from perfkit.wire.results import Result, SlotRecord
from perfkit.wire.spec import Case, Spec, Subject


def record(tree: str, *, inputs: str = "a", kernels: str = "k", stable: bool = True) -> SlotRecord:
    run = KernelRun(direction="full", cache="warm", time_us=1.0, num_kernels=1.0, names_sha256=kernels)
    payload = StepTimes(timings=(), kernel_runs=(run,), inputs_sha256=inputs, stable=stable)
    spec = Spec(
        program="time_step",
        device="cpu",
        subject=Subject(tree=tree),  # type: ignore[arg-type]
        case=Case(name="4k", values={}),
    )
    return SlotRecord(
        slot="s", stage="bench", spec=spec, result=Result(spec_hash="h", fate="ok", payload=payload)
    )


def test_equal_processes_raise_no_doubt() -> None:
    assert list(doubts([record("eager"), record("eager"), record("block", kernels="other")])) == []


def test_other_inputs_are_named_with_who_has_them() -> None:
    (said,) = doubts([record("eager"), record("block", inputs="b")])
    assert "4k" in said
    assert "block" in said
    assert "eager" not in said


def test_inputs_that_differ_within_one_subject() -> None:
    (said,) = doubts([record("eager"), record("eager", inputs="b")])
    assert "single processes" in said


def test_other_kernels_between_processes_of_one_subject() -> None:
    (said,) = doubts([record("eager"), record("eager", kernels="l")])
    assert "2 sets of kernels" in said


def test_a_warm_up_that_did_not_settle() -> None:
    (said,) = doubts([record("eager", stable=False), record("eager")])
    assert "1 of 2 processes" in said
