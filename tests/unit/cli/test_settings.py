"""Flags win over PERFKIT_*, these over [tool.perfkit], this over the defaults."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perfkit.cli.settings import SETTINGS, choose
from perfkit.errors import UsageError
from tests.support.command_line import CommandLine


def project(folder: Path, text: str) -> None:
    (folder / "pyproject.toml").write_text(text)


def test_defaults(tmp_path: Path) -> None:
    chosen = choose({}, environ={}, start=tmp_path)
    assert {name: choice.value for name, choice in chosen.items()} == {
        "device": "auto",
        "dtype": None,
        "replicates": None,
        "quick": False,
        "graph": True,
        "threads": None,
        "seed": 0,
        "fp32-precision": "ieee",
        "time-limit": None,
        "out": Path("reports"),
        "quiet": False,
        "verbose": False,
    }
    assert {choice.source for choice in chosen.values()} == {"default"}


def test_precedence(tmp_path: Path) -> None:
    project(tmp_path, '[tool.perfkit]\nseed = 1\nthreads = 2\nreplicates = 3\ndevice = "cpu"\n')
    environ = {"PERFKIT_SEED": "4", "PERFKIT_THREADS": "5", "PERFKIT_TIME_LIMIT": "9", "PERFKIT_QUICK": ""}
    chosen = choose({"seed": "6", "threads": None}, environ=environ, start=tmp_path)
    file = tmp_path / "pyproject.toml"
    found = {name: (choice.value, choice.source) for name, choice in chosen.items()}
    assert found["seed"] == (6, "--seed")
    assert found["threads"] == (5, "PERFKIT_THREADS")
    assert found["replicates"] == (3, f"{file} [tool.perfkit] replicates")
    assert found["device"] == ("cpu", f"{file} [tool.perfkit] device")
    assert found["time-limit"] == (9.0, "PERFKIT_TIME_LIMIT")
    assert found["quick"] == (False, "default")


def test_a_switch_can_be_turned_off_again(tmp_path: Path) -> None:
    project(tmp_path, "[tool.perfkit]\ngraph = true\nquick = true\n")
    chosen = choose({"graph": False}, environ={"PERFKIT_QUICK": "no"}, start=tmp_path)
    assert (chosen["graph"].value, chosen["quick"].value) == (False, False)


def test_the_nearest_project_upwards_with_a_table_counts(tmp_path: Path) -> None:
    project(tmp_path, '[tool.perfkit]\nout = "perf"\n')
    inner = tmp_path / "src" / "deep"
    inner.mkdir(parents=True)
    project(tmp_path / "src", "[project]\nname = 'x'\n")
    assert choose({}, environ={}, start=inner)["out"].value == tmp_path / "perf"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[tool.perfkit]\nreplicate = 3\n", "no setting 'replicate'.*Did you mean replicates?"),
        ("[tool.perfkit]\nreplicates = '3 '\n", "[tool.perfkit] replicates: cannot use '3 '."),
        ("[tool.perfkit]\nreplicates = true\n", "not a whole number"),
        ("[tool.perfkit]\ndevice = 0\n", "is not auto, cpu, cuda"),
        ("[tool.perfkit]\nquick = 'maybe'\n", "is not true or false"),
        ("[tool.perfkit]\nout = 3\n", "is not the path of a folder"),
        ("[tool]\nperfkit = 3\n", "tool.perfkit is not a table"),
        ("[tool.perfkit\n", "Cannot read"),
    ],
)
def test_a_bad_project_file_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    project(tmp_path, text)
    with pytest.raises(UsageError) as caught:
        choose({}, environ={}, start=tmp_path)
    for part in expected.split(".*"):
        assert part in str(caught.value)


def test_a_bad_variable_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="PERFKIT_DTYPE: cannot use 'half'"):
        choose({}, environ={"PERFKIT_DTYPE": "half"}, start=tmp_path)


def test_show_config_names_every_source_and_runs_nothing(
    perfkit: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PERFKIT_SEED", "4")
    outcome = perfkit("bench", "x", "--show-config", "--json", "--device", "cpu")
    assert outcome.code == 0
    settings = json.loads(outcome.out)["settings"]
    assert list(settings) == list(SETTINGS)
    assert settings["seed"] == {"value": 4, "source": "PERFKIT_SEED"}
    assert settings["device"] == {"value": "cpu", "source": "--device"}
    assert settings["out"] == {"value": "reports", "source": "default"}
    assert perfkit.request is None


def test_settings_reach_the_request(perfkit: CommandLine, tmp_path: Path) -> None:
    project(tmp_path, "[tool.perfkit]\nquick = true\nout = 'perf'\n")
    request = perfkit.asked("bench", "x")
    assert (request.quick, request.out) == (True, tmp_path / "perf")
