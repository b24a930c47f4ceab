"""What every command does: settings and options into a request, one stage, its report to the ui."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from perfkit.errors import UsageError

if TYPE_CHECKING:
    from perfkit.cli.settings import Chosen
    from perfkit.cli.ui import Ui
    from perfkit.stages.answer import StageReport
    from perfkit.stages.request import StageRequest

N = TypeVar("N", int, float)

_TREES = ("eager", "regions", "block")
_CHECKPOINTING = ("none", "full", "selective")
_STAGES = ("profile", "ideal", "rank", "bench", "verify", "finalize")


def run_verb(verb: str, given: Mapping[str, Any], **stated: Any) -> int:
    """Runs perfkit.stages.<verb> with the given options, shows its report, and returns the exit code.

    `given` are the shared options as Typer parsed them; `stated` are further fields of the request.

    Raises:
        PerfkitError: from the settings, the options or the stage.
    """
    from perfkit.cli.settings import choose
    from perfkit.cli.ui import Ui

    chosen = choose({name.replace("_", "-"): value for name, value in given.items()})
    ui = Ui(quiet=chosen["quiet"].value, verbose=chosen["verbose"].value)
    as_json = bool(given.get("json"))
    if given.get("show_config"):
        ui.answer("config", _shown_config(chosen), as_json=as_json)
        return 0
    request = _request(given, chosen, ui, stated)
    try:
        report = _stage(verb)(request, say=ui.say)
    except BrokenPipeError as error:
        ui.close()
        # Typer takes it for a reader who left, and would end in silence; the ui deals with those itself.
        raise RuntimeError("a pipe to a child process broke") from error
    except BaseException as error:
        ui.close()
        if ui.num_done and not isinstance(error, Exception):
            ui.say(f"{ui.num_done} of {ui.num_total} are done and kept")
        raise
    ui.answer(verb, report, as_json=as_json)
    return report.exit_code


def run_tool(verb: str, given: Mapping[str, Any], work: Callable[[], StageReport]) -> int:
    """Runs a command that has neither target nor effort, shows its report, and returns the exit code.

    Raises:
        PerfkitError: from the settings or the work.
    """
    from perfkit.cli.settings import choose
    from perfkit.cli.ui import Ui

    chosen = choose({name.replace("_", "-"): value for name, value in given.items()})
    ui = Ui(quiet=chosen["quiet"].value, verbose=chosen["verbose"].value)
    if given.get("show_config"):
        ui.answer("config", _shown_config(chosen), as_json=bool(given.get("json")))
        return 0
    report = work()
    ui.answer(verb, report, as_json=bool(given.get("json")))
    return report.exit_code


def one_of(flag: str, text: str, known: tuple[str, ...]) -> str:
    """The text, which must be one of the known words.

    Raises:
        UsageError: it is not.
    """
    _require_known(flag, (text,), known)
    return text


def bounds(flag: str, text: str | None, number: type[N]) -> tuple[N, N] | None:
    """`2:4` as two numbers, the first not above the second; None when the flag was not given.

    Raises:
        UsageError: the text has another form.
    """
    if text is None:
        return None
    parts = text.split(":")
    try:
        first, last = (number(part) for part in parts)
        if first <= last:
            return first, last
    except ValueError:
        pass
    raise UsageError(
        f"{flag}: cannot use {text!r}.",
        why="It takes two numbers joined by a colon, the smaller one first.",
        do=f"For example {flag} 2:4.",
    )


def _stage(verb: str) -> Callable[..., StageReport]:
    module = importlib.import_module(f"perfkit.stages.{verb.replace('-', '_')}")
    run: Callable[..., StageReport] = module.run
    return run


def _request(
    given: Mapping[str, Any], chosen: Mapping[str, Chosen], ui: Ui, stated: Mapping[str, Any]
) -> StageRequest:
    from perfkit.stages.request import StageRequest

    if stated.get("ask"):
        from perfkit.cli.ui import require_terminal

        require_terminal()
    if (until := stated.get("until")) is not None:
        _require_known("--until", (until,), _STAGES)
    further = {**stated, "ask": ui.ask} if stated.get("ask") else {**stated, "ask": None}
    value = {name: choice.value for name, choice in chosen.items()}
    return StageRequest(
        device=value["device"],
        dtype=value["dtype"],
        seed=value["seed"],
        num_threads=value["threads"],
        fp32_precision=value["fp32-precision"],
        time_limit_s=value["time-limit"],
        cases=_names("--cases", given.get("cases")),
        case_tables=tuple(given.get("case") or ()),
        blocks=_names("--blocks", given.get("blocks")),
        regions=_names("--regions", given.get("regions")),
        trees=_trees(given.get("trees")),
        checkpoint=_checkpoint(given.get("ac")),
        providers=_names("--providers", given.get("providers")),
        variants=_names("--variants", given.get("variants")),
        replicates=value["replicates"],
        quick=value["quick"],
        graph=value["graph"],
        effort=_effort_name(given.get("effort")),
        out=value["out"],
        overwrite=bool(given.get("overwrite")),
        dry_run=bool(given.get("dry_run")),
        progress=ui.progress,
        **further,
    )


def _names(flag: str, text: str | None) -> tuple[str, ...] | None:
    """`a,b` as names; None when the flag was not given."""
    if text is None:
        return None
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise UsageError(
            f"{flag}: cannot use {text!r}.",
            why="A name is empty.",
            do=f"Separate names by commas: {flag} a,b",
        )
    return names


def _trees(text: str | None) -> Any:
    names = _names("--trees", text)
    _require_known("--trees", names or (), _TREES)
    return names


def _checkpoint(mode: str | None) -> Any:
    _require_known("--ac", () if mode is None else (mode,), _CHECKPOINTING)
    return mode


def _require_known(flag: str, names: tuple[str, ...], known: tuple[str, ...]) -> None:
    from perfkit.recipe.near import did_you_mean, listed

    for name in names:
        if name not in known:
            raise UsageError(
                f"{flag}: there is no {name!r}.",
                why=f"It takes {listed(known)}.",
                do=did_you_mean(name, known, otherwise="Choose among these."),
            )


def _effort_name(text: str | None) -> str | None:
    if text is not None and (text in ("", "..") or Path(text).name != text):
        raise UsageError(
            f"--effort: cannot use {text!r}.",
            why="It is the name of one folder below --out, not a path.",
            do="Give the folder above it with --out.",
        )
    return text


def _shown_config(chosen: Mapping[str, Chosen]) -> StageReport:
    from perfkit.stages.answer import StageReport, Table

    rows = tuple(
        (name, "(decided later)" if choice.value is None else str(choice.value), choice.source)
        for name, choice in chosen.items()
    )
    values = {
        name: {"value": str(c.value) if isinstance(c.value, Path) else c.value, "source": c.source}
        for name, c in chosen.items()
    }
    table = Table(title="", columns=("setting", "value", "source"), rows=rows)
    return StageReport(tables=(table,), document={"settings": values})
