"""Small traces written by hand, and the folder of real ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from perfkit.trace import Trace, read_trace

SHARED_TRACES = Path(__file__).resolve().parents[2].parent / "shared" / "traces"


def shared_trace(name: str) -> Path:
    """Path of a real trace (`h200/pp/rank0_trace`), or a skip where the folder is absent."""
    path = SHARED_TRACES / f"{name}.json.gz"
    if not path.exists():
        pytest.skip(f"the shared traces are not on this machine ({path} is absent)")
    return path


def all_shared_traces() -> list[str]:
    """Names of every real trace; empty where the folder is absent."""
    found = sorted(SHARED_TRACES.rglob("*.json.gz"))
    return [str(path.relative_to(SHARED_TRACES)).removesuffix(".json.gz") for path in found]


def op(name: str, ts: float, dur: float, *, tid: int = 1, pid: int = 10) -> dict[str, Any]:
    """A CPU op."""
    return {
        "ph": "X",
        "cat": "cpu_op",
        "name": name,
        "pid": pid,
        "tid": tid,
        "ts": ts,
        "dur": dur,
        "args": {},
    }


def annotation(name: str, ts: float, dur: float, *, tid: int = 1, pid: int = 10) -> dict[str, Any]:
    """A `record_function` range."""
    return op(name, ts, dur, tid=tid, pid=pid) | {"cat": "user_annotation"}


def launch(
    correlation: int, ts: float, *, dur: float = 1.0, tid: int = 1, name: str = "cudaLaunchKernel"
) -> dict[str, Any]:
    """A launch call."""
    return op(name, ts, dur, tid=tid) | {"cat": "cuda_runtime", "args": {"correlation": correlation}}


def kernel(
    name: str, ts: float, dur: float, *, correlation: int | None = None, stream: int = 7, cat: str = "kernel"
) -> dict[str, Any]:
    """A device slice on GPU 0."""
    args: dict[str, Any] = {"device": 0, "stream": stream}
    if correlation is not None:
        args["correlation"] = correlation
    return {"ph": "X", "cat": cat, "name": name, "pid": 0, "tid": stream, "ts": ts, "dur": dur, "args": args}


def write_trace(
    folder: Path, events: list[dict[str, Any]], *, name: str = "trace.json", **header: Any
) -> Path:
    """The events as an exported trace file."""
    path = folder / name
    path.write_text(json.dumps({"schemaVersion": 1, **header, "traceEvents": events}))
    return path


def make_trace(folder: Path, events: list[dict[str, Any]], **header: Any) -> Trace:
    """The same, read back."""
    return read_trace(write_trace(folder, events, **header))
