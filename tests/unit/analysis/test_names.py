"""Short names and families of kernels, as frameworks and libraries write them."""

import csv
import gzip
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mansard.analysis.families import FAMILIES, family
from mansard.analysis.names import MAX_SHORT, short_name

SHARED = Path(__file__).parents[4] / "shared"

SHORT = {
    # plain names of libraries and compilers stay
    "volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn": "volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn",
    "triton_poi_fused_add_relu_0": "triton_poi_fused_add_relu_0",
    "my kernel": "my kernel",
    "Memcpy HtoD (Pageable -> Device)": "Memcpy HtoD (Pageable -> Device)",
    "[CUDA memset]": "[CUDA memset]",
    # return type, namespaces, template arguments and parameters go
    "cleanup(float*, float*, float*, float*, bool, int)": "cleanup",
    "int const* ns::f(int)": "f",
    "cudnn::gemm::computeOffsetsKernel(cudnn::gemm::ComputeOffsetsParams)": "computeOffsetsKernel",
    "void cudnn::detail::bn_fw_tr_1C11_kernel_NCHW<__half, float, 512, true, 1>(int, float)": "bn_fw_tr_1C11_kernel_NCHW",
    "void tensorflow::functor::PadInputCustomKernelNHWC<Eigen::half, 4>(int, tensorflow::functor::Dimension<(4)-(2)>)": "PadInputCustomKernelNHWC",
    "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, float, cublasGemvParamsEx<int> >(int)": "gemvx::kernel",
    "decltype(auto) my_func<int>(int)": "my_func",
    # anonymous namespaces, in the spellings of two profilers
    "void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float>(float*)": "cunn_SoftMaxForward",
    "void native::<unnamed>::cunn_SoftMaxForwardReg<float, long, 4>(T3 *, const T1 *, T5)": "cunn_SoftMaxForwardReg",
    # what a carrier carries is kept
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int)": "vectorized_elementwise_kernel [CUDAFunctor_add]",
    "void native::vectorized_elementwise_kernel<8, native::AUnaryFunctor<c10::Half, c10::Half, c10::Half, binary_internal::MulFunctor<float>>, std::array<char *, 2>>(int, T2, T3)": "vectorized_elementwise_kernel [MulFunctor]",
    "void native::vectorized_elementwise_kernel<2, native::addcmul_cuda_kernel(at::TensorIteratorBase &, const c10::Scalar &)::[lambda() (instance 2)]::operator ()() const::[lambda() (instance 6)], std::array<char *, 4>>(int, T2, T3)": "vectorized_elementwise_kernel [addcmul_cuda_kernel]",
    "void at::native::legacy::elementwise_kernel<512, 1, at::native::gpu_kernel_impl<at::native::copy_device_to_device(at::TensorIterator&, bool)::{lambda()#1}::operator()() const::{lambda()#8}> >(int)": "elementwise_kernel [copy_device_to_device]",
    "void at::native::reduce_kernel<512, at::native::ReduceOp<c10::Half, at::native::MeanOps<float, float>, unsigned int, c10::Half, 4> >(int)": "reduce_kernel [MeanOps]",
    "void multi_tensor_apply_kernel<TensorListMetadata<4>, LAMBStage1Functor<float>, float>(int, int volatile*)": "multi_tensor_apply_kernel [LAMBStage1Functor]",
    "void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nn_align1>(T1::Params)": "Kernel2 [cutlass_80_simt_sgemm_256x128_8x4_nn_align1]",
    "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<flash::Main<2>>>>(flash::Params)": "device_kernel [FlashAttnFwdSm90]",
    "void Eigen::internal::EigenMetaKernel<Eigen::TensorEvaluator<Eigen::TensorAssignOp<Eigen::TensorMap<Eigen::Tensor<Eigen::half, 1, 1, long>, 16, Eigen::MakePointer>, Eigen::TensorConversionOp<Eigen::half, X> const> const, Eigen::GpuDevice>, long>(X)": "EigenMetaKernel [TensorConversionOp]",
    # mangled
    "_ZN10tensorflow7functor15RowReduceKernelIN3cub22TransformInputIteratorIfEEEEvT_": "RowReduceKernel",
    "_ZN10tensorflow88_GLOBAL__N__64_tmpxft_000032c4_00000000_11_softmax_op_gpu_cu_compute_70_cpp1_ii_201bafc922GenerateNormalizedProbIffEEvPKT_PKT0_S4_PS2_iib": "GenerateNormalizedProb",
    "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEESt5arrayIPcLm3EEEEviT0_T1_": "vectorized_elementwise_kernel [CUDAFunctor_add]",
    "_Z6saxpyfifPfS_": "saxpyf",
    # broken ones survive
    "foo<bar": "foo",
    "foo<bar<baz(": "foo",
    "((((": "(",
    ")))": ")))",
    "<<<<": "<<<<",
    "_Z": "_Z",
    "_Z99999x": "x",
    "   ": "?",
    "a\x00\x1b[31mb": "a [31mb",
    "": "",
}  # fmt: skip


