"""Whole efforts through the command line on the CPU: hostile targets, kills, two processes, bad input."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.process

HOSTILE = Path(__file__).parents[1] / "support" / "hostile.py"
TOY = '''
"""A small layer of one's own."""
import torch
from torch import nn

def make(*, width, device, dtype):
    module = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width)).to(device, dtype)
    return module, torch.randn(16, width, device=device, dtype=dtype, requires_grad=True)
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A user's folder with a model of their own, and names that must not collide with ours."""
    (tmp_path / "toy.py").write_text(TOY)
    (tmp_path / "harness.py").write_text("raise RuntimeError('the wrong harness was imported')\n")
    return tmp_path


def perfkit(*words: str, cwd: Path, limit_s: float = 240) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*words), cwd=cwd, capture_output=True, text=True, timeout=limit_s, check=False
    )


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "perfkit", *words]


def records(effort: Path) -> list[dict]:
    return [json.loads(line) for line in (effort / "results.jsonl").read_text().splitlines()]


def until(condition: Callable[[], bool], *, limit_s: float = 60) -> None:
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def test_hostile_cases_fail_by_name_and_the_others_go_on(folder: Path) -> None:
    shutil.copy(HOSTILE, folder / "hostile.py")
    done = perfkit(
        *("bench", "hostile.py", "--quick", "--device", "cpu", "--time-limit", "20", "--json"), cwd=folder
    )
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["schema"]
    found = {r["spec"]["case"]["name"]: r["result"] for r in records(folder / "reports" / "hostile-cpu")}
    assert {name: result["fate"] for name, result in found.items()} == {
        "good": "ok",
        "raises": "failed",
        "hangs": "timed_out",
        "out_of_memory": "failed",
        "garbage": "ok",
        "exits": "died",
        "forks": "ok",
        "nan": "failed",
        "last": "ok",
    }
    assert "the gate has no bias" in found["raises"]["reason"]
    assert "hostile.py" in found["raises"]["failure"]["where"]
    assert "memory" in found["out_of_memory"]["reason"]
    assert "20" in found["hangs"]["reason"]
    assert "NaN" in found["nan"]["reason"]
    assert "log.txt" in done.stderr
    assert "Traceback" not in done.stderr
    assert str(folder) not in (folder / "reports" / "hostile-cpu" / "results.jsonl").read_text()
    grandchildren = [
        p for p in psutil.process_iter(["cmdline"]) if "PERFKIT_TEST_GRANDCHILD" in str(p.info["cmdline"])
    ]
    assert grandchildren == []


def test_a_whole_investigation_of_ones_own_code(folder: Path) -> None:
    words = (
        "investigate",
        "toy.py:make",
        "--case",
        "width=32",
        "--quick",
        "--device",
        "cpu",
        "--trees",
        "eager",
    )
    done = perfkit(*words, cwd=folder)
    assert done.returncode == 0, done.stderr
    effort = folder / "reports" / "toy-make-cpu"
    written = {str(path.relative_to(effort)) for path in effort.rglob("*") if "slots" not in path.parts}
    assert {
        *("effort.json", "devlog.md", "results.jsonl", "profile.md", "ideal.csv", "candidates.csv"),
        *("comparison.md", "findings.md", "benchmarks/v0_baseline.csv"),
    } <= written
    assert "QUICK" in (effort / "findings.md").read_text()
    assert "QUICK" in (effort / "comparison.md").read_text()
    for path in effort.glob("*.*"):
        assert str(folder) not in path.read_text(), f"{path} names a folder of this machine"
    before = len(records(effort))
    again = perfkit(*words, cwd=folder)
    assert again.returncode == 0, again.stderr
    assert len(records(effort)) == before


def test_a_killed_run_continues_and_leaves_nothing_behind(folder: Path) -> None:
    words = ("bench", "toy.py:make", "--case", "width=32", "--replicates", "3", "--quick", "--device", "cpu")
    results = folder / "reports" / "toy-make-cpu" / "results.jsonl"
    for kill in (signal.SIGKILL, signal.SIGTERM):
        running = subprocess.Popen(
            command(*words), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        known = results.read_text().count("\n") if results.exists() else 0
        until(lambda known=known: results.exists() and results.read_text().count("\n") > known)
        until(lambda running=running: bool(psutil.Process(running.pid).children(recursive=True)))
        children = psutil.Process(running.pid).children(recursive=True)
        running.send_signal(kill)
        code = running.wait(timeout=60)
        assert code == (-signal.SIGKILL if kill == signal.SIGKILL else 143)
        until(lambda children=children: not any(alive(child) for child in children))
    kept = results.read_text()
    done = perfkit(*words, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert results.read_text().startswith(kept)
    rounds = [r["round"] for r in records(results.parent)]
    assert sorted(rounds) == [0, 1, 2]
    # A report of what bench alone has recorded: no ceilings were needed, so there are no floors in it.
    reported = perfkit("finalize", "reports/toy-make-cpu", cwd=folder)
    assert reported.returncode == 0, reported.stderr
    assert "no change to propose" in (results.parent / "findings.md").read_text()


def alive(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


def test_two_processes_on_one_effort(folder: Path) -> None:
    words = ("bench", "toy.py:make", "--case", "width=32", "--quick", "--device", "cpu")
    lock = folder / "reports" / "toy-make-cpu" / "lock"
    first = subprocess.Popen(
        command(*words), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    until(lambda: lock.exists() and "pid" in lock.read_text())
    second = perfkit(*words, cwd=folder)
    assert second.returncode == 1
    assert f"pid {first.pid}" in second.stderr
    assert first.wait(timeout=120) == 0


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("bench", "lama3-block"), 2, "llama3-block"),
        (("bench", "nowhere.py:make"), 2, "nowhere.py"),
        (("bench", "toy.py:mak", "--case", "width=32"), 2, "make"),
        (("bench", "broken.py:make", "--case", "width=32"), 2, "broken.py:1"),
        (("bench", "toy.py:make", "--case", "width=0"), 2, "width"),
        (("bench", "toy.py:make", "--case", "width=-4"), 2, "width"),
        (("bench", "rms-norm", "--trees", "eager"), 2, "--trees"),
        (("bench", "llama3-block", "--providers", "eager"), 2, "--providers"),
        (("bench", "llama3-block", "--cases", "huge"), 2, "tiny"),
        (("bench", "toy.py:make", "--case", "width=32", "--out", "toy.py"), 1, "toy.py"),
        (("bench", "toy.py:make", "--case", "width=32", "--device", "cuda"), 2, "no device"),
        (("rank", "toy.py:make", "--case", "width=32"), 1, "ideal"),
        (("finalize", "toy.py:make", "--case", "width=32"), 1, "bench"),
        (("bench", "toy.py:make", "--case", "width=32", "--variants", "v3"), 2, "v3"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_bad_input_is_one_clear_message(folder: Path, words: tuple[str, ...], code: int, says: str) -> None:
    (folder / "broken.py").write_text("def make(:\n")
    device = () if "--device" in words else ("--device", "cpu")
    done = perfkit(*words, *device, cwd=folder)
    assert done.returncode == code, done.stderr
    assert says in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_an_effort_of_a_newer_version_is_refused(folder: Path) -> None:
    effort = folder / "reports" / "toy-make-cpu"
    effort.mkdir(parents=True)
    (effort / "effort.json").write_text('{"version": 99}')
    done = perfkit("bench", "toy.py:make", "--case", "width=32", "--device", "cpu", cwd=folder)
    assert done.returncode == 1
    assert "newer" in done.stderr
