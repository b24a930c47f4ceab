"""External bytes of a piece: what even a perfect kernel for it must read and write."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from perfkit.floors.coverage import beyond, cover, overlap
from perfkit.floors.dependencies import Access, Dependencies
from perfkit.wire.ledger import Ledger, TensorUse


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Bytes that must cross the border of a piece."""

    num_read_bytes: int
    num_written_bytes: int
    is_known: bool = True
    """False when an op of the piece has unknown traffic; the counts are then of what it may touch."""

    @property
    def num_bytes(self) -> int:
        """Reads and writes."""
        return self.num_read_bytes + self.num_written_bytes


def external_traffic(ledger: Ledger, depends: Dependencies, ops: Collection[int]) -> Traffic:
    """Reads each part of each storage once, unless an op of the piece made it, and writes what is read by
    others or escapes once; values that are made and used up inside cost nothing.

    A lower bound, and exact wherever `coverage.cover` is. Versions need no distinction: were a storage
    rewritten from outside between two reads, a path would leave the piece and come back.
    """
    inside = frozenset(ops)
    reads: defaultdict[int, list[Access]] = defaultdict(list)
    writes: defaultdict[int, list[Access]] = defaultdict(list)
    for position in sorted(inside):
        for use in ledger.ops[position].reads:
            reads[use.storage].append(Access(position, use))
        for use in ledger.ops[position].writes:
            writes[use.storage].append(Access(position, use))
    return Traffic(
        num_read_bytes=sum(_read_bytes(group, depends, inside) for group in reads.values()),
        num_written_bytes=sum(_written_bytes(group, depends, inside) for group in writes.values()),
        is_known=all(ledger.ops[position].known_traffic for position in inside),
    )


def _read_bytes(reads: list[Access], depends: Dependencies, inside: frozenset[int]) -> int:
    """Bytes of one storage that come from outside."""
    outer: list[TensorUse] = []
    mixed = 0
    for read in reads:
        made = [write.use for write in depends.producers(read) if write.op in inside]
        if made:
            mixed = max(mixed, beyond((read.use,), made).least)
        else:
            outer.append(read.use)
    return max(cover(outer).least, mixed)


def _written_bytes(writes: list[Access], depends: Dependencies, inside: frozenset[int]) -> int:
    """Bytes of one storage that somebody outside needs."""
    needed = [need for write in writes for need in _needs(write, depends, inside)]
    return overlap([write.use for write in writes], needed).least if needed else 0


def _needs(write: Access, depends: Dependencies, inside: frozenset[int]) -> Iterator[TensorUse]:
    if write in depends.escaping:
        yield write.use
    yield from (read.use for read in depends.readers(write) if read.op not in inside)
