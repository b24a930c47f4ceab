"""Takes the ledger: every op of one eager step, the bytes it touches, and where it comes from."""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks

from perfkit.wire.ledger import Ledger, Op, OpKind, TensorUse

from .op_flops import flops_of
from .op_kinds import has_known_traffic, kind_of
from .op_mode import OpMode
from .origins import Origin, Origins
from .storages import Storages, has_storage
from .touched import num_distinct, part_of
from .traffic import Access, Traffic, tensors_in, traffic_of


def record_ledger(
    step: Callable[[], Any],
    *,
    module: nn.Module | None = None,
    leaves: Mapping[str, torch.Tensor] | None = None,
) -> Ledger:
    """The ledger of one call of `step`, whose result is held until the ledger is closed.

    `module` gives ops the names of its submodules; `leaves` names the tensors whose gradients the step
    accumulates. Compiled code runs eagerly. What is alive after the step, and what it saved for backward,
    escapes.
    """
    origins = Origins(module, leaves)
    mode = LedgerMode(origins)
    with (
        force_eager(),
        origins.followed(),
        saved_tensors_hooks(mode.note_saved, lambda saved: saved),
        mode.watching(),
    ):
        result = step()
    gc.collect()
    ledger = mode.ledger()
    del result
    return ledger


def force_eager() -> contextlib.AbstractContextManager[None]:
    """Compiled functions run their Python code inside the block.

    Without Dynamo in the process nothing has been compiled, and setting the stance would only import it
    (seconds). Run the step once before, so that what it compiles lazily is there.
    """
    if "torch._dynamo" not in sys.modules:
        return contextlib.nullcontext()
    stance: contextlib.AbstractContextManager[None] = torch.compiler.set_stance("force_eager")
    return stance


class LedgerMode(OpMode):  # type: ignore[no-untyped-call]
    """Writes down each op as it runs."""

    def __init__(self, origins: Origins) -> None:
        super().__init__()
        self._origins = origins
        self._storages = Storages()
        self._ops: list[Op] = []
        self._saved: set[tuple[int, int]] = set()

    def ledger(self) -> Ledger:
        """What was seen so far; storages that are alive now escape."""
        escaping = self._saved | self._storages.written_and_alive()
        return Ledger(
            ops=tuple(self._ops), escaping=tuple(sorted(escaping)), external=self._storages.external
        )

    def note_saved(self, tensor: torch.Tensor) -> torch.Tensor:
        """Takes down what autograd saves, if the step itself wrote it."""
        if has_storage(tensor) and self._storages.knows(tensor):
            number = self._storages.meet(tensor)
            if version := self._storages.version(number):
                self._saved.add((number, version))
        return tensor

    def on_view(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._origins.here()
        for tensor in filter(has_storage, tensors_in((args, kwargs))):
            self._storages.meet(tensor)
        out = func(*args, **kwargs)
        for tensor in filter(has_storage, tensors_in(out)):
            self._storages.make(tensor)
        return out

    def on_op(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        origin = self._origins.here()
        shapes = _shapes(tensors_in((args, kwargs)))
        out = func(*args, **kwargs)
        traffic = traffic_of(func, args, kwargs, out)
        flops, dtype = flops_of(func, args, kwargs, out)
        self._add(
            str(func),
            kind_of(func),
            origin,
            traffic,
            shapes=shapes,
            num_flops=flops,
            flop_dtype=dtype,
            known_traffic=has_known_traffic(func),
        )
        return out

    def on_launch(self, name: str, tensors: list[torch.Tensor], launch: Callable[[], Any]) -> Any:
        """A kernel behind pointers: any tensor may be read or written, so both are taken down as unknown."""
        origin, result = self._origins.here(), launch()
        touched = [Access(tensor) for tensor in tensors]
        traffic = Traffic(reads=touched, writes=touched)
        self._add(name, "opaque", origin, traffic, shapes=_shapes(tensors), known_traffic=False)
        return result

    def _add(
        self, name: str, kind: OpKind, origin: Origin, traffic: Traffic, *, known_traffic: bool, **more: Any
    ) -> None:
        accesses = [*traffic.reads, *traffic.writes]
        countable = all(has_storage(access.tensor) for access in accesses)
        reads = self._uses(traffic.reads, written=False)
        self._ops.append(
            Op(
                index=len(self._ops),
                name=name,
                kind=kind,
                phase=origin.phase,
                module=origin.module,
                source=origin.source,
                reads=reads,
                writes=self._uses(traffic.writes, written=True),
                known_traffic=known_traffic and countable,
                **more,
            )
        )

    def _uses(self, accesses: Iterable[Access], *, written: bool) -> tuple[TensorUse, ...]:
        """One use per distinct part; parts of one storage that an op writes make one version."""
        uses: dict[TensorUse, None] = {}
        versions: dict[int, int] = {}
        for access in accesses:
            if not has_storage(access.tensor):
                continue
            number = (self._storages.make if written else self._storages.meet)(access.tensor)
            if number not in versions:
                versions[number] = (self._storages.write if written else self._storages.version)(number)
            uses[_use(access, number, versions[number])] = None
        return tuple(uses)


def _use(access: Access, storage: int, version: int) -> TensorUse:
    tensor, part = access.tensor, part_of(access.tensor)
    count = num_distinct(part)
    if access.num_elements is not None:
        count = min(count, access.num_elements)
    return TensorUse(
        storage=storage,
        version=version,
        num_bytes=count * tensor.itemsize,
        view=(part.offset, part.sizes, part.strides),
        itemsize=tensor.itemsize,
        storage_bytes=tensor.untyped_storage().nbytes(),
    )


def _shapes(tensors: Iterable[torch.Tensor]) -> str:
    return " ".join(f"{list(tensor.shape)}" for tensor in tensors)
