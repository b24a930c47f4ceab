"""The committed efforts: every table of theirs follows from their results, here and now, without a GPU."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from perfkit.report.csv_reading import read_candidates_csv, read_ideal_csv
from perfkit.stages import finalize
from perfkit.stages.request import StageRequest

REPORTS = Path(__file__).resolve().parents[3] / "reports"
EFFORTS = sorted(path.parent for path in REPORTS.glob("*/effort.json"))
PER_EFFORT = pytest.mark.parametrize("effort", EFFORTS, ids=lambda path: path.name)


def copied(effort: Path, folder: Path) -> Path:
    """The effort as a clone has it: without the folders of its slots."""
    target = folder / effort.name
    shutil.copytree(effort, target, ignore=shutil.ignore_patterns("slots", "lock", "*.log"))
    return target


@PER_EFFORT
def test_reports_follow_from_the_results(effort: Path, tmp_path: Path) -> None:
    copy = copied(effort, tmp_path)
    for name in ("findings.md", "comparison.md"):
        (copy / name).unlink()
    for folder in ("pr", "plots", "benchmarks"):
        shutil.rmtree(copy / folder, ignore_errors=True)
    finalize.run(StageRequest(target=str(copy)), say=lambda _: None)
    names = ["findings.md", "comparison.md"]
    names += [str(p.relative_to(effort)) for p in (*effort.glob("pr/*.md"), *effort.glob("benchmarks/*.csv"))]
    for name in names:
        assert (copy / name).read_text() == (effort / name).read_text(), name
    assert {p.name for p in copy.glob("plots/*.png")} == {p.name for p in effort.glob("plots/*.png")}


@PER_EFFORT
def test_the_ranking_follows_from_the_ideal_times(effort: Path) -> None:
    pieces, closures = read_ideal_csv((effort / "ideal.csv").read_text())
    candidates = read_candidates_csv((effort / "candidates.csv").read_text())
    with_floor = [piece for piece in pieces if piece.floor_us is not None]
    for case in {piece.case for piece in pieces}:
        gain_us = sum(piece.gain_us or 0.0 for piece in with_floor if piece.case == case)
        ranked_us = sum(c.gain_us for c in candidates if c.piece.case == case)
        assert ranked_us == pytest.approx(gain_us, abs=0.01 * len(pieces))
    for closure in closures:
        assert closure.unattributed_us <= 0.01 * closure.total_us


@PER_EFFORT
def test_no_committed_file_names_a_place_on_a_machine(effort: Path) -> None:
    for path in effort.rglob("*"):
        if path.is_file() and path.suffix in (".md", ".csv", ".json", ".jsonl") and "slots" not in path.parts:
            text = path.read_text()
            assert not any(word in text for word in ("/tmp/", "/home/", "/root/", "/work/")), path


@PER_EFFORT
def test_every_number_was_measured_in_the_state_of_the_header(effort: Path) -> None:
    header = json.loads((effort / "effort.json").read_text())
    lines = (effort / "results.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    assert {record["spec"]["device"] for record in records} == {header["setups"][-1]["device"]}
    assert {record["session"] for record in records} == {records[0]["session"]}
    assert not any(record["spec"].get("measure", {}).get("quick") for record in records)


def test_evidence_is_small() -> None:
    kept = [p for p in REPORTS.rglob("*") if p.is_file() and "slots" not in p.parts and p.name != "lock"]
    assert sum(path.stat().st_size for path in kept) < 2_000_000
