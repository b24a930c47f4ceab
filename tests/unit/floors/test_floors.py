"""Rates of a mix, floors, attribution, closure, the table and the ranking, on drawn ledgers."""

from __future__ import annotations

from typing import Any

import pytest

from perfkit.errors import PerfkitError
from perfkit.floors import (
    Attribution,
    Row,
    attribute,
    bandwidth_of_mix,
    closure,
    find_units,
    floor_of,
    floor_us,
    ideal_rows,
    rank,
    unfused_floor_us,
    violations,
    whole_floor,
    without_floor,
)
from perfkit.wire.payloads import Peaks
from tests.support.ledgers import Drawing, peaks, rate


def mixed_peaks() -> Peaks:
    return peaks([rate("read", 4e9), rate("triad_2_1", 3e9), rate("copy_1_1", 2e9), rate("write", 1e9)])


@pytest.mark.parametrize(
    ("num_read", "num_written", "expected"),
    [
        (100, 0, 4e9),
        (200, 100, 3e9),
        (100, 100, 2e9),
        (0, 100, 1e9),
        (0, 0, 2e9),
        (500, 100, 2 / (1 / 3e9 + 1 / 4e9)),
        (100, 300, 2 / (1 / 1e9 + 1 / 2e9)),
    ],
)
def test_bandwidth_follows_the_mix(num_read: int, num_written: int, expected: float) -> None:
    found = bandwidth_of_mix(mixed_peaks(), num_read_bytes=num_read, num_written_bytes=num_written)
    assert found == pytest.approx(expected)


def test_beyond_the_measured_mixes_the_nearest_counts() -> None:
    some = peaks([rate("triad_2_1", 3e9), rate("copy_1_1", 2e9)])
    assert bandwidth_of_mix(some, num_read_bytes=0, num_written_bytes=9) == pytest.approx(2e9)
    assert bandwidth_of_mix(some, num_read_bytes=9, num_written_bytes=0) == pytest.approx(3e9)


def test_without_any_bandwidth_there_is_no_floor() -> None:
    with pytest.raises(PerfkitError, match="no bandwidth"):
        bandwidth_of_mix(peaks([rate("gemm_bf16", 1e12)]), num_read_bytes=1, num_written_bytes=1)


def one_unit(**op: Any) -> Any:
    d = Drawing()
    d.op("x y", "z", **op)
    (unit,) = find_units(d.ledger("z"))
    return unit


def test_an_island_is_bound_by_its_bytes() -> None:
    floor = floor_of(one_unit(), peaks())
    assert (floor.time_us, floor.bound, floor.flags) == (pytest.approx(3.0), "bytes", ())


def test_no_floor_is_below_a_launch() -> None:
    tiny = one_unit(sizes={"x": 1, "y": 1, "z": 1})
    floor = floor_of(tiny, peaks())
    assert (floor.time_us, floor.bound) == (0.5, "launch")


def test_a_gemm_is_bound_by_the_larger_of_flops_and_bytes() -> None:
    heavy = one_unit(kind="gemm", num_flops=8_000_000, flop_dtype="bf16")
    light = one_unit(kind="gemm", num_flops=1_000_000, flop_dtype="bf16")
    assert (floor_of(heavy, peaks()).bound, floor_us(heavy, peaks())) == ("flops", pytest.approx(8.0))
    assert (floor_of(light, peaks()).bound, floor_us(light, peaks())) == ("bytes", pytest.approx(3.0))


def test_an_unmeasured_dtype_leaves_the_bytes_and_is_flagged() -> None:
    floor = floor_of(one_unit(kind="gemm", num_flops=10**9, flop_dtype="fp8"), peaks())
    assert (floor.time_us, floor.flags) == (pytest.approx(3.0), ("no_rate:fp8",))


def test_attention_without_flops_is_flagged() -> None:
    assert floor_of(one_unit(kind="attention"), peaks()).flags == ("no_flops",)


def test_unknown_traffic_has_no_floor_and_not_zero() -> None:
    unit = one_unit(kind="opaque", known_traffic=False)
    assert floor_us(unit, peaks()) is None
    assert unfused_floor_us(unit, peaks()) is None
    assert floor_of(unit, peaks()).bound == "unknown"


def test_the_unfused_floor_is_that_of_each_op_alone() -> None:
    d = Drawing()
    d.op("x", "a")
    d.op("a", "b")
    (unit,) = find_units(d.ledger("b"))
    assert floor_us(unit, peaks()) == pytest.approx(2.0)
    assert unfused_floor_us(unit, peaks()) == pytest.approx(4.0)


def test_a_whole_phase_as_one_kernel() -> None:
    d = Drawing()
    d.op("x", "a")
    d.op("a w", "g", kind="gemm", num_flops=1, flop_dtype="bf16")
    d.op("g x", "b")
    d.op("b x", "c", phase="backward")
    floor, traffic = whole_floor(d.ledger("c"), peaks(), phases=["forward"])
    assert (traffic.num_read_bytes, traffic.num_written_bytes) == (2000, 1000)
    assert floor.time_us == pytest.approx(3.0)


