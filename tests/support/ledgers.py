"""Hand-drawn ledgers: ops over named values, without torch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from perfkit.wire.ledger import Ledger, Op, OpKind, Phase, TensorUse
from perfkit.wire.payloads import Peaks, Rate


class Drawing:
    """Draws ops one after the other; a value is a storage of `num_bytes` that is known by its name."""

    def __init__(self, *, num_bytes: int = 1000) -> None:
        self._num_bytes = num_bytes
        self._storages: dict[str, int] = {}
        self._versions: dict[str, int] = {}
        self._ops: list[Op] = []

    def op(
        self,
        reads: str,
        writes: str,
        *,
        kind: OpKind = "glue",
        phase: Phase = "forward",
        views: dict[str, tuple[int, tuple[int, ...], tuple[int, ...]]] | None = None,
        sizes: dict[str, int] | None = None,
        **more: Any,
    ) -> int:
        """Adds an op over the space-separated values; returns its index. `sizes` counts bytes touched."""
        views, sizes = views or {}, sizes or {}
        index = len(self._ops)
        read = [self._use(name, views, sizes) for name in reads.split()]
        for name in writes.split():
            self._versions[name] = self._versions.get(name, 0) + 1
        self._ops.append(
            Op(
                **{
                    "index": index,
                    "name": f"aten.{kind}.default",
                    "kind": kind,
                    "phase": phase,
                    "module": "",
                    "source": "",
                    "reads": tuple(read),
                    "writes": tuple(self._use(name, views, sizes) for name in writes.split()),
                    **more,
                }
            )
        )
        return index

    def ledger(self, escaping: str = "") -> Ledger:
        """What was drawn; the named values escape in their latest version."""
        return Ledger(
            ops=tuple(self._ops),
            escaping=tuple((self._storages[name], self._versions[name]) for name in escaping.split()),
        )

    def _use(self, name: str, views: dict[str, Any], sizes: dict[str, int]) -> TensorUse:
        offset, shape, strides = views.get(name, (0, (self._num_bytes,), (1,)))
        covered = 1
        for size in shape:
            covered *= size
        return TensorUse(
            storage=self._storages.setdefault(name, len(self._storages)),
            version=self._versions.get(name, 0),
            num_bytes=sizes.get(name, covered),
            view=(offset, shape, strides),
            storage_bytes=self._num_bytes,
        )


def rate(name: str, value: float, unit: str = "bytes_per_s") -> Rate:
    """A ceiling without a history."""
    return Rate(name=name, value=value, unit=unit, num_samples=1, spread_percent=0.0, how="")


def peaks(rates: Iterable[Rate] | None = None, *, cache_bytes: int = 0) -> Peaks:
    """1 GB/s for every mix, 1 TFLOP/s in bf16, 0.5 us per launch: 1000 bytes take 1 us."""
    chosen = rates or (
        rate("read", 1e9),
        rate("copy_1_1", 1e9),
        rate("triad_2_1", 1e9),
        rate("write", 1e9),
        rate("gemm_bf16", 1e12, "flops_per_s"),
        rate("launch_floor", 0.5, "us"),
    )
    return Peaks(device_key="drawn", rates=tuple(chosen), cache_bytes=cache_bytes, measured_at="")
