"""log: an entry of the engineer's own in an effort's devlog."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from perfkit.effort import read_header
from perfkit.effort.devlog import append_entry
from perfkit.errors import UsageError
from perfkit.stages.answer import StageReport
from perfkit.stages.request import StageRequest
from perfkit.stages.running import Say


def run(request: StageRequest, *, say: Say) -> StageReport:
    """Appends `request.text`; a running perfkit does not stand in the way, since entries are whole appends.

    Raises:
        UsageError: no such effort, or nothing to write.
    """
    folder = effort_folder(request)
    if not request.text.strip():
        raise UsageError("There is nothing to log.", why="The text is empty.", do="Say what was found.")
    path = folder / "devlog.md"
    append_entry(path, "Note", tuple(request.text.strip().splitlines()), now=datetime.now().astimezone())
    return StageReport(headline=f"Logged in {path}.", document={"file": str(path)}, files=(path,))


def effort_folder(request: StageRequest) -> Path:
    """The folder of the effort that the request names, as a path or below --out.

    Raises:
        UsageError: there is none.
    """
    for folder in (Path(request.target), request.out / request.target):
        if read_header(folder) is not None:
            return folder
    raise UsageError(
        f"There is no effort {request.target}.",
        why=f"Neither it nor {request.out / request.target} holds an effort.json.",
        do="Start one with `perfkit profile TARGET` or `perfkit investigate TARGET`.",
    )
