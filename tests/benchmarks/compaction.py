"""Time and memory of compact-trace on tiled real traces. Run by hand; writes results/compaction.md.

python tests/benchmarks/compaction.py path/to/trace.json.gz
"""

from __future__ import annotations

import gzip
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path
from typing import Any

SIZES = (250_000, 500_000, 1_000_000, 2_000_000)
RESULT = Path(__file__).parent / "results" / "compaction.md"


def tiled(events: list[dict[str, Any]], *, num_events: int, path: Path) -> None:
    """Copies of a trace one after another, with times and correlation ids moved on."""
    timed = [e for e in events if isinstance(e.get("ts"), (int, float)) and e.get("ph") != "M"]
    span = max(e["ts"] + e.get("dur", 0) for e in timed) - min(e["ts"] for e in timed) + 1000
    copies = [event for event in events if event.get("ph") == "M"]
    index = 0
    while len(copies) < num_events:
        for event in timed[: num_events - len(copies)]:
            copy = dict(event, ts=event["ts"] + index * span)
            if "id" in event:
                copy["id"] = f"{event['id']}-{index}"
            args = event.get("args")
            if isinstance(args, dict) and "correlation" in args:
                copy["args"] = {**args, "correlation": int(args["correlation"]) + index * 10_000_000}
            copies.append(copy)
        index += 1
    path.write_text(json.dumps({"traceEvents": copies}))


def measured(path: Path) -> tuple[float, int]:
    """(seconds, peak memory in bytes) of one compaction in a fresh process, gzip output included."""
    out = path.with_suffix(".out.json.gz")
    before = time.perf_counter()
    command = [
        sys.executable,
        "-m",
        "perfkit",
        "compact-trace",
        str(path),
        "-o",
        str(out),
        "--force",
        "--overwrite",
    ]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    assert status == 0, "the compaction failed"
    return time.perf_counter() - before, usage.ru_maxrss * 1024


def main() -> None:
    """Measures every size once."""
    source = Path(sys.argv[1])
    events = json.loads(gzip.decompress(source.read_bytes()))["traceEvents"]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for size in SIZES:
            path = Path(folder) / f"{size}.json"
            tiled(events, num_events=size, path=path)
            seconds, peak_bytes = measured(path)
            raw = path.stat().st_size
            cells = (f"{size:,}", f"{raw / 1e6:.0f}", f"{seconds:.1f}", f"{peak_bytes / 1e6:.0f}")
            rows.append(f"| {' | '.join(cells)} | {peak_bytes / raw:.1f} |")
            path.unlink()
    RESULT.write_text(
        "# compact-trace\n\n"
        f"Measured {date.today().isoformat()} by `python tests/benchmarks/compaction.py`, two cores, Python "
        f"{platform.python_version()}: fresh process per size, with gzip output; tiles of {source.name}.\n"
        "Aim: 1,000,000 events in about 3 s, and memory of at most 3 times the raw size. Not reached yet.\n\n"
        "| events | raw MB | s | peak MB | peak / raw |\n|---|---|---|---|---|\n" + "\n".join(rows) + "\n"
    )


if __name__ == "__main__":
    main()
