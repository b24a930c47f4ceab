"""Stands for a perfkit process: runs one slot, then says how it ended. Run as a script.

Arguments: harness folder, slot folder, behaviour. With PERFKIT_TEST_SIGTERM=raise, SIGTERM raises.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from perfkit.launch import run_slot
from perfkit.wire.spec import Case, Spec


def _raise_exit(number: int, frame: object) -> None:
    raise SystemExit(128 + number)


def main() -> None:
    """Prints `<fate> <reason>`, or `raised <class>` where run_slot did not return."""
    # A test run in the background may have inherited an ignored SIGINT.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if os.environ.get("PERFKIT_TEST_SIGTERM") == "raise":
        signal.signal(signal.SIGTERM, _raise_exit)
    harness, slot_dir, behaviour = sys.argv[1:]
    spec = Spec(program="time_step", device="cpu", case=Case(name=behaviour, values={}))
    try:
        result = run_slot(spec, slot_dir=Path(slot_dir), harness=Path(harness))
    except BaseException as error:
        sys.stdout.write(f"raised {type(error).__name__}")
        raise
    sys.stdout.write(f"{result.fate} {result.reason}")


if __name__ == "__main__":
    main()
