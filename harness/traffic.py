"""Which tensors an op reads and writes, and how much of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from .op_kinds import packet_name
from .partial_access import RULES

_WRITE_ONLY = frozenset(
    {"fill_", "zero_", "copy_", "_foreach_zero_", "_foreach_copy_"}
    | {f"{law}_" for law in ("normal", "uniform", "random", "bernoulli", "exponential", "log_normal")}
    | {"cauchy_", "geometric_"}
)
"""In-place ops that do not look at the old values of what they overwrite."""
_SHAPE_ONLY = {
    "native_layer_norm_backward": ("bias",),
    "nll_loss_backward": ("self",),
    "nll_loss2d_backward": ("self",),
    "max_pool2d_with_indices_backward": ("self",),
    "max_pool3d_with_indices_backward": ("self",),
    "avg_pool2d_backward": ("self",),
    "avg_pool3d_backward": ("self",),
    "_adaptive_avg_pool2d_backward": ("self",),
    "_adaptive_avg_pool3d_backward": ("self",),
}
"""Arguments that the kernel takes for their shape alone."""
_HIDDEN_WRITES = dict.fromkeys(
    ("native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm"), ("running_mean", "running_var")
)
"""Arguments that are written although the schema does not say so."""


@dataclass(frozen=True)
class Access:
    """A tensor that an op touches; `num_elements` says how many distinct ones where it is not all of them."""

    tensor: torch.Tensor
    num_elements: int | None = None


@dataclass
class Traffic:
    """Reads and writes of one op."""

    reads: list[Access] = field(default_factory=list)
    writes: list[Access] = field(default_factory=list)


def traffic_of(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], out: Any) -> Traffic:
    """Reads and writes by the op's schema, corrected for ops that touch a part that depends on data.

    A read that overwrites nothing, an output that is allocated and an argument that is changed in place
    follow from the schema's alias annotations.
    """
    if getattr(func, "_schema", None) is None:
        return _of_higher_order(args, kwargs, out)
    name, bound = packet_name(func), bind(func, args, kwargs)
    traffic = Traffic()
    hidden = _HIDDEN_WRITES.get(name, ()) if bound.get("training", True) else ()
    for argument in func._schema.arguments:
        tensors = [Access(t) for t in tensors_in(bound.get(argument.name))]
        written = argument.alias_info is not None and argument.alias_info.is_write
        written = written or argument.name in hidden or _is_inplace_collective(func, argument.name)
        if written:
            traffic.writes += tensors
        if _is_read(name, argument, written):
            traffic.reads += tensors
    traffic.writes += [Access(tensor) for tensor in _allocated(func, out, bound)]
    if (rule := RULES.get(name)) is not None:
        _apply(rule(bound), traffic, bound)
    return traffic


def bind(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Values by the names of the schema's arguments; those left to their defaults are absent."""
    names = [argument.name for argument in func._schema.arguments]
    return dict(zip(names, args, strict=False)) | dict(kwargs)


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in an argument or a result, through lists, tuples and dicts."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, dict):
        yield from tensors_in(list(value.values()))


def _is_read(name: str, argument: Any, written: bool) -> bool:
    if written and (argument.is_out or argument.kwarg_only or name in _WRITE_ONLY):
        return False
    if argument.name in _SHAPE_ONLY.get(name, ()):
        return False
    return not (argument.name == "self" and (name.endswith("_like") or name.startswith("new_")))


def _is_inplace_collective(func: Any, argument: str) -> bool:
    """c10d's in-place collectives declare no writes; the ones named `name_` change their tensors."""
    if func.namespace != "c10d" or not packet_name(func).endswith("_"):
        return False
    return argument in ("tensors", "output_tensors", "output_tensor", "outputs")


def _allocated(func: Any, out: Any, bound: Mapping[str, Any]) -> list[torch.Tensor]:
    """Results that are no alias of an argument, by the schema or by their storage."""
    returns = func._schema.returns
    values = (out,) if len(returns) == 1 else out
    fresh = [v for r, v in zip(returns, values or (), strict=False) if r.alias_info is None]
    given = {_address(t) for t in tensors_in(dict(bound))}
    return [t for t in tensors_in(fresh) if _address(t) not in given]


def _address(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata if tensor.layout == torch.strided else -1 - id(tensor)


def _apply(partial: Mapping[str, tuple[int | None, int | None]], traffic: Traffic, bound: Any) -> None:
    """Replaces what the schema says about an argument by the elements that are really touched."""
    for name, (num_read, num_written) in partial.items():
        for tensor in tensors_in(bound.get(name)):
            traffic.reads = [a for a in traffic.reads if a.tensor is not tensor]
            traffic.writes = [a for a in traffic.writes if a.tensor is not tensor]
            traffic.reads += _some(tensor, num_read)
            traffic.writes += _some(tensor, num_written)


def _some(tensor: torch.Tensor, num_elements: int | None) -> Iterable[Access]:
    return () if num_elements is None else (Access(tensor, num_elements),)


def _of_higher_order(args: tuple[Any, ...], kwargs: Mapping[str, Any], out: Any) -> Traffic:
    given = {_address(t) for t in tensors_in((args, dict(kwargs)))}
    return Traffic(
        reads=[Access(t) for t in tensors_in((args, dict(kwargs)))],
        writes=[Access(t) for t in tensors_in(out) if _address(t) not in given],
    )
