"""Islands of hand-drawn and of random ledgers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perfkit.floors import Dependencies, Island, find_islands
from perfkit.wire.ledger import Ledger
from tests.support.ledgers import Drawing


def pieces(ledger: Ledger) -> dict[str, tuple[int, ...]]:
    return {island.id: island.ops for island in find_islands(ledger)}


def groups(ledger: Ledger) -> set[tuple[int, ...]]:
    return {island.ops for island in find_islands(ledger)}


def test_a_chain_of_glue_is_one_island() -> None:
    d = Drawing()
    d.op("x", "a")
    d.op("a", "b")
    d.op("b x", "c")
    (island,) = find_islands(d.ledger("c"))
    assert (island.id, island.kind, island.phase, island.ops) == ("f01", "island", "forward", (0, 1, 2))


def test_the_residual_stream_splits_around_a_gemm() -> None:
    """Plain union over edges would join the norm and the add through x, around the GEMM."""
    d = Drawing()
    d.op("e", "x")
    d.op("x", "n")
    d.op("n w", "y", kind="gemm")
    d.op("x y", "z")
    assert groups(d.ledger("z")) == {(0, 1), (2,), (3,)}


def test_parallel_branches_of_equal_depth_merge() -> None:
    d = Drawing()
    d.op("x w", "g", kind="gemm")
    d.op("x v", "u", kind="gemm")
    d.op("g", "s")
    d.op("s u", "h")
    found = {island.ops: island for island in find_islands(d.ledger("h"))}
    assert set(found) == {(0,), (1,), (2, 3)}
    assert found[2, 3].depth == 1
    assert found[0,].depth == 0


def test_a_producer_of_lower_depth_stays_apart() -> None:
    d = Drawing()
    d.op("x", "a")
    d.op("x w", "g", kind="gemm")
    d.op("a g", "h")
    assert groups(d.ledger("h")) == {(0,), (1,), (2,)}


def test_unconnected_glue_stays_apart() -> None:
    d = Drawing()
    d.op("x", "a")
    d.op("x", "b")
    assert groups(d.ledger("a b")) == {(0,), (1,)}


def test_every_kind_of_cut_op_is_a_piece_of_its_own() -> None:
    d = Drawing()
    for kind in ("gemm", "attention", "collective", "opaque"):
        d.op("x", "x", kind=kind)
    found = find_islands(d.ledger("x"))
    assert [island.kind for island in found] == ["gemm", "attention", "collective", "opaque"]
    assert [island.depth for island in found] == [0, 1, 2, 3]


def test_phases_split() -> None:
    d = Drawing()
    d.op("x", "a")
    d.op("a", "b", phase="recompute")
    d.op("b", "c", phase="backward")
    d.op("c a", "d", phase="backward")
    assert pieces(d.ledger("d")) == {"f01": (0,), "r01": (1,), "b01": (2, 3)}


def test_an_island_does_not_leave_through_recompute_and_come_back() -> None:
    d = Drawing()
    d.op("x", "a", phase="backward")
    d.op("a", "b", phase="recompute")
    d.op("a b", "c", phase="backward")
    assert groups(d.ledger("c")) == {(0,), (1,), (2,)}


def test_in_place_ops_join_through_versions() -> None:
    d = Drawing()
    d.op("x", "a")
    d.op("a", "a")
    d.op("a", "b")
    assert groups(d.ledger("b")) == {(0, 1, 2)}


def test_a_write_waits_for_reads_of_the_old_version() -> None:
    """The GEMM reads x before it is overwritten, so the overwriting op lies behind the GEMM."""
    d = Drawing()
    d.op("x w", "y", kind="gemm")
    d.op("e", "f")
    d.op("f", "x")
    d.op("x f", "z")
    found = {island.ops: island.depth for island in find_islands(d.ledger("z"))}
    assert found == {(0,): 0, (1,): 0, (2, 3): 1}


def test_a_read_depends_on_all_writes_that_make_up_its_version() -> None:
    d = Drawing()
    top, bottom = (0, (500,), (1,)), (500, (500,), (1,))
    d.op("a w", "x", kind="gemm", views={"x": top})
    d.op("b", "x", views={"x": bottom})
    d.op("x", "y", views={"x": bottom})
    d.op("x", "z")
    depends = Dependencies(d.ledger("y z"))
    assert depends.data[2] == (1,)
    assert depends.data[3] == (0, 1)


def test_a_full_overwrite_hides_older_writes() -> None:
    d = Drawing()
    d.op("a w", "x", kind="gemm")
    d.op("b", "x")
    d.op("x", "y")
    depends = Dependencies(d.ledger("y"))
    assert depends.data[2] == (1,)
    assert depends.order[1] == (0,)


def test_ids_count_within_a_phase_and_do_not_depend_on_what_escapes() -> None:
    d = Drawing()
    for _ in range(3):
        d.op("x w", "g", kind="gemm")
        d.op("g", "x")
    d.op("x", "y", phase="backward")
    assert list(pieces(d.ledger("y"))) == ["f01", "f02", "f03", "f04", "f05", "f06", "b01"]
    assert find_islands(d.ledger("y")) == find_islands(d.ledger("x y"))


def test_an_empty_ledger_has_no_pieces() -> None:
    assert find_islands(Ledger(ops=(), escaping=())) == ()


@st.composite
def random_ledgers(draw: Callable[..., int]) -> Ledger:
    d, num_values = Drawing(num_bytes=16), draw(st.integers(2, 6))
    names = [f"v{i}" for i in range(num_values)]
    for _ in range(draw(st.integers(1, 14))):
        reads = draw(st.lists(st.sampled_from(names), max_size=3, unique=True))
        writes = draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
        start, stop = sorted(draw(st.lists(st.integers(0, 4), min_size=2, max_size=2, unique=True)))
        part = (4 * start, (4 * (stop - start),), (1,))
        d.op(
            " ".join(reads),
            " ".join(writes),
            kind=draw(st.sampled_from(["glue", "glue", "glue", "gemm"])),
            phase=draw(st.sampled_from(["forward", "backward", "recompute"])),
            views={name: part for name in names if draw(st.booleans())},
        )
    return d.ledger()


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(random_ledgers())
def test_islands_are_convex_and_partition_the_ops(ledger: Ledger) -> None:
    found = find_islands(ledger)
    assert sorted(op for island in found for op in island.ops) == list(range(len(ledger.ops)))
    depends = Dependencies(ledger)
    after = {
        op: {later for later in range(len(ledger.ops)) if op in (*depends.data[later], *depends.order[later])}
        for op in range(len(ledger.ops))
    }
    for island in found:
        assert not left_and_came_back(island, after)
        kinds = {ledger.ops[op].kind for op in island.ops}
        assert len({ledger.ops[op].phase for op in island.ops}) == 1
        assert kinds == {"glue"} or len(island.ops) == 1


def left_and_came_back(island: Island, after: dict[int, set[int]]) -> bool:
    """Whether some path from a member to a member passes an outsider, by walking every path."""
    members = set(island.ops)
    outside = {later for op in members for later in after[op]} - members
    while outside:
        reached = {later for op in outside for later in after[op]}
        if reached & members:
            return True
        outside = reached - outside
    return False


def test_the_brute_force_finds_a_path_that_comes_back() -> None:
    island = Island(id="f01", kind="island", phase="forward", depth=0, ops=(0, 2))
    assert left_and_came_back(island, {0: {1, 2}, 1: {2}, 2: set()})
    assert not left_and_came_back(island, {0: {2}, 1: {2}, 2: set()})


@pytest.mark.parametrize("num_ops", [3, 30])
def test_all_ops_of_a_deep_chain_have_growing_depth(num_ops: int) -> None:
    d = Drawing()
    for _ in range(num_ops):
        d.op("x", "x", kind="gemm")
    assert [island.depth for island in find_islands(d.ledger())] == list(range(num_ops))
