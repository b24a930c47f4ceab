"""Families, by names that real profilers wrote."""

from __future__ import annotations

import pytest

from perfkit.trace import Family, family_of, read_trace
from perfkit.trace.events import MEASURED_CATS
from tests.support.traces import shared_trace

NAMES = {
    "nvjet_sm90_tst_128x256_64x4_2x1_v_bz_coopA_NTN": Family.GEMM,
    "volta_sgemm_128x32_nt": Family.GEMM,
    "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_256x64_16x4_tn_align1>(Params)": Family.GEMM,
    "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x192x64": Family.GEMM,
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_cublas": Family.GEMM,
    "void splitKreduce_kernel<float, float>(cublasSplitKParams<float>)": Family.GEMM,
    "triton_tem_fused_mm_3": Family.GEMM,
    "aten::addmm": Family.GEMM,
    "aten::mm": Family.GEMM,
    "mkl::_mkl_linear": Family.GEMM,
    "cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_26_64x64x128": Family.ATTENTION,
    "void cudnn::fusion::compute_dot_do_o_specialized<true, 128>(void const*)": Family.ATTENTION,
    "void cudnn::fusion::convert_dq_to_16bits<true>(void const*)": Family.ATTENTION,
    "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128>>": Family.ATTENTION,
    "aten::_scaled_dot_product_flash_attention_for_cpu": Family.ATTENTION,
    "attn_fwd": Family.ATTENTION,
    "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>": Family.NORM,
    "void at::native::(anonymous namespace)::GammaBetaBackwardCUDAKernel<float, float>": Family.NORM,
    "void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 512, true, 1>": Family.NORM,
    "aten::native_layer_norm": Family.NORM,
    "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2>": Family.COPY,
    "void at::native::elementwise_kernel<128, 2, at::native::direct_copy_kernel_cuda(x)>": Family.COPY,
    "at::native::detail::split_with_sizes_copy_out_contiguous_no_cast_kernel(char**)": Family.COPY,
    "aten::copy_": Family.COPY,
    "aten::cat": Family.COPY,
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>": Family.POINTWISE,
    "void at::native::vectorized_elementwise_kernel<8, at::native::silu_kernel(x)>": Family.POINTWISE,
    "aten::mul": Family.POINTWISE,
    "aten::gelu_backward": Family.POINTWISE,
    "void at::native::reduce_kernel<512, 1, at::native::MeanOps<float>>": Family.REDUCTION,
    "aten::sum": Family.REDUCTION,
    "aten::_log_softmax": Family.REDUCTION,
    "void at::native::index_elementwise_kernel<128, 4, at::native::gpu_index_kernel>": Family.GATHER_SCATTER,
    "aten::embedding": Family.GATHER_SCATTER,
    "void cub::DeviceRadixSortOnesweepKernel<cub::DeviceRadixSortPolicy<long, int, int>>": Family.SORT,
    "aten::topk": Family.SORT,
    "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>, float>": Family.OPTIMIZER,
    "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)": Family.COMMUNICATION,
    "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>": Family.COMMUNICATION,
    "c10d::allreduce_": Family.COMMUNICATION,
    "sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nhwc": Family.CONVOLUTION,
    "volta_scudnn_128x64_relu_interior_nn_v1": Family.CONVOLUTION,
    "Memcpy DtoD (Device -> Device)": Family.MEMCPY,
    "Memset (Device)": Family.MEMSET,
    "triton_poi_fused__scaled_dot_product_cudnn_attention_backward_view_2": Family.TRITON_POINTWISE,
    "triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_0": Family.TRITON_REDUCTION,
    "triton_per_fused__to_copy_add_div_expand_mul_pow_sum_5": Family.TRITON_PERSISTENT,
    "triton__0d1d2d3d4d5d": Family.TRITON,
    "CompiledFunctionBackward": Family.COMPILED,
    "autograd::engine::evaluate_function: AddmmBackward0": Family.HOST,
    "AddmmBackward0": Family.HOST,
    "aten::view": Family.HOST,
    "void (anonymous namespace)::store_kvcache<2048l, 4, false, long>": Family.UNCLASSIFIED,
    "my_kernel": Family.UNCLASSIFIED,
}


@pytest.mark.parametrize(("name", "family"), NAMES.items())
def test_family(name: str, family: Family) -> None:
    assert family_of(name) is family


def test_the_category_decides_copies_and_fills() -> None:
    assert family_of("whatever", cat="gpu_memcpy") is Family.MEMCPY
    assert family_of("whatever", cat="Memset") is Family.MEMSET


@pytest.mark.parametrize(
    "name", ["eager_2layer", "blockcompile_2layer", "graphed_callables24", "pp/rank1_trace"]
)
def test_every_kernel_of_torch_itself_is_classified(name: str) -> None:
    events = read_trace(shared_trace(f"h200/{name}")).events
    unknown = {
        e.name
        for e in events
        if e.cat in MEASURED_CATS and family_of(e.name, cat=e.cat) is Family.UNCLASSIFIED
    }
    assert not unknown
