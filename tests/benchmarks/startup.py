"""How long `perfkit --help` takes in fresh processes. Run by hand; writes results/startup.md.

python tests/benchmarks/startup.py
"""

from __future__ import annotations

import platform
import statistics
import subprocess
import sys
import time
from datetime import date
from importlib.metadata import version
from pathlib import Path

NUM_RUNS = 30
BUDGET_S = 0.15
RESULT = Path(__file__).parent / "results" / "startup.md"
COMMANDS = {
    "bare Python": ["-c", "pass"],
    "import typer": ["-c", "import typer"],
    "perfkit --help": ["-m", "perfkit", "--help"],
    "perfkit bench --help": ["-m", "perfkit", "bench", "--help"],
    "perfkit recipes": ["-m", "perfkit", "recipes"],
}


def seconds(args: list[str]) -> float:
    """Wall time of one fresh process."""
    start = time.perf_counter()
    subprocess.run([sys.executable, *args], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    """Measures the commands in turn, so that a slow moment of the machine touches all of them."""
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for round_number in range(NUM_RUNS + 1):
        for name, args in COMMANDS.items():
            took = seconds(args)
            if round_number:  # the first round fills the file cache
                times[name].append(took)
    rows = [
        f"| {name} | {statistics.median(t) * 1e3:.0f} | {min(t) * 1e3:.0f} | {max(t) * 1e3:.0f} |"
        for name, t in times.items()
    ]
    within = statistics.median(times["perfkit --help"]) < BUDGET_S
    RESULT.write_text(
        "# Start-up of the command line\n\n"
        f"Measured {date.today()} by `python tests/benchmarks/startup.py`: wall time in ms of {NUM_RUNS}\n"
        f"fresh processes each, in turn. Python {platform.python_version()}, typer {version('typer')}.\n"
        f"Budget of `perfkit --help`: {BUDGET_S * 1e3:.0f} ms, {'kept' if within else 'EXCEEDED'}.\n\n"
        "| process | median | least | most |\n|---|---|---|---|\n" + "\n".join(rows) + "\n"
    )
    sys.stdout.write(RESULT.read_text())


if __name__ == "__main__":
    main()
