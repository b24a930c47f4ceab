"""Ops that touch only a part of an argument, depending on data: rows of a table, scattered elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

Bound = Mapping[str, Any]
Partial = dict[str, tuple[int | None, int | None]]
"""By argument name: distinct elements read and written; None where there is no read or no write."""


def _embedding(bound: Bound) -> Partial:
    return {"weight": (_rows(bound["weight"], 0, bound["indices"]), None)}


def _index_select(bound: Bound) -> Partial:
    return {"self": (_rows(bound["self"], bound["dim"], bound["index"]), None)}


def _gather(bound: Bound) -> Partial:
    return {"self": (_scattered(bound["self"], bound["dim"], bound["index"]), None)}


def _take(bound: Bound) -> Partial:
    return {"self": (_num_unique(bound["index"] % bound["self"].numel()), None)}


def _index(bound: Bound) -> Partial:
    return {"self": (_indexed(bound["self"], bound["indices"]), None)}


def _masked_select(bound: Bound) -> Partial:
    return {"self": (_num_true(bound["mask"], bound["self"]), None)}


def _masked_fill(bound: Bound) -> Partial:
    return {"self": (None, _num_true(bound["mask"], bound["self"]))}


def _index_put(bound: Bound) -> Partial:
    touched = _indexed(bound["self"], bound["indices"])
    return {"self": (touched if bound.get("accumulate", False) else None, touched)}


def _index_rows_added(bound: Bound) -> Partial:
    touched = _rows(bound["self"], bound["dim"], bound["index"])
    return {"self": (touched, touched)}


def _index_rows_set(bound: Bound) -> Partial:
    return {"self": (None, _rows(bound["self"], bound["dim"], bound["index"]))}


def _scatter(bound: Bound) -> Partial:
    partial: Partial = {"self": (None, _scattered(bound["self"], bound["dim"], bound["index"]))}
    if "reduce" in bound:
        partial["self"] = (partial["self"][1], partial["self"][1])
    if isinstance(bound.get("src"), torch.Tensor):
        partial["src"] = (bound["index"].numel(), None)
    return partial


def _scatter_added(bound: Bound) -> Partial:
    touched = _scattered(bound["self"], bound["dim"], bound["index"])
    return {"self": (touched, touched), "src": (bound["index"].numel(), None)}


def _nll_loss(bound: Bound) -> Partial:
    """The loss looks up one element per target that is not ignored."""
    ignored = bound.get("ignore_index", -100)
    return {"self": (int((bound["target"] != ignored).sum()), None)}


def _part_replaced(bound: Bound) -> Partial:
    return {"self": (max(0, bound["self"].numel() - bound["src"].numel()), None)}


def _convolution_backward(bound: Bound) -> Partial:
    """Without a gradient for the input the weight is not read, and the other way round."""
    for_input, for_weight, _ = bound["output_mask"]
    partial: Partial = {}
    if not for_weight:
        partial["input"] = (None, None)
    if not for_input:
        partial["weight"] = (None, None)
    return partial


RULES: dict[str, Callable[[Bound], Partial]] = {
    "embedding": _embedding,
    "_embedding_bag": _embedding,
    "_embedding_bag_forward_only": _embedding,
    "index_select": _index_select,
    "gather": _gather,
    "take": _take,
    "index": _index,
    "_unsafe_index": _index,
    "masked_select": _masked_select,
    "masked_fill_": _masked_fill,
    "index_put_": _index_put,
    "_index_put_impl_": _index_put,
    "index_add_": _index_rows_added,
    "index_reduce_": _index_rows_added,
    "index_copy_": _index_rows_set,
    "index_fill_": _index_rows_set,
    "scatter_": _scatter,
    "scatter_add_": _scatter_added,
    "scatter_reduce_": _scatter_added,
    "nll_loss_forward": _nll_loss,
    "nll_loss2d_forward": _nll_loss,
    "select_scatter": _part_replaced,
    "slice_scatter": _part_replaced,
    "diagonal_scatter": _part_replaced,
    "convolution_backward": _convolution_backward,
}
"""By packet name. Indices are read in full. Their values are looked at: counts are of this step's data."""


def _num_unique(positions: torch.Tensor) -> int:
    return int(torch.unique(positions).numel())


def _rows(table: torch.Tensor, dim: int, indices: torch.Tensor) -> int:
    """Elements of the distinct rows along `dim` that the indices name."""
    if table.dim() == 0:
        return 1
    size = table.shape[dim]
    return _num_unique(indices % size) * (table.numel() // size) if size else 0


def _scattered(table: torch.Tensor, dim: int, index: torch.Tensor) -> int:
    """Distinct elements `table[i, .., index[i, .., j], .., j]` of gather and scatter."""
    if index.numel() == 0 or table.dim() == 0:
        return index.numel() and 1
    position, step = torch.zeros_like(index), 1
    for d in reversed(range(table.dim())):
        along = index if d == dim % table.dim() else _coordinates(index, d)
        position = position + along * step
        step *= table.shape[d]
    return _num_unique(position)


def _coordinates(index: torch.Tensor, dim: int) -> torch.Tensor:
    shape = [1] * index.dim()
    shape[dim] = index.shape[dim]
    return torch.arange(index.shape[dim], device=index.device).view(shape)


def _indexed(table: torch.Tensor, indices: Any) -> int:
    """Distinct elements of `table[indices]`, where an entry may be None, integers or a mask."""
    positions: torch.Tensor | None = None
    covered, num_indexed = 0, 1
    for index in indices:
        if index is None:
            covered += 1
            continue
        expanded = index.nonzero(as_tuple=True) if index.dtype in (torch.bool, torch.uint8) else (index,)
        for one in expanded:
            one = one.to(table.device)
            size = table.shape[covered]
            positions = one % size if positions is None else positions * size + one % size
            num_indexed *= size
            covered += 1
    if positions is None or positions.numel() == 0:
        return 0 if positions is not None else table.numel()
    return _num_unique(positions) * (table.numel() // num_indexed)


def _num_true(mask: torch.Tensor, like: torch.Tensor) -> int:
    return int(mask.expand(like.shape).sum()) if mask.dim() <= like.dim() else int(mask.sum())
