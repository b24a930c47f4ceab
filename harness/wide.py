"""The golden run: the same eager code in fp64, with casts inside the code widened, and proof that it was.

Model code narrows on purpose, as in `x.float()` before a reduction. In a golden run such a cast would
throw fp64 away, so every cast to a narrower floating or complex dtype becomes one to fp64 or complex128.
What narrows in some other way is reported: then the run is no golden one.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from .launches import watch_launches

_NARROW_REAL = [torch.float32, torch.bfloat16, torch.float16]
_NARROW_REAL += [getattr(torch, name) for name in dir(torch) if name.startswith("float8_")]
WIDER: dict[torch.dtype, torch.dtype] = dict.fromkeys(_NARROW_REAL, torch.float64) | {
    torch.complex64: torch.complex128,
    torch.complex32: torch.complex128,
}
"""Narrow dtype -> the golden one in its place."""

_METHODS = {
    "float": "double",
    "half": "double",
    "bfloat16": "double",
    "cfloat": "cdouble",
    "chalf": "cdouble",
}
_CASTS = {getattr(torch.Tensor, name): getattr(torch.Tensor, wider) for name, wider in _METHODS.items()}
_LEFT_ALONE = (torch.Tensor.view, torch.promote_types, torch.result_type, torch.can_cast)
"""A view of the same bits, and questions about dtypes."""


@dataclass
class GoldenRun:
    """What a golden run changed, and what escaped it."""

    widened: set[str] = field(default_factory=set)
    """Functions whose narrow dtype was widened: `Tensor.float`."""
    narrow: dict[str, None] = field(default_factory=dict)
    """Ops with a narrow result, in order of first sight: `aten._to_copy.default (float32)`."""


@contextlib.contextmanager
def golden_run() -> Iterator[GoldenRun]:
    """Inside, casts are widened, new tensors are fp64 by default, and what is narrow is written down.

    A Triton kernel counts as narrow: it is not seen from outside in which precision it computes.
    """
    found = GoldenRun()
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with watch_launches() as launched, _WidenCasts(found), _FindNarrow(found):
            yield found
    finally:
        torch.set_default_dtype(default)
    found.narrow.update((f"Triton kernel {name}", None) for name in launched)


class _WidenCasts(TorchFunctionMode):
    """Replaces narrow dtypes in calls of torch functions, methods and factories by the golden ones."""

    def __init__(self, found: GoldenRun) -> None:
        super().__init__()
        self._found = found

    def __torch_function__(
        self,
        func: Any,
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if (wider := _CASTS.get(func)) is not None:
            self._found.widened.add(_name(func))
            return wider(*args, **kwargs)
        given = [*args, *kwargs.values()]
        if func not in _LEFT_ALONE and any(isinstance(a, torch.dtype) and a in WIDER for a in given):
            self._found.widened.add(_name(func))
            args = tuple(_wider(a) for a in args)
            kwargs = {key: _wider(a) for key, a in kwargs.items()}
        return func(*args, **kwargs)


class _FindNarrow(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's own base
    """Writes down every op with a floating or complex result that is narrower than golden."""

    def __init__(self, found: GoldenRun) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._found = found

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        results = func(*args, **(kwargs or {}))
        for result in results if isinstance(results, (tuple, list)) else (results,):
            if isinstance(result, torch.Tensor) and result.dtype in WIDER and result.numel():
                self._found.narrow[f"{func} ({str(result.dtype).removeprefix('torch.')})"] = None
        return results


def _wider(value: Any) -> Any:
    return WIDER.get(value, value) if isinstance(value, torch.dtype) else value


def _name(function: Any) -> str:
    name = getattr(function, "__name__", str(function))
    return f"Tensor.{name}" if getattr(torch.Tensor, name, None) is function else name


def widen_tensor(tensor: torch.Tensor) -> torch.Tensor:
    """The same values as fp64 or complex128, detached; other dtypes are copied as they are."""
    return tensor.detach().to(WIDER.get(tensor.dtype, tensor.dtype), copy=True)


def widen_inputs(value: Any) -> Any:
    """The same nest of dicts, lists, tuples and dataclasses with every tensor widened.

    Leaves require grad where the originals do.
    """
    if isinstance(value, torch.Tensor):
        return widen_tensor(value).requires_grad_(value.requires_grad)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [f.name for f in dataclasses.fields(value) if f.init]
        return dataclasses.replace(value, **{name: widen_inputs(getattr(value, name)) for name in names})
    if isinstance(value, dict):
        return type(value)((key, widen_inputs(item)) for key, item in value.items())
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(widen_inputs, value))
    if isinstance(value, (list, tuple)):
        return type(value)(map(widen_inputs, value))
    return value


def widen_module(module: nn.Module) -> None:
    """Turns parameters, buffers (complex ones too) and plain tensor attributes into golden dtypes, in place.

    `Module.double` leaves complex buffers and plain attributes as they are.
    """
    once: dict[int, torch.Tensor] = {}
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.data = parameter.data.to(WIDER.get(parameter.dtype, parameter.dtype))
        for part in module.modules():
            for place in (part._buffers, vars(part)):
                for name, tensor in place.items():
                    if isinstance(tensor, torch.Tensor) and not isinstance(tensor, nn.Parameter):
                        place[name] = once.setdefault(id(tensor), widen_tensor(tensor))
