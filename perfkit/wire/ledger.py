"""The ledger: every op of one step, on which bytes, from which line."""

from __future__ import annotations

from typing import Literal

import msgspec

from perfkit.wire.codec import FORMAT_VERSION

Phase = Literal["forward", "backward", "recompute"]
OpKind = Literal["gemm", "attention", "collective", "opaque", "glue"]


class TensorUse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One tensor that an op reads or writes.

    `storage` numbers storages by first sight within the step; `version` counts the writes to it.
    `view` names the part touched: (element offset, sizes, strides), broadcast dims (stride 0) removed.
    """

    storage: int
    version: int
    num_bytes: int
    """Bytes of distinct elements touched: a broadcast once, a strided slice without its holes."""
    view: tuple[int, tuple[int, ...], tuple[int, ...]] = (0, (), ())
    itemsize: int = 1
    storage_bytes: int = 0


class Op(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One dispatched op that runs a kernel (views and metadata ops are not ops)."""

    index: int
    name: str
    """`aten.mm.default`"""
    kind: OpKind
    phase: Phase
    module: str
    """FQN of the innermost module; "" outside every module (loss). Accumulating a gradient belongs to the
    module that owns the parameter."""
    source: str
    """`llama3_block.py:41 apply_rope`: the innermost user frame of the FORWARD op; "" when unknown;
    `gradient of layers.0.weight` for the accumulation of a gradient."""
    reads: tuple[TensorUse, ...] = ()
    writes: tuple[TensorUse, ...] = ()
    num_flops: int = 0
    flop_dtype: str = ""
    shapes: str = ""
    """Input shapes as text, for people."""
    known_traffic: bool = True
    """False for kernels behind pointers and ops of unknown libraries: reads and writes then say which
    tensors they may touch, and no floor is stated from them."""


class Ledger(msgspec.Struct, frozen=True, kw_only=True):
    """All ops of one step, in execution order."""

    ops: tuple[Op, ...]
    escaping: tuple[tuple[int, int], ...]
    """(storage, version) pairs alive after the step or saved for backward: outputs, gradients."""
    external: tuple[int, ...] = ()
    """Storages that existed before the step: parameters, buffers, inputs."""
    version: int = FORMAT_VERSION