@pytest.mark.parametrize(("full", "short"), SHORT.items(), ids=range(len(SHORT)))
def test_a_short_name_is_what_a_person_would_say(full, short):
    assert short_name(full) == short


def test_long_names_keep_their_beginning_and_their_end():
    short = short_name("begin_" + "x" * 600 + "_end")
    assert len(short) == MAX_SHORT
    assert short.startswith("begin_")
    assert short.endswith("_end")
    assert "…" in short


@given(st.one_of(st.text(), st.text("abK_Z<>()[]{}:, *&IEN0123456789", max_size=80)))
@settings(max_examples=300, deadline=None)
def test_no_name_fails_or_vanishes(full):
    short = short_name(full)
    assert (short == "") == (full == "")
    assert len(short) <= MAX_SHORT
    assert family(full) in FAMILIES


OF_FAMILY = {
    "gemm": """
        ampere_sgemm_128x64_tn
        turing_fp16_s1688gemm_fp16_256x128_ldg8_f2f_nn
        nvjet_hsh_192x192_64x3_2x1_v_bz_coopB_NTN
        nvjet_tst_64x8_64x16_4x1_v_bz_TNT
        sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_execute_segment_k_off_kernel__5x_cublas
        void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_tn_align8>(x)
        void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int>, x> >(P)
        void cublasLt::splitKreduce_kernel<32, 16, int, float, __half, float, __half, true>(x)
        void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 4, 4, false, false, x>(x)
        void deep_gemm::sm90_fp8_gemm_1d2d_impl<x>(x)
        matmul_kernel
        triton_tem_fused_mm_7
        gemm_fusion_dot_5_0
        fused_moe_kernel
    """,
    "conv": """
        Volta_hmma_implicit_gemm_fprop_fp32_nhwc_128x128x64x1_1x3x3x0x1
        volta_fp16_s884cudnn_fp16_256x128_ldg8_relu_f2f_exp_interior_nhwc_tn_v1
        cudnn_infer_ampere_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1
        sm80_xmma_wgrad_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nhwc_kernel_cudnn
        void cutlass__5x_cudnn::Kernel<cutlass_tensorop_f16_s16816fprop_optimized_f16_128x128_64x3_nhwc_align8>(x)
        void cudnn::cnn::conv2d_grouped_direct_kernel<false, true, 0, 0, int, float, float>(x)
        void cudnn::detail::implicit_convolve_sgemm<__half, __half, 1024, 5, 5, 3, 3, 3, 1, true>(x)
        void at::native::(anonymous namespace)::conv_depthwise2d_forward_kernel<3, float, int>(x)
        void spatialDepthwiseConvolutionUpdateOutput<c10::Half, float, unsigned int, 3>(x)
        triton_tem_fused_convolution_3
    """,
    "attention": """
        void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4>>(x)
        void flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<x>(x)
        fmha_cutlassF_f16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<x>::Params)
        cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64_4x1x1_kernel0_0
        void vllm::paged_attention_v2_kernel<x>(x)
        void flashinfer::BatchPrefillWithPagedKVCacheKernel<x>(x)
        void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<x>>>(x)
        _attn_fwd
        triton_tem_fused_flex_attention_0
    """,
    "norm": """
        void at::native::(anonymous namespace)::layer_norm_grad_input_kernel_vectorized<float>(x)
        void at::native::batch_norm_collect_statistics_kernel<at::native::InvStd, float, int>(x)
        void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512, true, 1>(x)
        void at::native::(anonymous namespace)::GammaBetaBackwardCUDAKernelTemplate<x>(x)
        void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, false>(x)
        void at::native::(anonymous namespace)::cunn_SpatialSoftMaxForward<float, float>(x)
        void vllm::rms_norm_kernel<c10::BFloat16>(x)
        triton_per_fused_native_layer_norm_3
        input_softmax_fusion
    """,
    "elementwise": """
        void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, x>(x)
        void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl(x)::{lambda()#2}>(x)
        void at::native::(anonymous namespace)::distribution_elementwise_grid_stride_kernel<float, 4>(x)
        void multi_tensor_apply_kernel<TensorListMetadata<2>, LAMBStage2Functor<float>, float*>(x)
        void at::native::(anonymous namespace)::multi_tensor_apply_kernel<x::FusedOptimizerTensorListMetadata<4>, x::FusedAdamMathFunctor<float, 4>>(x)
        void Eigen::internal::EigenMetaKernel<Eigen::TensorEvaluator<Eigen::internal::scalar_sum_op<x>>>(x)
        void vllm::rotary_embedding_kernel<c10::BFloat16, true>(x)
        triton_poi_fused_add_gelu_0
        loop_add_fusion_3
        wrapped_add
        add_kernel
    """,
    "reduction": """
        void at::native::reduce_kernel<512, at::native::ReduceOp<float, at::native::MeanOps<float>, 4> >(x)
        void multi_tensor_apply_kernel<TensorListMetadata<1>, L2NormFunctor<float>, float*>(x)
        void at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<float>(x)
        void at::native::(anonymous namespace)::max_pool_forward_nchw<float, long>(x)
        void cub::DeviceReduceSingleTileKernel<x>(x)
        void tensorflow::functor::ColumnReduceSimpleKernel<float*, x>(x)
        void Eigen::internal::EigenMetaKernel<Eigen::TensorEvaluator<Eigen::TensorReductionOp<Eigen::internal::SumReducer<float>>>>(x)
        triton_red_fused_sum_1
        input_reduce_fusion_3
    """,
    "copy": """
        void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, x>(x)
        void native::vectorized_elementwise_kernel<8, native::bfloat16_copy_kernel_cuda(x)::[lambda(float) (instance 1)]>(x)
        void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 4>(x)
        void at::native::(anonymous namespace)::indexSelectLargeIndex<x>(x)
        void at::native::col2im_kernel<c10::Half, float>(x)
        void cudnn::engines_precompiled::nchwToNhwcKernel<__half, __half, float, false, true>(x)
        void convertTensor_kernel<float, float, __half, (cudnnKernelDataType_t)2>(x)
        void tensorflow::functor::SwapDimension1And2InTensor3UsingTiles<unsigned int, 256>(x)
        void tensorflow::S2B<Eigen::half, 2, false>(x)
        void Eigen::internal::EigenMetaKernel<Eigen::TensorEvaluator<Eigen::TensorConversionOp<x>>>(x)
        loop_transpose_fusion
        wrapped_transpose
        loop_convert_fusion_2
        triton_poi_fused__to_copy_1
        triton_poi_fused_clone_5
        Memset (Device)
    """,
    "collective": """
        ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)
        ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)
        void vllm::cross_device_reduce_2stage<c10::BFloat16, 8>(x)
        void deep_ep::intranode::dispatch<8, 768, 8192>(x)
    """,
    "other": """
        cudnn::gemm::computeOffsetsKernel(cudnn::gemm::ComputeOffsetsParams)
        void at_cuda_detail::cub::DeviceRadixSortOnesweepKernel<x>(x)
        my_special_thing
    """,
}  # fmt: skip


