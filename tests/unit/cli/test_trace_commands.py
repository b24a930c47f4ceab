"""The commands about traces: arguments, exit codes, and what goes to which stream."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import CommandLine
from tests.support.traces import annotation, kernel, launch, op


@pytest.fixture
def line(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capsys)


def events(*, streams: int = 3, time_us: float = 10.0) -> list[dict[str, Any]]:
    """Two steps of kernels that take turns on several streams."""
    made: list[dict[str, Any]] = []
    for step in range(2):
        start = 1000.0 * step
        made += [annotation(f"ProfilerStep#{step}", start, 900), op("aten::mul", start + 1, 5)]
        for index in range(streams):
            correlation = 10 * step + index
            made.append(launch(correlation, start + 10 + index))
            made.append(
                kernel(
                    "void at::native::vectorized_elementwise_kernel<4>",
                    start + 100 + 50 * index,
                    time_us,
                    correlation=correlation,
                    stream=7 + index,
                )
            )
    return made


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return write(tmp_path / "trace.json", events())


def write(path: Path, made: list[dict[str, Any]], **header: Any) -> Path:
    path.write_text(json.dumps({**header, "traceEvents": made}))
    return path


def test_compact_trace(line: CommandLine, trace: Path) -> None:
    outcome = line("compact-trace", str(trace))
    assert outcome.code == 0, outcome.err
    summary = json.loads(outcome.out)
    assert (summary["measured_slices"], summary["original_streams"], summary["compacted_lanes"]) == (6, 3, 1)
    written = trace.with_name("trace_compacted.json.gz")
    copy = json.loads(gzip.decompress(written.read_bytes()))
    moved = [e for e in copy["traceEvents"] if e.get("cat") == "kernel"]
    assert len({(e["pid"], e["tid"]) for e in moved}) == 1
    again = line("compact-trace", str(trace))
    assert again.code != 0
    assert "--overwrite" in again.err
    assert again.out == ""
    assert line("compact-trace", str(trace), "--overwrite").code == 0
    assert line("compact-trace", str(trace), "--format", "pdf").code == 2


def test_trace_doctor(line: CommandLine, trace: Path) -> None:
    assert line("trace", "doctor", str(trace)).code in (0, 3)
    torn = trace.with_name("torn.json")
    torn.write_bytes(trace.read_bytes()[:-40])
    outcome = line("trace", "doctor", str(torn), "--repair", str(trace.with_name("whole.json.gz")), "--json")
    assert outcome.code == 3
    assert json.loads(outcome.out)["schema"]
    assert line("trace", "summary", str(trace.with_name("whole.json.gz"))).code == 0


def test_trace_summary(line: CommandLine, trace: Path) -> None:
    outcome = line("trace", "summary", str(trace), "--json")
    assert outcome.code == 0, outcome.err
    assert "busy" in json.dumps(json.loads(outcome.out))
    assert line("trace", "summary", str(trace.with_name("nowhere.json"))).code == 1


def test_trace_merge(line: CommandLine, tmp_path: Path) -> None:
    ranks = [
        write(
            tmp_path / f"rank{rank}_trace.json",
            events(streams=1),
            distributedInfo={"rank": rank, "world_size": 2},
            baseTimeNanoseconds=0,
        )
        for rank in range(2)
    ]
    out = tmp_path / "merged.json"
    outcome = line("trace", "merge", *map(str, ranks), "-o", str(out), "--no-skew")
    assert outcome.code == 0, outcome.err
    merged = json.loads(out.read_text())["traceEvents"]
    assert sum(e.get("cat") == "kernel" for e in merged) == 4


def test_trace_trim(line: CommandLine, trace: Path) -> None:
    out = trace.with_name("step.json")
    outcome = line("trace", "trim", str(trace), "--steps", "0:1", "-o", str(out))
    assert outcome.code == 0, outcome.err
    kept = json.loads(out.read_text())["traceEvents"]
    assert sum(e.get("cat") == "kernel" for e in kept) == 3
    assert line("trace", "trim", str(trace), "-o", str(out.with_name("other.json"))).code == 2


@pytest.mark.parametrize("steps", ["2", "4:2", "a:b", "1:2:3"])
def test_trace_trim_refuses_bounds_of_another_form(line: CommandLine, trace: Path, steps: str) -> None:
    outcome = line("trace", "trim", str(trace), "--steps", steps, "-o", str(trace.with_name("o.json")))
    assert outcome.code == 2
    assert "--steps" in outcome.err


def test_trace_diff(line: CommandLine, trace: Path) -> None:
    slower = write(trace.with_name("slower.json"), events(time_us=20.0))
    outcome = line("trace", "diff", str(trace), str(slower), "--json")
    assert outcome.code == 0, outcome.err
    assert "slower" in outcome.out
