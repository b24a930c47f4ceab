"""Activation checkpointing of a layer's blocks: none, full, or selective."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts

from perfkit.errors import PerfkitError
from perfkit.wire.spec import CheckpointMode

from .trees import find_blocks

_SAVED_OPS = (
    "mm",
    "addmm",
    "bmm",
    "baddbmm",
    "_scaled_mm",
    "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_cudnn_attention",
    "_scaled_dot_product_flash_attention_for_cpu",
)
"""Ops whose outputs selective checkpointing keeps: GEMMs and attention, dear to run again, small to keep."""


def apply_checkpointing(module: nn.Module, *, blocks: Sequence[str], mode: CheckpointMode) -> None:
    """Wraps the forward of every instance of the named classes, in place; do it before `apply_tree`.

    `full` saves a block's inputs and runs its forward again in backward; `selective` also saves the
    outputs of GEMMs and attention. Non-reentrant. A block inside another named block is left alone,
    since the outer one already runs it again.

    Raises:
        PerfkitError: no blocks are declared, or a name has no instance.
    """
    if mode == "none":
        return
    if not blocks:
        raise PerfkitError(
            f"Cannot apply {mode} activation checkpointing.",
            why="The target declares no blocks to wrap.",
            do="Add the table `blocks` to the recipe, or leave --ac out.",
        )
    inside: set[int] = set()
    for block in find_blocks(module, blocks):
        if id(block) in inside:
            continue
        inside.update(id(m) for m in block.modules())
        block.forward = _checkpointed(block.forward, mode)


def _checkpointed(forward: Callable[..., Any], mode: CheckpointMode) -> Callable[..., Any]:
    options: dict[str, Any] = {"use_reentrant": False}
    if mode == "selective":
        options["context_fn"] = functools.partial(create_selective_checkpoint_contexts, _saved_ops())

    @functools.wraps(forward)
    def run(*args: Any, **kwargs: Any) -> Any:
        return checkpoint(forward, *args, **options, **kwargs)

    return run


def _saved_ops() -> list[Any]:
    """The saved ops that this torch has."""
    packets = [getattr(torch.ops.aten, name) for name in _SAVED_OPS if hasattr(torch.ops.aten, name)]
    return [packet.default for packet in packets]
