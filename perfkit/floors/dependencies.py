"""Which op made what another reads, and which ops must therefore run one after the other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from perfkit.floors.coverage import is_contained, overlap
from perfkit.wire.ledger import Ledger, Op, TensorUse


class Access(NamedTuple):
    """One read or write of one op."""

    op: int
    use: TensorUse


class Dependencies:
    """Reads joined with the writes that made them, over (storage, version) values.

    A read depends on every earlier write to its storage that overlaps it, back to the writes that
    together cover it; a write comes after overlapping reads and writes of older versions.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._writes: defaultdict[int, list[Access]] = defaultdict(list)
        self._reads: defaultdict[int, list[Access]] = defaultdict(list)
        self._producers: dict[Access, tuple[Access, ...]] = {}
        self._readers: defaultdict[Access, list[Access]] = defaultdict(list)
        self.data: dict[int, tuple[int, ...]] = {}
        """Position of an op -> positions of the ops that made what it reads."""
        self.order: dict[int, tuple[int, ...]] = {}
        """Position of an op -> ops that read or wrote, before it, what it overwrites."""
        for position, op in enumerate(ledger.ops):
            self._add(position, op)
        self.escaping = frozenset(
            write for storage, version in ledger.escaping for write in self._visible(storage, version)
        )
        """Writes that somebody can still see after the step, or that were saved for backward."""

    def producers(self, read: Access) -> tuple[Access, ...]:
        """The writes that made what is read, newest first."""
        return self._producers[read]

    def readers(self, write: Access) -> Sequence[Access]:
        """The reads that see (a part of) a write."""
        return self._readers.get(write, ())

    def _add(self, position: int, op: Op) -> None:
        reads = [Access(position, use) for use in op.reads]
        for read in reads:
            self._producers[read] = tuple(self._made(read.use))
            for write in self._producers[read]:
                self._readers[write].append(read)
        self.data[position] = _ops(w for read in reads for w in self._producers[read])
        writes = [Access(position, use) for use in op.writes]
        self.order[position] = _ops(before for write in writes for before in self._before(write))
        for access in reads:
            self._reads[access.use.storage].append(access)
        for access in writes:
            self._writes[access.use.storage].append(access)

    def _made(self, use: TensorUse) -> Iterator[Access]:
        """Writes that a use sees, newest first, until they cover it."""
        seen: list[TensorUse] = []
        for write in reversed(self._writes.get(use.storage, ())):
            if write.use.version > use.version or not _may_overlap(write.use, use):
                continue
            yield write
            seen.append(write.use)
            if is_contained(use, seen):
                return

    def _before(self, write: Access) -> Iterator[Access]:
        storage = write.use.storage
        for earlier in (*self._reads.get(storage, ()), *self._writes.get(storage, ())):
            if earlier.op != write.op and _may_overlap(earlier.use, write.use):
                yield earlier

    def _visible(self, storage: int, version: int) -> Iterator[Access]:
        """Writes that are visible in a version of a whole storage."""
        writes = self._writes.get(storage, ())
        num_bytes = max((w.use.storage_bytes or w.use.num_bytes for w in writes), default=0)
        yield from self._made(TensorUse(storage=storage, version=version, num_bytes=num_bytes))


def _may_overlap(a: TensorUse, b: TensorUse) -> bool:
    return overlap((a,), (b,)).most > 0


def _ops(accesses: Iterator[Access]) -> tuple[int, ...]:
    return tuple(sorted({access.op for access in accesses}))
