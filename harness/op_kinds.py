"""What an op is, told from its name and schema: whether it runs a kernel, and which kind of work that is."""

from __future__ import annotations

import functools
from typing import Any

import torch

from perfkit.wire.ledger import OpKind


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_GEMMS = _names(
    "mm addmm bmm baddbmm addbmm mv addmv linear matmul _addmm_activation _int_mm _scaled_mm _scaled_mm_v2 "
    "_grouped_mm _scaled_grouped_mm _scaled_grouped_mm_v2 _weight_int8pack_mm _weight_int4pack_mm "
    "convolution _convolution convolution_backward convolution_overrideable cudnn_convolution "
    "cudnn_convolution_transpose miopen_convolution mkldnn_convolution mkldnn_linear _slow_conv2d_forward "
    "_slow_conv2d_backward slow_conv3d_forward _conv_depthwise2d conv_depthwise3d _trilinear"
)
_ATTENTIONS = frozenset(
    f"{name}{suffix}"
    for suffix in ("", "_backward")
    for name in (
        "_scaled_dot_product_flash_attention",
        "_scaled_dot_product_flash_attention_for_cpu",
        "_scaled_dot_product_efficient_attention",
        "_scaled_dot_product_cudnn_attention",
        "_scaled_dot_product_fused_attention_overrideable",
        "_scaled_dot_product_attention_math_for_mps",
        "_flash_attention",
        "_efficient_attention",
        "_cudnn_attention",
        "flex_attention",
    )
) | {"_flash_attention_forward", "_efficient_attention_forward", "_cudnn_attention_forward"}
_FIXED_ALGORITHMS = _names(
    "sort topk kthvalue mode unique_dim unique_consecutive _unique2 nonzero searchsorted bucketize "
    "_cudnn_rnn _cudnn_rnn_backward mkldnn_rnn_layer mkldnn_rnn_layer_backward _cholesky_solve_helper "
    "cholesky triangular_solve lu_unpack ormqr geqrf _ctc_loss _ctc_loss_backward _cdist_forward "
    "_cdist_backward _transformer_encoder_layer_fwd _native_multi_head_attention"
)
"""aten ops that a library runs as a whole: nothing could be fused into them, so they end an island."""
_FIXED_PREFIXES = ("linalg_", "_linalg_", "_fft_")
_COLLECTIVES = frozenset({"c10d", "_c10d_functional", "_c10d_functional_autograd", "symm_mem", "_dtensor"})
_KNOWN_NAMESPACES = frozenset({"aten", "prims", "prim"})
_NO_KERNEL = _names(
    "empty empty_like empty_strided empty_permuted new_empty new_empty_strided _efficientzerotensor "
    "_unsafe_view unsafe_split unsafe_split_with_sizes unsafe_chunk resize_ resize_as_ _resize_output_ set_ "
    "requires_grad_ record_stream wait_tensor _wrap_tensor_autograd is_pinned "
    "is_same_size _has_compatible_shallow_copy_type _version set_data is_coalesced lift _nested_tensor_size "
    "_use_cudnn_ctc_loss _cudnn_ctc_loss_supported barrier sym_size sym_stride sym_numel"
)
"""Ops that allocate, rename or look at metadata only, and whose schema does not say so."""
_READS_TO_HOST = frozenset({"_local_scalar_dense", "equal", "is_nonzero", "_assert_async", "_assert_scalar"})
"""Ops without a tensor among their results that run a kernel or a copy nevertheless."""


def packet_name(func: Any) -> str:
    """`add_` of `aten.add_.Tensor`; the name of a higher-order op."""
    return str(getattr(func, "_opname", None) or func.name())


def namespace(func: Any) -> str:
    """`aten` of `aten.add_.Tensor`; `higher_order` for an op that takes functions."""
    return str(getattr(func, "namespace", None) or "higher_order")


@functools.cache
def kind_of(func: Any) -> OpKind:
    """The kind of an op that runs a kernel. Everything that is not known to be a cut is glue."""
    name, space = packet_name(func), namespace(func)
    base = name.rstrip("_")
    if base in _ATTENTIONS:
        return "attention"
    if space in _COLLECTIVES:
        return "collective"
    if space not in _KNOWN_NAMESPACES:
        return "opaque"
    if base in _GEMMS:
        return "gemm"
    if base in _FIXED_ALGORITHMS or name.startswith(_FIXED_PREFIXES):
        return "opaque"
    return "glue"


@functools.cache
def has_known_traffic(func: Any) -> bool:
    """Whether the schema tells what is read and written; an op of an unknown library might read anything."""
    return kind_of(func) != "opaque" or namespace(func) in _KNOWN_NAMESPACES


@functools.cache
def runs_kernel(func: Any) -> bool:
    """Whether the op does work on a device, told without running it.

    The ledger and the labelled profile both ask this, so that the same ops get the same indices.
    """
    schema = getattr(func, "_schema", None)
    if schema is None:
        return True
    name = packet_name(func)
    if name in _NO_KERNEL or torch.Tag.inplace_view in func.tags:
        return False
    if any(a.alias_info is not None and a.alias_info.is_write for a in schema.arguments):
        return True
    tensors = [r for r in schema.returns if "Tensor" in str(r.type)]
    if not tensors:
        return name in _READS_TO_HOST or namespace(func) in _COLLECTIVES
    return any(r.alias_info is None for r in tensors)


@functools.cache
def decomposes(func: Any) -> bool:
    """Whether the op is nothing but a recipe of other ops, which inference mode shows in place of these.

    An op with such a recipe and a kernel of its own (silu_backward) runs that kernel.
    """
    if getattr(func, "_schema", None) is None:
        return False
    has_kernel = functools.partial(torch._C._dispatch_has_kernel_for_dispatch_key, func.name())
    return has_kernel("CompositeImplicitAutograd") and not (has_kernel("CPU") or has_kernel("CUDA"))
