"""Tensors inside arbitrary arguments and outputs: naming, copying, digests and non-finite counts."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import torch
from torch import nn

T = TypeVar("T")

DTYPES = {"fp64": torch.float64, "fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
"""Names of the wire's dtypes."""

_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_CHUNK = 1 << 22
# Odd, so that multiplying modulo 2**64 loses no bit; the digits are those of the golden ratio.
_STRIDE = -7046029254386353131


def named_leaves(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Everything in a nest of dicts, lists, tuples and dataclasses that is none of these, with a path.

    A tuple's items are `name[0]`, a dict's and a dataclass's `name.key`; with `name == ""` a dict's
    items are just `key`.
    """
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from named_leaves(item, f"{name}.{key}" if name else str(key))
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from named_leaves(item, f"{name}[{index}]")
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from named_leaves(getattr(value, field.name), f"{name}.{field.name}")
    else:
        yield name, value


def named_tensors(value: Any, name: str) -> list[tuple[str, torch.Tensor]]:
    """The tensors among `named_leaves`: `output`, `output[1]`, `output.logits`."""
    return [(path, leaf) for path, leaf in named_leaves(value, name) if isinstance(leaf, torch.Tensor)]


def clone_inputs(value: T) -> T:
    """The same nest with every tensor copied into fresh memory of the same strides.

    Copies are leaves that require grad where the originals do. What is no dict, list, tuple or
    dataclass is passed on as it is.
    """
    if isinstance(value, torch.Tensor):
        return _clone_strided(value).requires_grad_(value.requires_grad)  # type: ignore[return-value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [field.name for field in dataclasses.fields(value) if field.init]
        return dataclasses.replace(value, **{name: clone_inputs(getattr(value, name)) for name in fields})
    if isinstance(value, dict):
        return type(value)((key, clone_inputs(item)) for key, item in value.items())
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(clone_inputs(item) for item in value))
    if isinstance(value, (list, tuple)):
        return type(value)(clone_inputs(item) for item in value)
    return value


def _clone_strided(tensor: torch.Tensor) -> torch.Tensor:
    """A copy with the same strides; an expanded dim (stride 0) is copied once and expanded again."""
    once = tensor.detach()
    for dim, stride in enumerate(tensor.stride()):
        if stride == 0 and tensor.shape[dim] > 1:
            once = once.narrow(dim, 0, 1)
    copy = torch.empty_strided(once.shape, once.stride(), dtype=once.dtype, device=once.device)
    return copy.copy_(once).expand(tensor.shape)


def count_nonfinite(tensor: torch.Tensor) -> tuple[int, int]:
    """How many NaN and how many infinite elements a floating or complex tensor holds."""
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return 0, 0
    return int(torch.isnan(tensor).sum()), int(torch.isinf(tensor).sum())


def mean_square(output: torch.Tensor) -> torch.Tensor:
    """Mean of squares, in fp32 or wider: fp64 stays fp64, so that a golden run is not narrowed."""
    if output.is_complex():
        output = torch.view_as_real(output)
    return output.to(torch.promote_types(output.dtype, torch.float32)).square().mean()


def _bit_sums(tensor: torch.Tensor) -> list[torch.Tensor]:
    """Plain and position-weighted sums of a tensor's bits modulo 2**64, on the tensor's device.

    Integer sums are exact and independent of the order of addition, so every device agrees.
    """
    flat = tensor.detach().reshape(-1)
    if flat.is_complex():
        flat = torch.view_as_real(flat).reshape(-1)
    bits = flat.view(_BITS[flat.element_size()])
    sums = []
    for start in range(0, bits.numel(), _CHUNK):
        chunk = bits[start : start + _CHUNK].to(torch.int64)
        weights = torch.arange(start, start + chunk.numel(), device=chunk.device) * _STRIDE + 1
        sums.append(torch.stack((chunk.sum(), (chunk * weights).sum())))
    return sums


def digest_state(module: nn.Module | None, inputs: Mapping[str, Any]) -> str:
    """SHA-256 over parameters, buffers and inputs by name: shape, dtype, strides, grad flag and bits.

    Only two integers per 4 Mi elements leave the device. Inputs that are no tensors enter as text.
    """
    named = [] if module is None else [*module.named_parameters(), *module.named_buffers()]
    leaves = [(f"state.{name}", tensor) for name, tensor in named]
    leaves += [(f"input.{name}", leaf) for name, leaf in named_leaves(dict(inputs), "")]
    hashed = hashlib.sha256()
    for name, leaf in leaves:
        hashed.update(f"{name}\n{_describe(leaf)}\n".encode())
        if isinstance(leaf, torch.Tensor) and leaf.numel():
            hashed.update(str(torch.stack(_bit_sums(leaf)).tolist()).encode())
    return hashed.hexdigest()


def _describe(leaf: Any) -> str:
    if isinstance(leaf, torch.Tensor):
        return f"{tuple(leaf.shape)} {leaf.dtype} {leaf.stride()} {leaf.requires_grad}"
    if isinstance(leaf, float) and math.isnan(leaf):
        return "nan"
    if isinstance(leaf, (int, float, str, bool, type(None), torch.dtype, torch.device)):
        return repr(leaf)
    return f"{type(leaf).__module__}.{type(leaf).__qualname__}"
