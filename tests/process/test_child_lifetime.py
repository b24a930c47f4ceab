"""Whoever is killed, and however: nothing that a slot started survives, and nobody is left waiting."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.slots import is_alive, processes_of, read_pid, toy_harness, wait_until

pytestmark = pytest.mark.process

_ROOT = Path(__file__).resolve().parents[2]
_DRIVER = _ROOT / "tests" / "support" / "run_toy_slot.py"
_GRANDCHILDREN = ["fork", "popen", "new_session", "orphan", "holding_pipe"]


@dataclass(frozen=True)
class Running:
    """A perfkit process in the middle of a slot whose child has a grandchild."""

    parent: subprocess.Popen[str]
    slot_dir: Path

    @property
    def child(self) -> int:
        return read_pid(self.slot_dir / "child.pid")

    @property
    def grandchild(self) -> int:
        return read_pid(self.slot_dir / "grandchild.pid")

    def end(self) -> str:
        """Waits for the parent's own end and returns what it printed."""
        return self.parent.communicate(timeout=30)[0]

    def survivors(self) -> list[str]:
        """Who is left: by pid, and by any mention of the slot's folder (the guardian has it too)."""
        pids = [pid for pid in (self.child, self.grandchild) if is_alive(pid)]
        return [*map(str, pids), *processes_of(self.slot_dir)]


class Starter:
    """Starts perfkit processes in a folder, and sweeps up after a test that failed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.harness = toy_harness(folder / "toy")
        self._started: list[Running] = []

    def start(self, behaviour: str, **environment: str) -> Running:
        """A driver process, without waiting for its child."""
        slot_dir = self.folder / f"slot{len(self._started)}"
        parent = subprocess.Popen(
            [sys.executable, str(_DRIVER), str(self.harness), str(slot_dir), behaviour],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ | {"PYTHONPATH": str(_ROOT)} | environment,
        )
        self._started.append(Running(parent, slot_dir))
        return self._started[-1]

    def start_hanging(self, grandchild: str, **environment: str) -> Running:
        """A driver whose child has started its grandchild and hangs."""
        running = self.start(f"{grandchild}_then_hang", **environment)
        assert is_alive(running.child)
        assert is_alive(running.grandchild)
        return running

    def sweep(self) -> None:
        for running in self._started:
            running.parent.kill()
            for file in running.slot_dir.glob("*.pid"):
                if is_alive(pid := int(file.read_text())):
                    os.kill(pid, signal.SIGKILL)
            if running.parent.stdout is not None:
                running.parent.stdout.close()
            running.parent.wait()


@pytest.fixture
def starter(tmp_path: Path) -> Iterator[Starter]:
    starter = Starter(tmp_path)
    yield starter
    starter.sweep()


def _expect_nobody(running: Running) -> None:
    wait_until(lambda: not running.survivors(), f"nobody of {running.slot_dir} is left")


@pytest.mark.parametrize("grandchild", [*_GRANDCHILDREN, "bare_new_session"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_death_of_the_parent_ends_everything(
    starter: Starter, grandchild: str, number: signal.Signals
) -> None:
    running = starter.start_hanging(grandchild)
    running.parent.send_signal(number)
    assert running.end() == ""
    assert running.parent.returncode == -number
    _expect_nobody(running)


@pytest.mark.parametrize("grandchild", _GRANDCHILDREN)
@pytest.mark.parametrize("parent_first", [True, False])
def test_death_of_parent_and_child_together_ends_the_grandchild(
    starter: Starter, grandchild: str, parent_first: bool
) -> None:
    running = starter.start_hanging(grandchild)
    pids = [running.parent.pid, running.child]
    for pid in pids if parent_first else reversed(pids):
        os.kill(pid, signal.SIGKILL)
    running.end()
    _expect_nobody(running)


def test_death_of_parent_and_whole_group_together_ends_other_sessions(starter: Starter) -> None:
    running = starter.start_hanging("new_session")
    os.kill(running.parent.pid, signal.SIGSTOP)
    os.killpg(running.child, signal.SIGKILL)
    os.kill(running.parent.pid, signal.SIGKILL)
    running.end()
    _expect_nobody(running)


@pytest.mark.parametrize("grandchild", _GRANDCHILDREN)
def test_death_of_the_child_is_a_fate_and_ends_the_grandchild(starter: Starter, grandchild: str) -> None:
    running = starter.start_hanging(grandchild)
    os.kill(running.child, signal.SIGKILL)
    assert running.end().startswith("died Killed by SIGKILL without sending a result")
    assert not running.survivors()


@pytest.mark.parametrize("grandchild", _GRANDCHILDREN)
@pytest.mark.parametrize(
    ("number", "raised"), [(signal.SIGINT, "KeyboardInterrupt"), (signal.SIGTERM, "SystemExit")]
)
def test_an_interrupted_parent_cleans_up_before_it_raises(
    starter: Starter, grandchild: str, number: signal.Signals, raised: str
) -> None:
    running = starter.start_hanging(grandchild, PERFKIT_TEST_SIGTERM="raise")
    running.parent.send_signal(number)
    assert running.end() == f"raised {raised}"
    assert not running.survivors()


def test_a_killed_guardian_still_leaves_the_group_to_the_parent(starter: Starter) -> None:
    running = starter.start_hanging("fork")
    (guardian,) = (
        int(line.split()[0])
        for line in processes_of(running.slot_dir)
        if int(line.split()[0]) not in (running.parent.pid, running.child, running.grandchild)
    )
    os.kill(guardian, signal.SIGKILL)
    running.parent.send_signal(signal.SIGINT)
    assert running.end() == "raised KeyboardInterrupt"
    assert not running.survivors()


@pytest.mark.parametrize("file", ["spec.json", "log.txt", "child.pid"])
def test_the_parent_may_die_at_any_moment(starter: Starter, file: str) -> None:
    running = starter.start("hang")
    wait_until((running.slot_dir / file).exists, f"{file} appears")
    running.parent.kill()
    running.end()
    wait_until(lambda: not processes_of(running.slot_dir), "nobody of the slot is left")


def test_compile_caches_go_even_when_the_parent_is_killed(starter: Starter) -> None:
    running = starter.start("fill_caches_then_hang")
    assert is_alive(running.child)
    assert (running.slot_dir / "scratch").is_dir()
    running.parent.kill()
    running.end()
    wait_until(lambda: not (running.slot_dir / "scratch").exists(), "the scratch folder is removed")
    wait_until(lambda: not processes_of(running.slot_dir), "nobody of the slot is left")
