"""Tables are whole wherever they go; names with brackets and colons come out as they are."""

from __future__ import annotations

import io
import re
import sys

import pytest

from perfkit.cli.plain import flush_right, report_text, table_text
from perfkit.cli.ui import Ui
from perfkit.errors import UsageError
from perfkit.stages.answer import StageReport, Table

LONG = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>>" * 2
TABLE = Table(
    title="Kernels [bf16]",
    columns=("kernel", "time_us", "share"),
    rows=((LONG, "1,234.5", "9%"), ("a:x:b [/data]", "-", "12.5%")),
    notes=("1 step.",),
)


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def on_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Makes stdout a terminal of 80 columns. No fixture: pytest sets stdout again between set-up and test."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return stream


def test_plain_tables_are_aligned_and_never_cut() -> None:
    lines = table_text(TABLE).splitlines()
    width = len(LONG)
    assert lines == [
        "Kernels [bf16]",
        "kernel".ljust(width) + "  time_us  share",
        "-" * width + "  -------  -----",
        LONG + "  1,234.5     9%",
        "a:x:b [/data]".ljust(width) + "        -  12.5%",
        "1 step.",
    ]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (("1", "-", "", "2.50"), True),
        (("1.2x", "<0.1"), True),
        (("+3%", "-4.0 %"), True),
        (("1e-5",), True),
        (("3.2 us", "16.8 GB/s"), True),
        (("3 of 4",), False),
        (("4k", "16k"), False),
        (("v1", "2"), False),
        (("-", ""), False),
        (("2048x4096",), False),
        ((), False),
    ],
)
def test_columns_of_numbers_are_flush_right(cells: tuple[str, ...], expected: bool) -> None:
    table = Table(title="", columns=("a",), rows=tuple((cell,) for cell in cells))
    assert flush_right(table) == (expected,)


def test_an_empty_table_says_so() -> None:
    assert table_text(Table(title="Islands", columns=("a",), rows=())) == "Islands\n(nothing)\n"


def test_a_report_is_separated_by_empty_lines() -> None:
    small = Table(title="A", columns=("a",), rows=(("1",),))
    text = report_text(StageReport(headline="Done.", tables=(small, small)))
    assert text == "Done.\n\nA\na\n-\n1\n\nA\na\n-\n1\n"


def test_a_pipe_gets_plain_text(capsys: pytest.CaptureFixture[str]) -> None:
    Ui().answer("bench", StageReport(tables=(TABLE,)), as_json=False)
    assert capsys.readouterr().out == table_text(TABLE)


def test_a_terminal_folds_long_names_and_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch)
    Ui().answer("bench", StageReport(tables=(TABLE,)), as_json=False)
    assert "\x1b[" in terminal.getvalue()
    text = re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue())
    assert max(map(len, text.splitlines())) == 80
    joined = "".join(line.split("  ")[0].strip() for line in text.splitlines())
    assert LONG.replace(" ", "") in joined.replace(" ", "")
    assert "a:x:b [/data]" in text
    assert "1,234.5" in text


def test_a_terminal_that_is_too_narrow_gets_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch)
    wide = Table(title="", columns=tuple("abcdefgh"), rows=(("1234567890.1",) * 8,))
    Ui().answer("bench", StageReport(tables=(wide,)), as_json=False)
    assert terminal.getvalue() == f"{table_text(wide)}\n"


def test_no_color_means_no_escape_codes_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch)
    monkeypatch.setenv("NO_COLOR", "1")
    Ui().answer("bench", StageReport(tables=(TABLE,)), as_json=False)
    assert "\x1b" not in terminal.getvalue()


def test_force_color_brings_no_bar_into_a_log(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    ui = Ui()
    ui.progress(0, 2, "starting")
    ui.progress(1, 2, "kernel[bf16]")
    ui.progress(2, 2, "a:x:b")
    ui.close()
    assert capsys.readouterr().err == "[1/2] kernel[bf16]\n[2/2] a:x:b\n"


def test_verbose_adds_the_time(capsys: pytest.CaptureFixture[str]) -> None:
    Ui(verbose=True).progress(1, 2, "eager")
    assert capsys.readouterr().err == "[1/2] eager (0 s)\n"


def test_a_terminal_shows_a_bar_and_lines_above_it(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    ui = Ui()
    ui.progress(0, 2, "kernel[bf16] a:x:b")
    ui.say("said [bold]this")
    ui.progress(1, 2, "next")
    ui.close()
    text = stream.getvalue()
    assert "kernel[bf16] a:x:b" in text
    assert "said [bold]this" in text
    assert text.endswith("\x1b[2K") or "\x1b[?25h" in text


@pytest.mark.parametrize(("typed", "expected"), [("\n", True), ("y\n", True), ("n\n", False), ("", True)])
def test_asking_shows_the_report_and_takes_enter_for_yes(
    monkeypatch: pytest.MonkeyPatch, typed: str, expected: bool
) -> None:
    stream, stdin = Terminal(), Terminal(typed)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(sys, "stdin", stdin)
    assert Ui().ask("rank", StageReport(headline="Two candidates.")) is expected
    assert stream.getvalue() == "\nTwo candidates.\n\nrank is done. Go on? [Y/n] "


def test_asking_without_a_terminal_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    with pytest.raises(UsageError, match="--ask needs a terminal"):
        Ui().ask("rank", StageReport())
