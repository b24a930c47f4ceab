"""Packing intervals into rows."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfkit.trace.packing import pack, pack_nested

SPANS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 10)), max_size=15)


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 10)), max_size=15))
def test_rows_are_disjoint_and_no_more_than_needed(spans: list[tuple[int, int]]) -> None:
    starts, ends = [s for s, _ in spans], [s + d for s, d in spans]
    rows = pack(starts, ends)
    for one, two in combinations(range(len(spans)), 2):
        if rows[one] == rows[two]:
            assert min(ends[one], ends[two]) <= max(starts[one], starts[two])
    pairs = list(zip(starts, ends, strict=True))
    depth = max((sum(start <= point < end for start, end in pairs) for point in range(51)), default=0)
    assert len(set(rows)) == depth


@given(SPANS)
def test_nested_rows_never_cross(spans: list[tuple[int, int]]) -> None:
    starts, ends = [s for s, _ in spans], [s + d for s, d in spans]
    rows = pack_nested(starts, ends)
    for one, two in combinations(range(len(spans)), 2):
        if rows[one] == rows[two]:
            first, second = sorted((one, two), key=lambda i: (starts[i], -ends[i]))
            assert ends[first] <= starts[second] or ends[second] <= ends[first]


def test_the_lowest_free_row_is_taken() -> None:
    assert pack([0, 1, 2, 10, 11], [10, 3, 4, 12, 12]) == [0, 1, 2, 0, 1]


@pytest.mark.parametrize(("tolerance_ns", "rows"), [(0, [0, 1]), (31, [0, 1]), (32, [0, 0])])
def test_a_tolerance_joins_rows(tolerance_ns: int, rows: list[int]) -> None:
    assert pack([0, 68], [100, 200], tolerance_ns=tolerance_ns) == rows


def test_nesting_shares_a_row() -> None:
    assert pack_nested([0, 1, 5, 20], [10, 4, 11, 30]) == [0, 0, 1, 0]
