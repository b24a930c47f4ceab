"""What kind of work a kernel or CPU op does, judged by its name alone: an ordered table of patterns."""

from __future__ import annotations

import enum
import functools
import re

from perfkit.trace.events import MEMCPY_CATS, MEMSET_CATS


class Family(enum.StrEnum):
    """Kinds of work. A name that no pattern knows is `unclassified`: it is never guessed into a family."""

    GEMM = "gemm"
    CONVOLUTION = "convolution"
    ATTENTION = "attention"
    NORM = "norm"
    COPY = "copy"
    POINTWISE = "pointwise"
    REDUCTION = "reduction"
    GATHER_SCATTER = "gather_scatter"
    SORT = "sort"
    OPTIMIZER = "optimizer"
    COMMUNICATION = "communication"
    MEMCPY = "memcpy"
    MEMSET = "memset"
    TRITON_POINTWISE = "triton_pointwise"
    TRITON_REDUCTION = "triton_reduction"
    TRITON_PERSISTENT = "triton_persistent"
    TRITON = "triton"
    COMPILED = "compiled"
    """CPU: code of a compiled region that the profiler does not split."""
    HOST = "host"
    """CPU: views, allocation, autograd bookkeeping; no arithmetic."""
    UNCLASSIFIED = "unclassified"


