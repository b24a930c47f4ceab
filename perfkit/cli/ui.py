"""All that reaches the screen: the answer on stdout, the conversation on stderr. Only here is Rich known."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from typing import IO, TYPE_CHECKING, Any

from perfkit.cli.plain import flush_right, report_text, table_text, widths
from perfkit.errors import PerfkitError, UsageError
from perfkit.stages.answer import StageReport, Table

if TYPE_CHECKING:
    from rich.progress import Progress

DOCUMENT_VERSION = 1
"""Version of the documents that `--json` prints; a change that could break a reader raises it."""

_LEAST_FOLDED = 12
"""Characters per line below which folded text is harder to read than a line that is too long."""


class Ui:
    """One command's screen."""

    def __init__(self, *, quiet: bool = False, verbose: bool = False) -> None:
        self._quiet = quiet
        self._verbose = verbose
        self._started = time.monotonic()
        self._bar: Progress | None = None
        self.num_done = 0
        self.num_total = 0

    def say(self, text: str) -> None:
        """One line of the conversation, on stderr."""
        if not self._quiet:
            self._tell(text)

    def warn(self, text: str) -> None:
        """A line that --quiet does not silence."""
        self._tell(f"warning: {text}")

    def progress(self, num_done: int, num_total: int, label: str) -> None:
        """A bar on a terminal; elsewhere, and with --verbose, one line per finished unit.

        `num_done == 0` announces how many units there will be.
        """
        self.num_done, self.num_total = num_done, num_total
        if self._quiet:
            return
        on_terminal = _styled(sys.stderr)
        if num_done and (self._verbose or not on_terminal):
            elapsed = f" ({time.monotonic() - self._started:.0f} s)" if self._verbose else ""
            self._tell(f"[{num_done}/{num_total}] {label}{elapsed}")
        if on_terminal:
            self._show_bar(label)

    def ask(self, stage: str, report: StageReport) -> bool:
        """Shows a stage's report on stderr and waits for an answer; Enter means yes.

        Raises:
            UsageError: there is no terminal to ask on.
        """
        self.close()
        require_terminal()
        _write(sys.stderr, f"\n{report_text(report)}\n{stage} is done. Go on? [Y/n] ")
        sys.stderr.flush()
        return sys.stdin.readline().strip().lower() in ("", "y", "yes")

    def answer(self, verb: str, report: StageReport, *, as_json: bool) -> None:
        """Prints a stage's report: tables, or one JSON document."""
        self.close()
        for warning in report.warnings:
            self.warn(warning)
        if as_json:
            _write(sys.stdout, json_text(verb, report))
        else:
            _print_report(report)
        for file in report.files:
            self.say(f"wrote {file}")

    def close(self) -> None:
        """Removes the bar, if one is shown."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _tell(self, text: str) -> None:
        if self._bar is not None:
            from rich.text import Text

            self._bar.console.print(Text(text), soft_wrap=True)
        else:
            _write(sys.stderr, f"{text}\n")

    def _show_bar(self, label: str) -> None:
        if self._bar is None:
            self._bar = _new_bar()
            self._bar.start()
            self._bar.add_task(label, total=self.num_total)
        task = self._bar.task_ids[0]
        self._bar.update(task, completed=self.num_done, total=self.num_total, description=label)


def require_terminal() -> None:
    """Raises UsageError unless somebody can answer a question."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(
            "--ask needs a terminal.",
            why="It shows each stage's result and waits for an answer.",
            do="Leave --ask out, or stop after a stage with --until.",
        )


def json_text(verb: str, report: StageReport) -> str:
    """The document of `--json`, indented and ended by a newline."""
    import msgspec

    document = {
        "schema": f"perfkit.{verb}",
        "version": DOCUMENT_VERSION,
        **report.document,
        "warnings": report.warnings,
        "files": tuple(map(str, report.files)),
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def show_error(error: PerfkitError) -> None:
    """What happened, why, and what to do, on stderr."""
    _write(sys.stderr, f"perfkit: {error.what}\n  {error.why}\n  {error.do}\n")


def show_line(text: str) -> None:
    """One line on stderr that nothing silences."""
    _write(sys.stderr, f"{text}\n")


def _write(stream: IO[str], text: str) -> None:
    """Writes and flushes. A reader that closed the pipe has seen enough: the rest goes nowhere."""
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        discard(stream)


def discard(stream: IO[str]) -> None:
    """Points a closed pipe at nothing, so that neither later writes nor Python's exit complain."""
    with contextlib.suppress(OSError, ValueError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, stream.fileno())
        os.close(nothing)


def _styled(stream: IO[str]) -> bool:
    """Whether this stream is a terminal that may be decorated. FORCE_COLOR fools Rich: isatty decides."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _console(stream: IO[str]) -> Any:
    from rich.console import Console

    # Kernel names, dtypes and paths hold square brackets and colons: none of them is markup or an emoji.
    return Console(file=stream, markup=False, emoji=False, highlight=False)


def _new_bar() -> Progress:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    return Progress(
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
        console=_console(sys.stderr),
        transient=True,
    )


def _print_report(report: StageReport) -> None:
    if not _styled(sys.stdout):
        _write(sys.stdout, report_text(report))
        return
    if report.headline:
        _write(sys.stdout, f"{report.headline}\n\n")
    for table in report.tables:
        _print_table(table)


def _print_table(table: Table) -> None:
    """A Rich table whose texts fold at need; plain text where even that does not fit: Rich would cut."""
    console = _console(sys.stdout)
    right = flush_right(table)
    least = sum(
        size if number else min(size, _LEAST_FOLDED)
        for size, number in zip(widths(table), right, strict=True)
    )
    if not table.rows or least + 3 * len(right) > console.width:
        _write(sys.stdout, f"{table_text(table)}\n")
        return
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    title = Text(table.title) if table.title else None
    shown = RichTable(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for name, number in zip(table.columns, right, strict=True):
        shown.add_column(Text(name), justify="right" if number else "left", no_wrap=number, overflow="fold")
    for row in table.rows:
        shown.add_row(*map(Text, row))
    console.print(shown)
    _write(sys.stdout, "".join(f"{note}\n" for note in table.notes))