@pytest.mark.parametrize("expected", OF_FAMILY)
def test_a_family_is_told_by_the_name(expected):
    names = [line.strip() for line in OF_FAMILY[expected].strip().splitlines()]
    assert {name: family(name) for name in names} == dict.fromkeys(names, expected)


def test_every_kernel_of_the_paper_has_a_family_that_its_words_allow():
    tables = sorted((SHARED / "data" / "paper").glob("*/authors-table.csv"))
    if not tables:
        pytest.skip("the authors' tables are not here")
    names = set()
    for table in tables:
        with table.open(encoding="utf-8") as file:
            names |= {row["Kernel Name"] for row in csv.DictReader(file)}
    found = {name: family(name) for name in names}
    assert len(found) == 98
    # Checked one by one by eye; what is left over says nothing of its work.
    left = sorted(short_name(name) for name, one in found.items() if one == "other")
    assert left == [
        "LegacyResizeBilinearKernel",
        "cleanup",
        "computeBOffsetsKernel",
        "computeOffsetsKernel",
        "upsample_bilinear2d_out_frame",
    ]
    # Every kernel that the authors count on the tensor pipe is a product or a convolution.
    assert {one for name, one in found.items() if "884" in name or "hmma" in name} == {
        "conv",
        "gemm",
    }


def test_the_recorded_operations_have_their_families():
    recorded = SHARED / "data" / "h200" / "zoo.raw-base-units.csv.gz"
    if not recorded.exists():
        pytest.skip("the recording is not here")
    with gzip.open(recorded, "rt", encoding="utf-8") as file:
        header, _, *rows = csv.reader(line for line in file if not line.startswith("=="))
    names = [row[header.index("Kernel Name")] for row in rows]
    # In order: seven products, copy and add and scale, softmax, layer norm, attention, ...
    assert [family(name) for name in names[:14]] == [
        *["gemm"] * 7,
        *["elementwise"] * 3,
        *["norm"] * 2,
        "attention",
        "conv",
    ]
