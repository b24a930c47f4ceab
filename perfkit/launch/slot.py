"""Runs one slot from its spec to its Result."""

from __future__ import annotations

import contextlib
import os
import sys
import time
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from perfkit.errors import PerfkitError
from perfkit.launch.environment import MARKER, SCRATCH, child_environment
from perfkit.launch.fates import Ending, judge
from perfkit.launch.pipe import collect
from perfkit.launch.process import ChildEnds, child_process
from perfkit.launch.watching import WatchFactory
from perfkit.places import harness_dir
from perfkit.wire.codec import encode_pretty
from perfkit.wire.results import Result
from perfkit.wire.spec import Spec, spec_hash

_PERFKIT = Path(__file__).resolve().parents[1]


def run_slot(
    spec: Spec,
    *,
    slot_dir: Path,
    watch: WatchFactory | None = None,
    extra_env: Mapping[str, str] | None = None,
    harness: Path | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Result:
    """Runs one program on one subject in a fresh process, and says how that ended.

    Writes `spec.json` and `log.txt` (all that the child printed) into `slot_dir`, where the program may
    leave files too. Whatever happens in the child becomes a fate of the Result. When this function
    returns or raises, Ctrl-C included, no process that the child started is left.

    `clock` gives seconds and measures the time limit; `harness` is another folder of programs.

    Raises:
        PerfkitError: the slot folder cannot be written, or no process can be started.
    """
    slot_dir = slot_dir.resolve()
    _write_spec(spec, slot_dir)
    marker = uuid.uuid4().hex
    started_at, start_s = datetime.now(UTC).isoformat(timespec="seconds"), clock()
    with child_process(
        lambda ends: _command(harness or harness_dir(), slot_dir, marker, ends),
        environment=child_environment(os.environ, slot_dir=slot_dir, marker=marker, extra=extra_env),
        log_file=slot_dir / "log.txt",
    ) as child:
        observer = watch(child.owns) if watch is not None else None
        with observer or contextlib.nullcontext():
            collected = collect(child.result_fd, child.exit_fd, limit_s=spec.time_limit_s, clock=clock)
    verdict = judge(
        Ending(collected.data, child.process.returncode, collected.timed_out, time_limit_s=spec.time_limit_s)
    )
    return Result(
        spec_hash=spec_hash(spec),
        fate=verdict.fate,
        reason=verdict.reason,
        payload=verdict.reply.payload,
        failure=verdict.reply.failure,
        environment=verdict.reply.environment,
        watch=observer.report() if observer is not None else None,
        started_at=started_at,
        duration_s=clock() - start_s,
    )


def _write_spec(spec: Spec, slot_dir: Path) -> None:
    try:
        slot_dir.mkdir(parents=True, exist_ok=True)
        (slot_dir / "spec.json").write_bytes(encode_pretty(spec))
    except OSError as error:
        raise PerfkitError(
            f"Cannot write {slot_dir}.",
            why=f"{error.strerror or error}.",
            do="Free some space or check permissions, or choose another folder with --out.",
        ) from error


def _command(harness: Path, slot_dir: Path, marker: str, ends: ChildEnds) -> list[str]:
    """`-P` keeps the harness folder itself off the child's sys.path."""
    return [
        sys.executable,
        "-P",
        os.fspath(harness / "bootstrap.py"),
        f"slot_dir={slot_dir}",
        f"scratch={slot_dir / SCRATCH}",
        f"perfkit={_PERFKIT}",
        f"marker={MARKER}={marker}",
        f"result_fd={ends.result_fd}",
        f"lifeline_fd={ends.lifeline_fd}",
        f"all_clear_fd={ends.all_clear_fd}",
    ]
