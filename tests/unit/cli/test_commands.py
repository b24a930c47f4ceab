"""Each command asks its stage for what its options say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perfkit.errors import ExitCode
from perfkit.stages.answer import StageReport, Table
from perfkit.stages.request import StageRequest
from tests.support.command_line import CommandLine


def test_profile(perfkit: CommandLine) -> None:
    request = perfkit.asked(
        *(
            "profile",
            "llama3-block",
            "--device",
            "cuda:1",
            "--dtype",
            "fp16",
            "--threads",
            "4",
            "--seed",
            "7",
        ),
        *("--fp32-precision", "tf32", "--time-limit", "1.5", "--replicates", "2", "--quick", "--no-graph"),
        *("--cases", "a,b", "--case", "tokens=4", "--case", "x:tokens=5", "--trees", "eager,block"),
        *("--blocks", "A,B", "--regions", "f,C.g", "--ac", "full", "--providers", "target,liger"),
        *("--variants", "v0,v1", "--effort", "mine", "--out", "efforts", "--overwrite", "--dry-run"),
    )
    assert perfkit.verb == "profile"
    progress = request.progress
    assert request == StageRequest(
        target="llama3-block",
        device="cuda:1",
        dtype="fp16",
        num_threads=4,
        seed=7,
        fp32_precision="tf32",
        time_limit_s=1.5,
        replicates=2,
        quick=True,
        graph=False,
        cases=("a", "b"),
        case_tables=("tokens=4", "x:tokens=5"),
        trees=("eager", "block"),
        blocks=("A", "B"),
        regions=("f", "C.g"),
        checkpoint="full",
        providers=("target", "liger"),
        variants=("v0", "v1"),
        effort="mine",
        out=Path("efforts"),
        overwrite=True,
        dry_run=True,
        progress=progress,
    )


def test_what_is_not_stated_is_left_to_the_stage(perfkit: CommandLine) -> None:
    request = perfkit.asked("bench", "x")
    assert request == StageRequest(target="x", progress=request.progress)


def test_bench(perfkit: CommandLine) -> None:
    assert perfkit.asked("bench", "x", "--variants", "v0, v2").variants == ("v0", "v2")
    assert perfkit.verb == "bench"


def test_ideal(perfkit: CommandLine) -> None:
    assert perfkit.asked("ideal", "x", "--blocks", "A").blocks == ("A",)
    assert perfkit.verb == "ideal"
    assert perfkit("ideal", "x", "--trees", "eager").code == ExitCode.USAGE


def test_rank(perfkit: CommandLine) -> None:
    assert perfkit.asked("rank", "x").target == "x"
    assert perfkit.verb == "rank"


@pytest.mark.parametrize("code", list(ExitCode)[:5])
def test_verify(perfkit: CommandLine, code: ExitCode) -> None:
    perfkit.work = lambda request, say: StageReport(headline="verdict", exit_code=code)
    outcome = perfkit("verify", "x", "--providers", "target")
    assert (perfkit.verb, outcome.code, outcome.out) == ("verify", code, "verdict\n")


def test_finalize(perfkit: CommandLine) -> None:
    assert perfkit.asked("finalize", "x", "--effort", "mine").effort == "mine"
    assert perfkit.verb == "finalize"
    assert perfkit("finalize", "x", "--replicates", "3").code == ExitCode.USAGE


def test_investigate(perfkit: CommandLine) -> None:
    request = perfkit.asked("investigate", "x", "--until", "rank")
    assert (perfkit.verb, request.until, request.ask) == ("investigate", "rank", None)
    outcome = perfkit("investigate", "x", "--until", "rnk")
    assert outcome.code == ExitCode.USAGE
    assert "Did you mean rank?" in outcome.err


def test_investigate_asks_only_on_a_terminal(perfkit: CommandLine) -> None:
    outcome = perfkit("investigate", "x", "--ask")
    assert outcome.code == ExitCode.USAGE
    assert "--ask needs a terminal." in outcome.err
    assert perfkit.request is None


def test_doctor(perfkit: CommandLine) -> None:
    assert perfkit.asked("doctor", "--device", "cpu").device == "cpu"
    assert perfkit.verb == "doctor"
    assert perfkit("doctor", "--trees", "eager").code == ExitCode.USAGE


def test_peaks(perfkit: CommandLine) -> None:
    request = perfkit.asked("peaks", "--refresh", "--threads", "2")
    assert (perfkit.verb, request.refresh, request.num_threads) == ("peaks", True, 2)
    assert not perfkit.asked("peaks").refresh


def test_log(perfkit: CommandLine) -> None:
    request = perfkit.asked("log", "mine", "it did not help", "--out", "efforts")
    assert (perfkit.verb, request.target, request.text) == ("log", "mine", "it did not help")
    assert request.out == Path("efforts")


def test_new_variant(perfkit: CommandLine) -> None:
    request = perfkit.asked(
        *("new", "variant", "mine", "--replaces", "a.b", "--replaces", "c", "--hypothesis", "less traffic")
    )
    assert (perfkit.verb, request.target) == ("new_variant", "mine")
    assert (request.replaces, request.text) == (("a.b", "c"), "less traffic")


def test_recipes_lists_what_ships(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from perfkit.cli import main

    assert main.run(["recipes"]) == 0
    text = capsys.readouterr().out
    assert "llama3-block" in text
    assert "rms-norm" in text
    assert main.run(["recipes", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["version"]) == ("perfkit.recipes", 1)
    by_name = {recipe["name"]: recipe for recipe in document["recipes"]}
    assert by_name["rms-norm"]["providers"] == ["torch", "liger"]
    assert by_name["llama3-block"]["cpu_cases"]["tiny"]["tokens"] == 64


def test_json_is_the_only_thing_on_stdout(perfkit: CommandLine) -> None:
    def work(request: StageRequest, say: object) -> StageReport:
        assert callable(say)
        say("measuring")
        request.progress(1, 1, "eager tiny")
        table = Table(title="Times", columns=("a",), rows=(("1",),))
        return StageReport(
            headline="done",
            tables=(table,),
            document={"rows": [1, None]},
            files=(Path("a.md"),),
            warnings=("noisy",),
        )

    perfkit.work = work
    outcome = perfkit("bench", "x", "--json")
    assert json.loads(outcome.out) == {
        "schema": "perfkit.bench",
        "version": 1,
        "rows": [1, None],
        "warnings": ["noisy"],
        "files": ["a.md"],
    }
    assert outcome.err == "measuring\n[1/1] eager tiny\nwarning: noisy\nwrote a.md\n"


def test_quiet_says_only_warnings(perfkit: CommandLine) -> None:
    def work(request: StageRequest, say: object) -> StageReport:
        assert callable(say)
        say("measuring")
        request.progress(1, 1, "eager tiny")
        return StageReport(headline="done", files=(Path("a.md"),), warnings=("noisy",))

    perfkit.work = work
    outcome = perfkit("bench", "x", "-q")
    assert (outcome.out, outcome.err) == ("done\n", "warning: noisy\n")


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("bnch", "x"), "Did you mean 'bench'?"),
        (("bench", "x", "--devic", "cpu"), "--device"),
        (("bench",), "Missing argument"),
        (("bench", "x", "y"), "unexpected extra argument"),
        (("bench", "x", "--device", "tpu"), "--device: cannot use 'tpu'."),
        (("bench", "x", "--dtype", "fp8"), "It is not one of fp64, fp32, bf16, fp16."),
        (("bench", "x", "--replicates", "0"), "--replicates: cannot use '0'."),
        (("bench", "x", "--replicates", "two"), "not a whole number of at least 1"),
        (("bench", "x", "--time-limit", "-1"), "--time-limit: cannot use '-1'."),
        (("bench", "x", "--time-limit", "nan"), "not a positive number of seconds"),
        (("bench", "x", "--trees", "eagr"), "Did you mean eager?"),
        (("bench", "x", "--trees", "eager,,block"), "A name is empty."),
        (("bench", "x", "--cases", ""), "A name is empty."),
        (("bench", "x", "--ac", "some"), "It takes none, full, selective."),
        (("bench", "x", "--effort", "a/b"), "It is the name of one folder below --out"),
        (("bench", "x", "--effort", ".."), "It is the name of one folder below --out"),
        (("bench", "x", "--out", ""), "--out: cannot use ''."),
        (("bench", "x", "-q", "-v"), "Cannot be quiet and verbose at once."),
        (("log", "x"), "Missing argument"),
        (("new", "varant", "x"), "Did you mean 'variant'?"),
    ],
)
def test_bad_usage_ends_with_2_and_starts_nothing(
    perfkit: CommandLine, args: tuple[str, ...], expected: str
) -> None:
    outcome = perfkit(*args)
    assert outcome.code == ExitCode.USAGE
    assert expected in outcome.err
    assert (outcome.out, perfkit.request) == ("", None)
    assert "Traceback" not in outcome.err


def test_version(perfkit: CommandLine) -> None:
    from perfkit.version import __version__

    assert perfkit("--version").out == f"perfkit {__version__}\n"
