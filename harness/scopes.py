"""Labels each op of a profiled step with its place in the ledger, so that kernels lead back to ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.profiler import record_function

from .op_mode import OpMode

LABEL_PREFIX = "pk:"
"""perfkit.trace reads ranges of this name; the rest is the op's index in the ledger."""


class LabelMode(OpMode):  # type: ignore[no-untyped-call]
    """Runs each op inside a profiler range `pk:<index>`, with indices that start anew in each step.

    It decides by the same rules as the ledger what an op is, so equal indices mean equal ops.
    """

    def __init__(self) -> None:
        super().__init__()
        self._names: list[str] = []

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the ops seen since the last `restart`, in order."""
        return tuple(self._names)

    def restart(self) -> None:
        """The next op gets index 0."""
        self._names = []

    def on_op(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with self._label(str(func)):
            return func(*args, **kwargs)

    def on_launch(self, name: str, tensors: list[torch.Tensor], launch: Callable[[], Any]) -> Any:
        with self._label(name):
            return launch()

    def _label(self, name: str) -> record_function:
        self._names.append(name)
        return record_function(f"{LABEL_PREFIX}{len(self._names) - 1}")
