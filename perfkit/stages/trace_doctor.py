"""trace doctor: what is wrong with a trace, and a repaired copy."""

from __future__ import annotations

from pathlib import Path

from perfkit.errors import ExitCode, PerfkitError
from perfkit.stages.answer import StageReport, Table
from perfkit.trace.doctor import Diagnosis, diagnose
from perfkit.trace.output import require_writable, write_json
from perfkit.trace.reader import read_trace


def examine_trace(path: Path, *, repair: Path | None = None, overwrite: bool = False) -> StageReport:
    """Findings as a table; exit code NEGATIVE when something is wrong. `repair` writes a loadable copy.

    Raises:
        UsageError: the copy exists, or is the trace itself.
        PerfkitError: the file cannot be opened, or cannot be repaired.
    """
    if repair is not None:
        require_writable(repair, inputs=[path], overwrite=overwrite)
    diagnosis = diagnose(path)
    files: tuple[Path, ...] = ()
    if repair is not None:
        _write_repaired(path, diagnosis, repair)
        files = (repair,)
    healthy = diagnosis.is_healthy
    return StageReport(
        headline=f"{path}: {'nothing is wrong' if healthy else 'something is wrong'}.",
        tables=(_table(diagnosis),),
        document={
            "trace": str(path),
            "healthy": healthy,
            "loadable": diagnosis.loadable,
            "findings": list(diagnosis.findings),
            "repaired": None if repair is None else str(repair),
        },
        exit_code=ExitCode.GOOD if healthy else ExitCode.NEGATIVE,
        files=files,
    )


def _write_repaired(path: Path, diagnosis: Diagnosis, repair: Path) -> None:
    if not diagnosis.loadable:
        raise PerfkitError(
            f"Cannot repair {path}.",
            why="Nothing that looks like a trace is left in it.",
            do="Profile again.",
        )
    write_json(repair, header=diagnosis.header, raws=diagnosis.raws)
    read_trace(repair)


def _table(diagnosis: Diagnosis) -> Table:
    return Table(
        title="",
        columns=("at fault", "finding", "count", "first at", "advice"),
        rows=tuple((f.fault, f.what, str(f.count), f.where, f.advice) for f in diagnosis.findings),
        notes=(
            "At fault: file = does not load; number = results are wrong; viewer = hidden; note = normal.",
        ),
    )