def drawn_step() -> Drawing:
    d = Drawing()
    d.op("x", "a", source="m.py:1 norm", module="layers.0")
    d.op("a w", "g", kind="gemm", num_flops=1, flop_dtype="bf16", source="m.py:2 f", module="layers.0")
    d.op("g x", "b", source="m.py:3 add", module="layers.0")
    d.op("b", "c", source="m.py:1 norm", module="layers.1")
    d.op("c w", "h", kind="gemm", num_flops=1, flop_dtype="bf16", source="m.py:2 f", module="layers.1")
    d.op("h b", "d", source="m.py:3 add", module="layers.1")
    return d


def rows_of(times_us: dict[int, float], *, total_us: float = 100.0, cache_bytes: int = 0) -> tuple[Row, ...]:
    units = find_units(drawn_step().ledger("d"))
    attribution = attribute(units, times_us, unattributed_us=0.0, total_us=total_us)
    return ideal_rows(units, attribution, peaks(cache_bytes=cache_bytes))


def test_times_add_up_and_the_closure_says_so() -> None:
    units = find_units(drawn_step().ledger("d"))
    times = {0: 10.0, 1: 20.0, 2: 5.0, 3: 5.0, 4: 20.0, 5: 6.0}
    found = closure(attribute(units, times, unattributed_us=4.0, total_us=70.0))
    assert (found.attributed_us, found.unattributed_us, found.is_closed) == (66.0, 4.0, True)
    assert found.line == ("attributed 66.0 us + unattributed 4.0 us (5.71%) = 70.0 us of kernel time")


def test_a_label_without_an_op_is_unattributed_and_a_gap_shows() -> None:
    units = find_units(drawn_step().ledger("d"))
    found = closure(attribute(units, {0: 10.0, 99: 3.0}, unattributed_us=0.0, total_us=13.0))
    assert (found.unattributed_us, found.is_closed) == (3.0, True)
    open_end = closure(attribute(units, {0: 10.0}, unattributed_us=0.0, total_us=13.0))
    assert not open_end.is_closed
    assert "DOES NOT CLOSE: +3.0 us" in open_end.line


def test_rows_carry_what_the_table_shows() -> None:
    rows = rows_of({0: 10.0, 1: 20.0, 2: 5.0, 3: 5.0, 4: 20.0, 5: 6.0})
    assert [row.id for row in rows] == ["f01", "f02", "f03", "f04", "f05"]
    middle = rows[2]
    assert (middle.kind, middle.num_ops, middle.ops) == ("island", 2, ("glue", "glue"))
    assert middle.modules == ("layers.0", "layers.1")
    assert middle.source_lines == ("m.py:3 add", "m.py:1 norm")
    assert (middle.measured_us, middle.floor_us, middle.unfused_floor_us) == pytest.approx((10.0, 4.0, 5.0))
    assert (middle.ratio, middle.gain_us, middle.share) == pytest.approx((2.5, 6.0, 0.1))
    assert violations(rows) == ()


def test_a_time_below_the_floor_is_flagged_and_explained_and_not_clamped() -> None:
    times = {0: 2.0 * 0.985, 1: 20.0, 2: 1.0, 3: 1.0, 4: 20.0, 5: 6.0}
    (row,) = violations(rows_of(times))
    assert (row.id, row.measured_us, row.gain_us) == ("f03", 2.0, pytest.approx(-2.0))
    assert "over-counted" in row.diagnosis
    (cached,) = violations(rows_of(times, cache_bytes=5000))
    assert "fits_cache" in cached.flags
    assert "fit the cache" in cached.diagnosis
    (partly,) = violations(rows_of(times, cache_bytes=2500))
    assert "The cache holds up to 62% of its bytes" in partly.diagnosis


def test_a_piece_without_kernels_is_said_to_be_missed() -> None:
    (row,) = violations(rows_of({1: 20.0, 2: 5.0, 3: 5.0, 4: 20.0, 5: 6.0}))
    assert row.diagnosis.startswith("No kernel ran")


def test_equal_pieces_of_repeated_blocks_rank_as_one() -> None:
    rows = rows_of({0: 10.0, 1: 20.0, 2: 5.0, 3: 5.0, 4: 21.0, 5: 3.5})
    islands = rank(rows, total_us=100.0)
    assert [(c.rank, c.count, c.rows[0].id) for c in islands] == [(1, 1, "f01"), (2, 1, "f03"), (3, 1, "f05")]
    (gemms,) = rank(rows, total_us=100.0, among="cut_ops")
    assert gemms.count == 2
    assert (gemms.measured_us, gemms.floor_us, gemms.gain_us) == pytest.approx((41.0, 6.0, 35.0))
    assert gemms.share == pytest.approx(0.35)
    assert gemms.source_lines == ("m.py:2 f",)
    assert [c.worthwhile for c in islands] == [True, True, False]


def test_pieces_without_a_floor_are_listed_apart() -> None:
    d = Drawing()
    d.op("x", "a", kind="opaque", known_traffic=False)
    units = find_units(d.ledger("a"))
    rows = ideal_rows(
        units, Attribution(measured_us={"f01": 9.0}, unattributed_us=0.0, total_us=9.0), peaks()
    )
    assert rank(rows, total_us=9.0, among="cut_ops") == ()
    assert [row.id for row in without_floor(rows)] == ["f01"]
    assert (rows[0].floor_us, rows[0].ratio, rows[0].gain_us) == (None, None, None)
