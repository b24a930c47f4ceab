"""CSV files: column order, fixed decimals, holes empty, values that need quoting."""

from __future__ import annotations

import csv
import dataclasses
import io

from perfkit.report.csvs import candidates_csv, comparison_csv, csv_text, ideal_csv
from perfkit.report.model import Piece
from tests.support import report_data as data


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_decimals_follow_the_unit_of_the_column() -> None:
    text = csv_text(
        ("name", "time_us", "share", "ok"), [("a, b", 1.23456, 0.123456, True), ("c", None, None, False)]
    )
    assert text == 'name,time_us,share,ok\n"a, b",1.235,0.12346,yes\nc,,,no\n'


def test_ideal_holds_ratio_and_share() -> None:
    piece = Piece(
        case="4k",
        name="island 0",
        phase="forward",
        kind="glue",
        measured_us=300.0,
        floor_us=75.0,
        unfused_floor_us=150.0,
        num_ops=2,
        ops="mul, add",
        modules=("layers.0", "layers.1"),
        sources=("block.py:4 norm",),
    )
    other = dataclasses.replace(piece, name="gemm 1", kind="gemm", measured_us=900.0, floor_us=None)
    first, second = read(ideal_csv([piece, other]))
    assert list(first) == [
        *("case", "island", "kind", "phase", "num_ops", "ops", "modules", "source_lines"),
        *("measured_us", "floor_us", "unfused_floor_us"),
        *("bound", "num_bytes", "num_flops", "flags", "ratio", "share"),
    ]
    assert (first["ratio"], first["share"]) == ("4.0000", "0.25000")
    assert first["modules"] == "layers.0; layers.1"
    assert (second["floor_us"], second["ratio"], second["share"]) == ("", "", "0.75000")


def test_shares_are_of_the_own_case() -> None:
    rows = read(ideal_csv([*data.pieces("4k"), *data.pieces("16k", scale=3.9)]))
    for case in ("4k", "16k"):
        assert abs(sum(float(r["share"]) for r in rows if r["case"] == case) - 1) < 1e-3


def test_candidates_mark_what_is_not_worth_it() -> None:
    rows = read(candidates_csv(data.candidates(data.pieces())))
    assert rows[0]["rank"] == "1"
    assert {r["worthwhile"] for r in rows} == {"yes", "no"}


def test_comparison_keeps_every_process() -> None:
    made = data.comparison()
    rows = read(comparison_csv(made.rows))
    assert len(rows) == len(made.rows)
    block = next(r for r in rows if (r["case"], r["subject"], r["launch"]) == ("4k", "block", "launch"))
    assert len(block["process_us"].split()) == 3
    assert block["fates"] == "contaminated=1; ok=3"
    missing = next(r for r in rows if r["num_processes"] == "0")
    assert missing["median_us"] == ""
    assert missing["fates"] == "not_capturable=3"
