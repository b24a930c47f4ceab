"""Cuts a ledger into cut ops and convex islands of glue: pieces that one kernel each could be."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Literal

from perfkit.floors.dependencies import Dependencies
from perfkit.wire.ledger import Ledger, Op, OpKind, Phase

IslandKind = Literal["island", "gemm", "attention", "collective", "opaque"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Island:
    """A convex piece of glue of one phase, or a single cut op."""

    id: str
    """Phase letter and number in order of first ops: `f03`, `b12`, `r01`."""
    kind: IslandKind
    phase: Phase
    depth: int
    """Cut ops on the longest path to it."""
    ops: tuple[int, ...]
    """Positions in the ledger, ascending."""


def find_islands(ledger: Ledger, dependencies: Dependencies | None = None) -> tuple[Island, ...]:
    """All pieces, in order of their first ops; every op is in exactly one.

    Neighbouring glue ops join where depth and phase are equal. Depth rises behind every cut op, so no
    path leaves an island through one and comes back. A path could also leave through another phase
    (recompute inside backward); ops behind such a return are kept apart.
    """
    depends = dependencies or Dependencies(ledger)
    depths = _depths(ledger, depends)
    returns = _returns(ledger, depends, depths)
    groups = _Groups(len(ledger.ops))
    for position, op in enumerate(ledger.ops):
        key = (depths[position], op.phase, returns[position])
        for before in (*depends.data[position], *depends.order[position]):
            other = ledger.ops[before]
            same = key == (depths[before], other.phase, returns[before])
            if same and op.kind == other.kind == "glue":
                groups.join(before, position)
    return _named(ledger.ops, groups.members(), depths)


def _depths(ledger: Ledger, depends: Dependencies) -> list[int]:
    """Number of cut ops on the longest path to each op."""
    depths: list[int] = []
    for position in range(len(ledger.ops)):
        before = (*depends.data[position], *depends.order[position])
        depths.append(max((depths[b] + _is_cut(ledger.ops[b].kind) for b in before), default=0))
    return depths


def _returns(ledger: Ledger, depends: Dependencies, depths: list[int]) -> list[int]:
    """How often the worst path to each op, at its own depth, left the op's phase and came back."""
    best: list[dict[Phase, int]] = []
    returns: list[int] = []
    for position, op in enumerate(ledger.ops):
        seen: defaultdict[Phase, int] = defaultdict(int)
        own = 0
        for before in (*depends.data[position], *depends.order[position]):
            if depths[before] != depths[position] or _is_cut(ledger.ops[before].kind):
                continue
            for phase, count in best[before].items():
                seen[phase] = max(seen[phase], count)
            if op.phase in best[before]:
                left = ledger.ops[before].phase != op.phase
                own = max(own, best[before][op.phase] + left)
        seen[op.phase] = own
        best.append(dict(seen))
        returns.append(own)
    return returns


def _is_cut(kind: OpKind) -> bool:
    return kind != "glue"


class _Groups:
    """Disjoint sets of ops."""

    def __init__(self, size: int) -> None:
        self._parent = list(range(size))

    def join(self, a: int, b: int) -> None:
        self._parent[self._root(b)] = self._root(a)

    def members(self) -> list[tuple[int, ...]]:
        """The sets, each ascending, by first member."""
        found: defaultdict[int, list[int]] = defaultdict(list)
        for op in range(len(self._parent)):
            found[self._root(op)].append(op)
        return sorted(tuple(group) for group in found.values())

    def _root(self, op: int) -> int:
        while self._parent[op] != op:
            self._parent[op] = self._parent[self._parent[op]]
            op = self._parent[op]
        return op


def _named(ops: tuple[Op, ...], groups: list[tuple[int, ...]], depths: list[int]) -> tuple[Island, ...]:
    numbers: defaultdict[Phase, int] = defaultdict(int)
    islands = []
    for group in groups:
        first = ops[group[0]]
        numbers[first.phase] += 1
        islands.append(
            Island(
                id=f"{first.phase[0]}{numbers[first.phase]:02d}",
                kind="island" if first.kind == "glue" else first.kind,
                phase=first.phase,
                depth=depths[group[0]],
                ops=group,
            )
        )
    return tuple(islands)