_TABLE: tuple[tuple[Family, str], ...] = (
    # Inductor lists the ops it fused in the name, so its own prefix must be judged before any op name.
    (Family.TRITON_POINTWISE, r"^triton_(poi|for)_"),
    (Family.TRITON_REDUCTION, r"^triton_red_"),
    (Family.TRITON_PERSISTENT, r"^triton_per_"),
    (Family.ATTENTION, r"^triton_tem_.*(attention|flex)"),
    (Family.CONVOLUTION, r"^triton_tem_.*conv"),
    (Family.GEMM, r"^triton_(tem|mm)_"),
    (Family.TRITON, r"^triton_"),
    (
        Family.COMPILED,
        r"^(CompiledFunction|Torch-Compiled Region|## Call CompiledFxGraph|CompiledFxGraph|cpp_fused)"
        r"|^graph_\d+_cpp_fused",
    ),
    (
        Family.HOST,
        r"^(autograd::|torch::autograd::|detach|TorchDynamo|AOTDispatcher|Pregraph|Optimizer\.)|^\w+Backward\d*$"
        r"|^aten::(empty|view|_?unsafe_view|_reshape_alias|reshape|as_strided|t|transpose|permute|expand"
        r"|expand_as|unsqueeze|squeeze|slice|select|narrow|split|chunk|unbind|detach|alias|unflatten|flatten"
        r"|resize|set|result_type|item|_local_scalar_dense|empty_like|empty_strided|new_empty|new_empty_strided"
        r"|lift_fresh|movedim|unfold|view_as|expand_copy|is_nonzero|numel|size|stride|split_with_sizes|record_stream"
        r"|is_pinned|_?pin_memory|resolve_conj|resolve_neg)_?$",
    ),
    (
        Family.COMMUNICATION,
        r"^(nccl|rccl|gloo:|c10d::|_c10d_functional::|record_param_comms|oneshot|twoshot|one_shot|two_shot)"
        r"|cross_device_reduce|multimem_|all_?reduce|all_?gather_(?!copy)|reduce_?scatter_|symm_mem|nvshmem|^msccl",
    ),
    (
        Family.ATTENTION,
        r"sdpa|flash|fmha|mha_|attention|attn|compute_dot_do_o|convert_dq_to|scaled_dot_product|\bFmha",
    ),
    (
        Family.CONVOLUTION,
        r"conv(?!ert)|[fd](prop|grad)_|wgrad|dgrad|winograd|implicit_gemm|scudnn|im2col|col2im"
        r"|igemm_(fwd|bwd|wrw)|bwd_weight|^miopenSp3|cask_cudnn|^void fft2d",
    ),
    (Family.POINTWISE, r"rotary|^rope"),
    (Family.SORT, r"[sS]ort|topk|TopK|aten::(kthvalue|msort|unique)"),
    (
        Family.GATHER_SCATTER,
        r"(?<!with_)ind(ex|ic)|gather|scatter|embedding|embs|masked_select|nonzero|aten::take|recat_",
    ),
    (
        Family.NORM,
        r"(layer|[rR]ms|batch|group|instance)_?norm|bn_(fw|bw)|BatchNorm|GammaBeta|RowwiseMoments"
        r"|ComputeInternalGradients|aten::(weight_norm|renorm)",
    ),
    (Family.OPTIMIZER, r"[aA]dam|sgd_|SGD|[lL]amb(?!da)|[aA]dagrad|lion_|aten::_fused_"),
    (
        Family.GEMM,
        r"nvjet|gemm|^bmm_|^_?matmul_|gemv|cutlass|xmma|cublas|splitK|^Cijk_|hipblas|mkl_?linear|mkldnn_linear|epilogue::impl"
        r"|aten::(mm|bmm|addmm|addmv|mv|baddbmm|addbmm|matmul|linear|dot|vdot|einsum|addr|_scaled_mm|_int_mm"
        r"|_grouped_mm|_scaled_grouped_mm|_addmm_activation|linear_backward|chain_matmul)_?$"
        r"|^(mkl|mkldnn|onednn)::_?\w*linear",
    ),
    (Family.MEMCPY, r"^(Memcpy |CopyDeviceTo|CopyHostTo|cudaMemcpy|hipMemcpy|__amd_rocclr_copy)"),
    (Family.MEMSET, r"^(Memset|__amd_rocclr_fill)"),
    (
        Family.COPY,
        r"copy|Copy|CatArray|chunk_cat|[tT]ranspose|[nN]chwToN|[nN]hwcToN|permute|FlipKernel|flip_kernel|pad\d?d_"
        r"|aten::(cat|clone|contiguous|to|stack|repeat|repeat_interleave|tile|roll|flip|constant_pad_nd|pad"
        r"|hstack|vstack|_foreach_copy)_?$",
    ),
    (
        Family.POINTWISE,
        r"elementwise|multi_tensor_apply|distribution_|dropout|FillFunctor|SubTensorOp|OpTensor|launch_clamp"
        r"|arange|pointwise|silu|gelu|swiglu|sigmoid|tanh|masked_fill|tri[ul]_|philox|act_and_mul"
        r"|aten::(_foreach_\w+|add|sub|rsub|mul|div|true_divide|neg|abs|exp|exp2|log|log2|log1p|sqrt|rsqrt|pow"
        r"|square|reciprocal|relu|relu6|leaky_relu|elu|selu|mish|softplus|hardtanh|hardswish|threshold|clamp"
        r"|clamp_min|clamp_max|where|maximum|minimum|sin|cos|erf|erfinv|floor|ceil|round|sign|fill|zero|zeros"
        r"|zeros_like|ones|ones_like|full|full_like|new_zeros|new_full|new_ones|eq|ne|lt|le|gt|ge|logical_\w+"
        r"|bitwise_\w+|addcmul|addcdiv|lerp|normal|uniform|bernoulli|rand|randn|randint|triu|tril|polar"
        r"|view_as_complex|complex|glu|fmod|remainder|floor_divide|isnan|isinf|isfinite|random|lift"
        r"|threshold_backward|scalar_tensor|linspace|outer|nan_to_num|special_\w+)_?(_backward)?$",
    ),
    (
        Family.REDUCTION,
        r"[rR]educe|[sS]oft_?[mM]ax|_loss|[sS]can|cumsum|_pool|logsumexp|cross_entropy|NLLCriterion|dot_kernel|reduction"
        r"|NormTwoOps|aten::(sum|mean|max|min|amax|amin|aminmax|argmax|argmin|var|std|var_mean|std_mean|norm"
        r"|linalg_vector_norm|any|all|prod|cumprod|count_nonzero|nansum|median|bincount|histc|cdist|equal"
        r"|allclose|max_pool\w*|avg_pool\w*|adaptive_\w*pool\w*)$",
    ),
    (Family.TRITON, r"^triton"),
)

_COMPILED = tuple((family, re.compile(pattern)) for family, pattern in _TABLE)


@functools.lru_cache(maxsize=65536)
def family_of(kernel_name: str, *, cat: str = "") -> Family:
    """The first family of the table whose pattern occurs in the name.

    `cat`, the trace's category, decides copies and fills beforehand. The patterns come from names seen in
    traces of H200, B200, A100, V100, MI210, MI250 and MI300 devices, torch 1.8 to 2.11.
    """
    if cat in MEMCPY_CATS:
        return Family.MEMCPY
    if cat in MEMSET_CATS:
        return Family.MEMSET
    return next((family for family, pattern in _COMPILED if pattern.search(kernel_name)), Family.UNCLASSIFIED)
