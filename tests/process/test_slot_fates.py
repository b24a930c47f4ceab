"""Real children that misbehave: each ends as a named fate, and the parent is never stuck."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perfkit.errors import PerfkitError
from perfkit.launch import run_slot
from perfkit.wire.codec import decode
from perfkit.wire.payloads import StepTimes
from perfkit.wire.results import Result, Watch
from perfkit.wire.spec import Spec, spec_hash
from tests.support.slots import clock_that_ends_when, is_alive, processes_of, read_pid, toy_harness, toy_spec

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy_harness(tmp_path_factory.mktemp("fates") / "toy")


@pytest.fixture
def run(harness: Path, tmp_path: Path) -> Callable[..., Result]:
    def run(behaviour: str, **options: Any) -> Result:
        result = run_slot(toy_spec(behaviour), slot_dir=tmp_path / "slot", harness=harness, **options)
        assert not processes_of(tmp_path / "slot")
        return result

    return run


@pytest.mark.parametrize(
    ("behaviour", "fate", "reason"),
    [
        ("raise", "failed", "ValueError: tokens must be positive"),
        ("sys_exit", "failed", "SystemExit: the target called sys.exit(3)"),
        ("interrupt", "failed", "KeyboardInterrupt"),
        ("cuda_out_of_memory", "failed", "Out of memory: CUDA out of memory."),
        ("allocate", "failed", "Out of memory"),
        ("not_json", "failed", "The child's answer cannot be read"),
        ("other_version", "failed", "The child's answer has format 99"),
        ("os_exit", "died", "Exited with code 0 without sending a result."),
        ("segfault", "died", "Killed by SIGSEGV without sending a result"),
        ("kill_group", "died", "Killed by SIGKILL without sending a result"),
        ("torn_reply", "died", "Killed by SIGKILL while sending its result"),
        ("close_all", "died", "The target closed the file descriptor that carries the result."),
        ("replace_all", "died", "The target closed the file descriptor that carries the result."),
    ],
)
def test_misbehaviour_has_a_fate_and_a_reason(
    run: Callable[..., Result], behaviour: str, fate: str, reason: str
) -> None:
    result = run(behaviour)
    assert (result.fate, result.payload) == (fate, None)
    assert result.reason.startswith(reason)
    assert "\n" not in result.reason


@pytest.mark.parametrize("behaviour", ["answer", "garbage", "fork_and_return", "atexit_hang", "fill_caches"])
def test_harmless_misbehaviour_does_not_cost_the_answer(run: Callable[..., Result], behaviour: str) -> None:
    result = run(behaviour)
    assert (result.fate, result.reason) == ("ok", "")
    assert isinstance(result.payload, StepTimes)
    assert result.payload.timings[0].samples_us == (1.5,)
    assert result.environment is not None


@pytest.mark.parametrize(
    "behaviour", ["fork", "popen", "new_session", "bare_new_session", "orphan", "holding_pipe"]
)
def test_a_grandchild_ends_with_its_slot(run: Callable[..., Result], behaviour: str, tmp_path: Path) -> None:
    assert run(behaviour).fate == "ok"
    assert not is_alive(read_pid(tmp_path / "slot" / "grandchild.pid"))


def test_the_time_limit_ends_child_and_grandchild(run: Callable[..., Result], tmp_path: Path) -> None:
    ready = tmp_path / "slot" / "child.pid"
    result = run("holding_pipe_then_hang", clock=clock_that_ends_when(ready))
    assert (result.fate, result.reason) == ("timed_out", "The time limit of 60 s ran out.")
    assert not is_alive(read_pid(tmp_path / "slot" / "grandchild.pid"))


def test_a_reply_larger_than_any_pipe_arrives_whole(run: Callable[..., Result]) -> None:
    payload = run("large_reply").payload
    assert isinstance(payload, StepTimes)
    assert len(payload.timings[0].samples_us) == 7_500_000


def test_the_reply_never_lands_in_a_file_of_the_target(run: Callable[..., Result], tmp_path: Path) -> None:
    run("replace_all")
    assert b"failure" not in (tmp_path / "slot" / "user.txt").read_bytes()


def test_the_slot_folder_holds_spec_and_log_and_nothing_else(
    run: Callable[..., Result], tmp_path: Path
) -> None:
    slot_dir = tmp_path / "slot"
    result = run("garbage")
    assert sorted(p.name for p in slot_dir.iterdir()) == ["log.txt", "spec.json"]
    assert bytes(range(256)) in (slot_dir / "log.txt").read_bytes()
    assert decode((slot_dir / "spec.json").read_bytes(), Spec) == toy_spec("garbage")
    assert result.spec_hash == spec_hash(toy_spec("garbage"))


def test_compile_caches_are_empty_at_the_start_and_gone_at_the_end(
    run: Callable[..., Result], tmp_path: Path
) -> None:
    assert run("fill_caches").fate == "ok"
    assert not (tmp_path / "slot" / "scratch").exists()


def test_a_fatal_signal_leaves_its_traceback_in_the_log(run: Callable[..., Result], tmp_path: Path) -> None:
    run("segfault")
    assert b"in _segfault" in (tmp_path / "slot" / "log.txt").read_bytes()


def test_the_target_sees_a_clean_process(run: Callable[..., Result], tmp_path: Path) -> None:
    run("tell_world")
    assert (tmp_path / "slot" / "log.txt").read_text() == "argv=[] folders=[] fds=1 stdin=b''\n"


def test_packages_of_the_user_cannot_take_the_place_of_ours(harness: Path, tmp_path: Path) -> None:
    for name in ("perfkit", "harness", "perfkit_harness", "guardian", "child"):
        folder = tmp_path / "user" / name
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text("raise RuntimeError('a stranger was imported')\n")
    result = run_slot(
        toy_spec("answer"),
        slot_dir=tmp_path / "slot",
        harness=harness,
        extra_env={"PYTHONPATH": str(tmp_path / "user")},
    )
    assert result.fate == "ok", (tmp_path / "slot" / "log.txt").read_text()


def test_an_unwritable_slot_folder_is_named(harness: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PerfkitError, match=r"Cannot write .*file/slot"):
        run_slot(toy_spec("answer"), slot_dir=tmp_path / "file" / "slot", harness=harness)


class _FakeWatch:
    """Notes when it is entered and left, and asks whose a few processes are."""

    def __init__(self, pid_is_ours: Callable[[int], bool], slot_dir: Path) -> None:
        self.pid_is_ours = pid_is_ours
        self.slot_dir = slot_dir
        self.calls: list[str] = []

    def __enter__(self) -> object:
        self.calls.append("enter")
        return self

    def __exit__(self, *error: object) -> None:
        self.calls.append("exit")
        self.grandchild_is_ours = self.pid_is_ours(read_pid(self.slot_dir / "grandchild.pid"))

    def report(self) -> Watch:
        self.calls.append("report")
        return Watch(watched=True, num_polls=3)


@pytest.mark.parametrize("behaviour", ["fork", "new_session"])
def test_a_watch_spans_the_child_and_knows_its_family(harness: Path, tmp_path: Path, behaviour: str) -> None:
    watches: list[_FakeWatch] = []

    def factory(pid_is_ours: Callable[[int], bool]) -> _FakeWatch:
        watches.append(_FakeWatch(pid_is_ours, tmp_path / "slot"))
        return watches[-1]

    result = run_slot(
        toy_spec(f"{behaviour}_then_hang"),
        slot_dir=tmp_path / "slot",
        harness=harness,
        watch=factory,
        clock=clock_that_ends_when(tmp_path / "slot" / "child.pid"),
    )
    (watch,) = watches
    assert watch.calls == ["enter", "exit", "report"]
    assert watch.grandchild_is_ours
    assert not watch.pid_is_ours(os.getpid())
    assert result.watch == Watch(watched=True, num_polls=3)
