"""The dispatch mode under the ledger and the labelled profile: what both of them call an op."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .op_kinds import decomposes, runs_kernel
from .torch_private import observed_launches


class OpMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Calls `on_op` for each op that runs a kernel, `on_view` for others, `on_launch` for Triton launches.

    Tensor subclasses are unwrapped first (a DTensor's local ops are seen, not its global ones), and ops
    that are recipes of others are seen as these. Launches inside an op belong to the op.
    """

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._inside = False

    def on_op(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs an op and returns its result."""
        raise NotImplementedError

    def on_view(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs an op that does no work on the device."""
        return func(*args, **kwargs)

    def on_launch(self, name: str, tensors: list[torch.Tensor], launch: Callable[[], Any]) -> Any:
        """Runs a Triton launch and returns its result."""
        raise NotImplementedError

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Ops and launches inside the block are seen."""
        with observed_launches(self._launch), self:
            yield

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if self._inside:
            return func(*args, **kwargs)
        if any(_is_wrapper(kind) for kind in types):
            return NotImplemented
        if decomposes(func):
            with self:
                return func.decompose(*args, **kwargs)
        if not runs_kernel(func):
            return self.on_view(func, args, kwargs)
        with self._within():
            return self.on_op(func, args, kwargs)

    def _launch(self, name: str, tensors: list[torch.Tensor], launch: Callable[[], Any]) -> Any:
        if self._inside:
            return launch()
        with self._within():
            return self.on_launch(f"triton.{name}", tensors, launch)

    @contextlib.contextmanager
    def _within(self) -> Iterator[None]:
        self._inside = True
        try:
            yield
        finally:
            self._inside = False


def _is_wrapper(kind: type) -> bool:
    """Whether a tensor type has its own dispatch, which shows the plain tensors inside afterwards."""
    return kind not in (torch.Tensor, torch.nn.Parameter) and (
        kind.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__  # type: ignore[attr-defined]
    )
