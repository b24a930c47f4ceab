"""External bytes of hand-drawn pieces. Every value has 1000 bytes unless a view says otherwise."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfkit.floors import Dependencies, external_traffic, find_units
from perfkit.floors.coverage import beyond, cover, overlap
from perfkit.wire.ledger import Ledger, TensorUse
from tests.support.ledgers import Drawing

TOP, BOTTOM = (0, (500,), (1,)), (500, (500,), (1,))
COLUMNS = [(100 * i, (10, 10), (100, 1)) for i in range(3)]


def traffic(ledger: Ledger, *ops: int) -> tuple[int, int]:
    found = external_traffic(ledger, Dependencies(ledger), ops)
    return found.num_read_bytes, found.num_written_bytes


def use(
    view: tuple[int, tuple[int, ...], tuple[int, ...]], *, itemsize: int = 1, num_bytes: int = 0
) -> TensorUse:
    count = itemsize
    for size in view[1]:
        count *= size
    return TensorUse(
        storage=0,
        version=0,
        num_bytes=num_bytes or count,
        view=view,
        itemsize=itemsize,
        storage_bytes=100_000,
    )


def test_inputs_count_once_and_inner_values_not_at_all() -> None:
    d = Drawing()
    d.op("x s", "a")
    d.op("a x", "b")
    d.op("b x", "c")
    assert traffic(d.ledger("c"), 0, 1, 2) == (2000, 1000)
    assert [t.num_bytes for t in find_units(d.ledger("c"))[0].op_traffic] == [3000, 3000, 3000]


def test_what_others_read_is_written() -> None:
    d = Drawing()
    d.op("x", "a")
    d.op("a", "b")
    d.op("a w", "g", kind="gemm")
    assert traffic(d.ledger("b"), 0, 1) == (1000, 2000)


def test_dead_outputs_cost_nothing() -> None:
    d = Drawing()
    d.op("x", "a unused")
    assert traffic(d.ledger("a"), 0) == (1000, 1000)


def test_what_was_saved_for_backward_is_written() -> None:
    d = Drawing()
    d.op("x", "a")
    d.op("a", "b")
    assert traffic(d.ledger("b"), 0, 1) == (1000, 1000)
    assert traffic(d.ledger("a b"), 0, 1) == (1000, 2000)


def test_an_overwritten_version_does_not_escape() -> None:
    d = Drawing()
    d.op("x", "a")
    d.op("y", "a")
    ledger = d.ledger("a")
    assert traffic(ledger, 0) == (1000, 0)
    assert traffic(ledger, 1) == (1000, 1000)


def test_a_partial_overwrite_leaves_the_rest_visible() -> None:
    d = Drawing()
    d.op("x", "a")
    d.op("y", "a", views={"a": TOP})
    assert traffic(d.ledger("a"), 0) == (1000, 1000)


def test_in_place_reads_and_writes_once() -> None:
    d = Drawing()
    for _ in range(3):
        d.op("a", "a")
    assert traffic(d.ledger("a"), 0, 1, 2) == (1000, 1000)


def test_slices_of_one_storage_are_read_together_once() -> None:
    d = Drawing()
    d.op("x", "a", views={"x": TOP})
    d.op("x a", "b")
    assert traffic(d.ledger("b"), 0, 1) == (1000, 1000)
    e = Drawing()
    e.op("x", "a", views={"x": TOP})
    e.op("x a", "b", views={"x": BOTTOM})
    assert traffic(e.ledger("b"), 0, 1) == (1000, 1000)


def test_what_was_made_inside_is_not_read() -> None:
    d = Drawing()
    d.op("x", "a", views={"a": TOP})
    d.op("a", "b")
    assert traffic(d.ledger("b"), 0, 1) == (1000 + 500, 1000)


def test_others_that_read_a_slice_need_only_that_slice() -> None:
    d = Drawing()
    d.op("x", "a")
    d.op("a w", "g", kind="gemm", views={"a": TOP})
    assert traffic(d.ledger("g"), 0) == (1000, 500)


def test_rows_of_a_table_count_as_rows() -> None:
    d = Drawing(num_bytes=1_000_000)
    d.op("table", "a", sizes={"table": 300})
    d.op("table a", "b", sizes={"table": 200})
    assert traffic(d.ledger("b"), 0, 1) == (300, 1_000_000)


def test_rows_written_into_a_table_that_escapes_are_written() -> None:
    d = Drawing(num_bytes=1_000_000)
    d.op("x", "table", sizes={"table": 300, "x": 300})
    assert traffic(d.ledger("table"), 0) == (300, 300)


def test_unknown_traffic_shows() -> None:
    d = Drawing()
    d.op("x", "a", kind="opaque", known_traffic=False)
    (unit,) = find_units(d.ledger("a"))
    assert not unit.traffic.is_known


def test_equal_transposed_and_contiguous_views_are_exact() -> None:
    assert cover([use((0, (10, 10), (10, 1))), use((0, (100,), (1,)))]) == (100, 100)
    assert cover([use((0, (60,), (1,))), use((40, (60,), (1,)))]) == (100, 100)


def test_slices_of_one_matrix_are_exact() -> None:
    q, k, v = (use((8 * i, (1 << 22, 8), (24, 1))) for i in range(3))
    limited = [TensorUse(**{**_fields(u), "storage_bytes": 24 << 22}) for u in (q, k, v)]
    assert cover(limited) == (24 << 22, 24 << 22)
    assert cover(limited[:2]) == (16 << 22, 16 << 22)
    assert overlap(limited[:1], limited[1:]) == (0, 0)


def _fields(u: TensorUse) -> dict[str, object]:
    return {name: getattr(u, name) for name in u.__struct_fields__}


def test_a_complex_view_and_a_real_view_are_the_same_bytes() -> None:
    real, complexes = use((0, (12, 2), (2, 1)), itemsize=4), use((0, (12,), (1,)), itemsize=8)
    assert cover([real, complexes]) == (96, 96)
    assert beyond([real], [complexes]) == (0, 0)


def test_the_union_never_exceeds_the_storage() -> None:
    parts = [use((0, (1 << 22, 3), (7, 2))), use((1, (1 << 22, 3), (11, 3)))]
    found = cover(parts)
    assert found.least <= found.most <= 100_000


views = st.builds(
    lambda offset, dims: (offset, tuple(n for n, _ in dims), tuple(s for _, s in dims)),
    st.integers(0, 20),
    st.lists(st.tuples(st.integers(1, 5), st.integers(1, 12)), max_size=3),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(views, st.sampled_from([1, 2, 4])), min_size=1, max_size=4))
def test_unions_are_exact_for_dense_parts(
    drawn: list[tuple[tuple[int, tuple[int, ...], tuple[int, ...]], int]],
) -> None:
    sets, uses = [], []
    for view, itemsize in drawn:
        offset, sizes, strides = view
        elements = {
            offset + sum(i * s for i, s in zip(index, strides, strict=True))
            for index in itertools.product(*(range(n) for n in sizes))
        }
        sets.append({itemsize * e + byte for e in elements for byte in range(itemsize)})
        uses.append(use(view, itemsize=itemsize, num_bytes=len(sets[-1])))
    exact = len(set().union(*sets))
    assert cover(uses) == (exact, exact)
    rest = len(sets[0] - set().union(*sets[1:]))
    assert beyond(uses[:1], uses[1:]) == (rest, rest)


@pytest.mark.parametrize("view", [(0, (0,), (1,)), (5, (3, 0), (4, 1))])
def test_empty_parts_cover_nothing(view: tuple[int, tuple[int, ...], tuple[int, ...]]) -> None:
    assert cover([use(view)]) == (0, 0)
