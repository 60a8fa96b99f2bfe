// The ordered lists: native kernels first, then what libtorch reaches. A kernel's row here is its only mention in
// lowering.
#include <algorithm>
#include <array>

#include "lissome/lower/candidate/candidate_rows.h"

namespace lissome {
namespace {

constexpr Candidate make_libtorch_row(std::string_view name, decltype(Candidate::refuse) refuse,
                                      decltype(Candidate::emit) emit) {
  return {.name = name, .refuse = refuse, .emit = emit, .libtorch = true};
}

constexpr Candidate make_joining_row(std::string_view name, std::string_view apart, decltype(Candidate::refuse) refuse,
                                     decltype(Candidate::emit) emit, bool guesses) {
  return {.name = name, .refuse = refuse, .emit = emit, .apart = apart, .guesses = guesses};
}

constexpr std::array kLinear = {
    Candidate{"linear_f32", refuse_linear_f32, emit_linear_f32},
    Candidate{"matmul_f32", refuse_linear_matmul, emit_linear_matmul},
    Candidate{"linear_bf16", refuse_linear_bf16, emit_linear_bf16},
    Candidate{"matmul_bf16", refuse_linear_matmul_bf16, emit_linear_matmul},
    make_libtorch_row("mkldnn_linear", refuse_mkldnn_linear, emit_mkldnn_linear),
};
constexpr std::array kLinearCasts = {Candidate{"matmul_bf16", refuse_linear_casts, emit_linear_matmul}};
constexpr std::array kConv = {
    make_joining_row("separable_f32", "conv_f32", refuse_large_separable_f32, emit_separable_f32, true),
    Candidate{"conv_f32", refuse_conv_f32, emit_conv_f32},
    make_joining_row("separable_f32", "conv_f32", refuse_separable_f32, emit_separable_f32, false),
    Candidate{"winograd_f32_4x4", refuse_winograd_f32, emit_winograd_4x4},
    Candidate{"winograd_f32_2x2", refuse_winograd_f32, emit_winograd_2x2},
    Candidate{"conv_transposed_f32", refuse_transposed, emit_transposed},
    Candidate{"conv_computed_f32", refuse_conv_computed, emit_conv_computed},
    Candidate{"conv_bf16", refuse_conv_bf16, emit_conv_bf16},
    Candidate{"conv_computed_bf16", refuse_conv_computed_bf16, emit_conv_computed_bf16},
    Candidate{"winograd_bf16_4x4", refuse_winograd_bf16, emit_winograd_4x4},
    Candidate{"winograd_bf16_2x2", refuse_winograd_bf16, emit_winograd_2x2},
    make_libtorch_row("mkldnn_conv", refuse_mkldnn_conv, emit_mkldnn_conv),
};
constexpr std::array kConvBackward = {
    Candidate{"conv_backward_f32", refuse_conv_backward, emit_conv_backward},
    Candidate{"conv_backward_bf16", refuse_conv_backward_bf16, emit_conv_backward_bf16},
};
constexpr std::array kBatchNorm = {Candidate{"batch_norm", refuse_batch_norm, emit_batch_norm}};
constexpr std::array kBatchNormBackward = {
    Candidate{"batch_norm_backward", refuse_batch_norm_backward, emit_batch_norm_backward},
};
constexpr std::array kThresholdBackward = {
    Candidate{"elementwise", refuse_threshold_backward, emit_threshold_backward, false},
    Candidate{"elementwise", refuse_elementwise, emit_elementwise, false},  // any other threshold
};
constexpr std::array kMaxPoolPlaces = {
    Candidate{"max_pool_indices", refuse_max_pool_indices, emit_max_pool_indices, false}};
constexpr std::array kMaxPoolGradient = {
    Candidate{"max_pool_gradient", refuse_max_pool_gradient, emit_max_pool_gradient, false},
};
constexpr std::array kLinearInt8 = {
    Candidate{"linear_u8s8", refuse_linear_u8s8, emit_linear_u8s8},
    make_libtorch_row("onednn_linear_int8", refuse_onednn_linear_int8, emit_onednn_linear_int8),
};
constexpr std::array kConvInt8 = {
    Candidate{"conv_u8s8", refuse_conv_u8s8, emit_conv_u8s8},
    Candidate{"winograd_u8s8", refuse_winograd_u8s8, emit_winograd_u8s8},
    make_libtorch_row("onednn_conv_int8", refuse_onednn_conv_int8, emit_onednn_conv_int8),
};
constexpr std::array kConvTransposedInt8 = {
    Candidate{"conv_transposed_u8s8", refuse_conv_transposed_u8s8, emit_conv_transposed_u8s8},
};
constexpr std::array kLinearDynamic = {
    Candidate{"linear_dynamic_u8s8", refuse_linear_dynamic, emit_linear_dynamic},
};
constexpr std::array kQuantize = {
    Candidate{"quantize", refuse_quantize, emit_quantize},
};
constexpr std::array kAverageInt8 = {Candidate{"average_pool_u8", refuse_average_u8, emit_average_u8}};
constexpr std::array kLutInt8 = {Candidate{"lut_u8", refuse_lut_u8, emit_lut_u8}};
constexpr std::array kDequantize = {
    Candidate{"dequantize", refuse_dequantize, emit_dequantize},
};
constexpr std::array kConcat = {Candidate{"concat", refuse_concat, emit_concat, false}};
constexpr std::array kPiece = {Candidate{"view", refuse_piece, emit_piece, false}};
constexpr std::array kLstm = {Candidate{"lstm", refuse_recurrent, emit_recurrent}};
constexpr std::array kGru = {Candidate{"gru", refuse_recurrent, emit_recurrent}};
constexpr std::array kRecurrentLayer = {Candidate{"recurrent_layer", refuse_recurrent_layer, emit_recurrent_layer}};
constexpr std::array kReshape = {Candidate{"view", refuse_reshape, emit_reshape, false}};
constexpr std::array kPermute = {Candidate{"view", refuse_permute, emit_permute, false}};
constexpr std::array kSlice = {Candidate{"view", refuse_slice, emit_slice, false}};
constexpr std::array kExpand = {Candidate{"view", refuse_expand, emit_expand, false}};
constexpr std::array kElementwise = {Candidate{"elementwise", refuse_elementwise, emit_elementwise, false}};
constexpr std::array kCast = {
    Candidate{"view", refuse_same_cast, emit_reshape, false},  // what it converts is made in its dtype already
    Candidate{"elementwise", refuse_elementwise, emit_elementwise, false},
    Candidate{"cast_bf16", refuse_cast_bf16, emit_cast_bf16, false},
};
constexpr std::array kLayerNorm = {
    Candidate{"layer_norm", refuse_layer_norm, emit_layer_norm},
    Candidate{"layer_norm_bf16", refuse_layer_norm_bf16, emit_layer_norm_bf16},
};
constexpr std::array kSoftmax = {
    Candidate{"softmax", refuse_softmax, emit_softmax},
    Candidate{"softmax_bf16", refuse_softmax_bf16, emit_softmax_bf16},
};
constexpr std::array kSoftmaxF32 = {Candidate{"softmax", refuse_softmax, emit_softmax}};
constexpr std::array kAttention = {
    Candidate{"attention", refuse_attention, emit_attention},
    Candidate{"attention_bf16", refuse_attention_bf16, emit_attention},
    make_libtorch_row("flash", refuse_flash_attention, emit_flash_attention),
    make_libtorch_row("math", refuse_math_attention, emit_math_attention),
};
constexpr std::array kAttentionInt8 = {Candidate{"attention_u8s8", refuse_attention, emit_attention}};
constexpr std::array kAttentionTraining = {
    Candidate{"attention", refuse_attention, emit_attention},
    Candidate{"attention_bf16", refuse_attention_bf16, emit_attention},
};
constexpr std::array kAttentionGradient = {
    Candidate{"attention_gradient", refuse_attention_gradient, emit_attention_gradient},
    Candidate{"attention_gradient_bf16", refuse_attention_gradient_bf16, emit_attention_gradient},
};
constexpr std::array kLayerNormF32 = {Candidate{"layer_norm", refuse_layer_norm, emit_layer_norm}};
constexpr std::array kLayerNormGradient = {
    Candidate{"layer_norm_gradient", refuse_layer_norm_gradient, emit_layer_norm_gradient},
};
constexpr std::array kSoftmaxGradient = {
    Candidate{"softmax_gradient", refuse_softmax_gradient, emit_softmax_gradient, false},
};
constexpr std::array kNllLoss = {Candidate{"nll_loss", refuse_nll_loss, emit_nll_loss}};
constexpr std::array kEmbeddingGradient = {
    Candidate{"embedding_gradient", refuse_embedding_gradient, emit_embedding_gradient},
};
constexpr std::array kPool = {Candidate{"pool", refuse_pool, emit_pool}};
constexpr std::array kMean = {Candidate{"mean", refuse_mean, emit_mean}};
constexpr std::array kGather = {Candidate{"gather", refuse_gather, emit_gather}};
constexpr std::array kFindLargest = {Candidate{"find_largest", refuse_find_largest, emit_find_largest}};
constexpr std::array kGlu = {Candidate{"elementwise", refuse_glu, emit_glu, false}};
constexpr std::array kShuffle = {Candidate{"copy", refuse_shuffle, emit_shuffle, false}};
constexpr std::array kGroupNorm = {
    Candidate{"group_norm", refuse_group_norm, emit_group_norm},
    Candidate{"group_norm_bf16", refuse_group_norm_bf16, emit_group_norm},
};
constexpr std::array kInterpolate = {
    Candidate{"interpolate", refuse_interpolate, emit_interpolate},
    Candidate{"interpolate_bf16", refuse_interpolate_bf16, emit_interpolate},
};
constexpr std::array kMatmul = {
    Candidate{"matmul_f32", refuse_matmul, emit_matmul},
    Candidate{"matmul_bf16", refuse_matmul_bf16, emit_matmul},
};
constexpr std::array kAddProducts = {Candidate{"matmul_f32", refuse_add_products, emit_add_products}};
constexpr std::array kPad = {Candidate{"pad", refuse_pad, emit_pad}};
constexpr std::array kCumulate = {Candidate{"cumulate", refuse_cumulate, emit_cumulate}};
constexpr std::array kDropout = {Candidate{"dropout", refuse_dropout, emit_dropout}};
constexpr std::array kEmbedding = {Candidate{"embedding", refuse_embedding, emit_embedding}};

constexpr std::array kLists = {
    CandidateList{"aten::linear", kLinear},
    CandidateList{"lissome::linear_act", kLinear},
    CandidateList{"lissome::linear_bf16", kLinearCasts},
    CandidateList{"aten::convolution", kConv},
    CandidateList{"lissome::conv_act", kConv},
    CandidateList{"aten::convolution_backward", kConvBackward},
    CandidateList{"aten::_native_batch_norm_legit_functional", kBatchNorm},
    CandidateList{"aten::native_batch_norm_backward", kBatchNormBackward},
    CandidateList{"aten::threshold_backward", kThresholdBackward},
    CandidateList{"aten::max_pool2d_with_indices", kMaxPoolPlaces},
    CandidateList{"aten::max_pool2d_with_indices_backward", kMaxPoolGradient},
    CandidateList{"lissome::linear_int8", kLinearInt8},
    CandidateList{"lissome::linear_int8_u8", kLinearInt8},
    CandidateList{"lissome::conv_int8", kConvInt8},
    CandidateList{"lissome::conv_int8_u8", kConvInt8},
    CandidateList{"lissome::conv_transposed_int8", kConvTransposedInt8},
    CandidateList{"lissome::conv_transposed_int8_u8", kConvTransposedInt8},
    CandidateList{"lissome::linear_dynamic_int8", kLinearDynamic},
    CandidateList{"lissome::quantize", kQuantize},
    CandidateList{"lissome::dequantize", kDequantize},
    CandidateList{"lissome::dropout", kDropout},
    CandidateList{"aten::cat", kConcat},
    CandidateList{"lissome::getitem", kPiece},
    CandidateList{"aten::reshape", kReshape},
    CandidateList{"aten::view", kReshape},
    CandidateList{"aten::_unsafe_view", kReshape},
    CandidateList{"aten::flatten.using_ints", kReshape},
    CandidateList{"aten::unsqueeze", kReshape},
    CandidateList{"aten::squeeze.dim", kReshape},
    CandidateList{"aten::squeeze.dims", kReshape},
    CandidateList{"aten::squeeze", kReshape},
    CandidateList{"aten::view_as", kReshape},
    CandidateList{"aten::reshape_as", kReshape},
    CandidateList{"aten::unflatten.int", kReshape},
    CandidateList{"aten::transpose.int", kPermute},
    CandidateList{"aten::permute", kPermute},
    CandidateList{"aten::slice.Tensor", kSlice},
    CandidateList{"aten::select.int", kSlice},
    CandidateList{"aten::expand", kExpand},
    CandidateList{"aten::expand_as", kExpand},
    CandidateList{"aten::relu", kElementwise},
    CandidateList{"aten::sigmoid", kElementwise},
    CandidateList{"aten::tanh", kElementwise},
    CandidateList{"aten::silu", kElementwise},
    CandidateList{"aten::gelu", kElementwise},
    CandidateList{"aten::relu6", kElementwise},
    CandidateList{"aten::mish", kElementwise},
    CandidateList{"aten::softplus", kElementwise},
    CandidateList{"aten::log_sigmoid", kElementwise},
    CandidateList{"aten::selu", kElementwise},
    CandidateList{"aten::celu", kElementwise},
    CandidateList{"aten::prelu", kElementwise},
    CandidateList{"aten::hardshrink", kElementwise},
    CandidateList{"aten::softshrink", kElementwise},
    CandidateList{"aten::threshold", kElementwise},
    CandidateList{"aten::log1p", kElementwise},
    CandidateList{"aten::expm1", kElementwise},
    CandidateList{"aten::ceil", kElementwise},
    CandidateList{"aten::trunc", kElementwise},
    CandidateList{"aten::sign", kElementwise},
    CandidateList{"aten::isnan", kElementwise},
    CandidateList{"aten::lerp.Scalar", kElementwise},
    CandidateList{"aten::addcmul", kElementwise},
    CandidateList{"aten::addcdiv", kElementwise},
    CandidateList{"aten::hardswish", kElementwise},
    CandidateList{"aten::hardsigmoid", kElementwise},
    CandidateList{"aten::neg", kElementwise},
    CandidateList{"aten::abs", kElementwise},
    CandidateList{"aten::exp", kElementwise},
    CandidateList{"aten::sin", kElementwise},
    CandidateList{"aten::cos", kElementwise},
    CandidateList{"aten::sqrt", kElementwise},
    CandidateList{"aten::rsqrt", kElementwise},
    CandidateList{"aten::reciprocal", kElementwise},
    CandidateList{"aten::log", kElementwise},
    CandidateList{"aten::round", kElementwise},
    CandidateList{"aten::erf", kElementwise},
    CandidateList{"aten::floor", kElementwise},
    CandidateList{"aten::square", kElementwise},
    CandidateList{"aten::add.Tensor", kElementwise},
    CandidateList{"aten::add.Scalar", kElementwise},
    CandidateList{"aten::sub.Tensor", kElementwise},
    CandidateList{"aten::sub.Scalar", kElementwise},
    CandidateList{"aten::rsub.Scalar", kElementwise},
    CandidateList{"aten::mul.Tensor", kElementwise},
    CandidateList{"aten::mul.Scalar", kElementwise},
    CandidateList{"aten::div.Tensor", kElementwise},
    CandidateList{"aten::div.Scalar", kElementwise},
    CandidateList{"aten::maximum", kElementwise},
    CandidateList{"aten::minimum", kElementwise},
    CandidateList{"aten::pow.Tensor_Scalar", kElementwise},
    CandidateList{"aten::pow.Tensor_Tensor", kElementwise},
    CandidateList{"aten::clamp_min", kElementwise},
    CandidateList{"aten::clamp_max", kElementwise},
    CandidateList{"aten::clamp", kElementwise},
    CandidateList{"aten::hardtanh", kElementwise},
    CandidateList{"aten::leaky_relu", kElementwise},
    CandidateList{"aten::elu", kElementwise},
    CandidateList{"aten::eq.Tensor", kElementwise},
    CandidateList{"aten::eq.Scalar", kElementwise},
    CandidateList{"aten::ne.Tensor", kElementwise},
    CandidateList{"aten::ne.Scalar", kElementwise},
    CandidateList{"aten::lt.Tensor", kElementwise},
    CandidateList{"aten::lt.Scalar", kElementwise},
    CandidateList{"aten::le.Tensor", kElementwise},
    CandidateList{"aten::le.Scalar", kElementwise},
    CandidateList{"aten::gt.Tensor", kElementwise},
    CandidateList{"aten::gt.Scalar", kElementwise},
    CandidateList{"aten::ge.Tensor", kElementwise},
    CandidateList{"aten::ge.Scalar", kElementwise},
    CandidateList{"aten::logical_not", kElementwise},
    CandidateList{"aten::logical_and", kElementwise},
    CandidateList{"aten::logical_or", kElementwise},
    CandidateList{"aten::bitwise_not", kElementwise},
    CandidateList{"aten::bitwise_and.Tensor", kElementwise},
    CandidateList{"aten::bitwise_or.Tensor", kElementwise},
    CandidateList{"aten::__and__.Tensor", kElementwise},
    CandidateList{"aten::__or__.Tensor", kElementwise},
    CandidateList{"aten::where.self", kElementwise},
    CandidateList{"aten::where.ScalarOther", kElementwise},
    CandidateList{"aten::where.ScalarSelf", kElementwise},
    CandidateList{"aten::where.Scalar", kElementwise},
    CandidateList{"aten::masked_fill.Scalar", kElementwise},
    CandidateList{"aten::masked_fill.Tensor", kElementwise},
    CandidateList{"aten::to.dtype", kCast},
    CandidateList{"aten::_to_copy", kElementwise},
    CandidateList{"aten::to.dtype_layout", kElementwise},
    CandidateList{"aten::full", kElementwise},
    CandidateList{"aten::full_like", kElementwise},
    CandidateList{"aten::new_full", kElementwise},
    CandidateList{"aten::zeros", kElementwise},
    CandidateList{"aten::zeros_like", kElementwise},
    CandidateList{"aten::new_zeros", kElementwise},
    CandidateList{"aten::ones", kElementwise},
    CandidateList{"aten::ones_like", kElementwise},
    CandidateList{"aten::new_ones", kElementwise},
    CandidateList{"aten::arange", kElementwise},
    CandidateList{"aten::arange.start", kElementwise},
    CandidateList{"aten::arange.start_step", kElementwise},
    CandidateList{"aten::lstm.input", kLstm},
    CandidateList{"aten::gru.input", kGru},
    CandidateList{"lissome::lstm_layer", kRecurrentLayer},
    CandidateList{"lissome::gru_layer", kRecurrentLayer},
    CandidateList{"aten::layer_norm", kLayerNorm},
    CandidateList{"aten::rms_norm", kLayerNorm},
    CandidateList{"aten::softmax.int", kSoftmax},
    CandidateList{"aten::_softmax", kSoftmaxF32},
    CandidateList{"aten::log_softmax.int", kSoftmaxF32},
    CandidateList{"aten::_log_softmax", kSoftmaxF32},
    CandidateList{"aten::scaled_dot_product_attention", kAttention},
    CandidateList{"lissome::attention_int8", kAttentionInt8},
    CandidateList{"aten::max_pool1d", kPool},
    CandidateList{"aten::max_pool2d", kPool},
    CandidateList{"lissome::max_pool2d_u8", kPool},
    CandidateList{"lissome::avg_pool2d_u8", kAverageInt8},
    CandidateList{"lissome::lut_u8", kLutInt8},
    CandidateList{"aten::avg_pool1d", kPool},
    CandidateList{"aten::avg_pool2d", kPool},
    CandidateList{"aten::mean.dim", kMean},
    CandidateList{"aten::mean", kMean},
    CandidateList{"aten::sum", kMean},
    CandidateList{"aten::sum.dim_IntList", kMean},
    CandidateList{"aten::amax", kMean},
    CandidateList{"aten::amin", kMean},
    CandidateList{"aten::linalg_vector_norm", kMean},
    CandidateList{"aten::adaptive_avg_pool2d", kMean},
    CandidateList{"aten::group_norm", kGroupNorm},
    CandidateList{"aten::instance_norm", kGroupNorm},
    CandidateList{"aten::glu", kGlu},
    CandidateList{"aten::pixel_shuffle", kShuffle},
    CandidateList{"aten::pixel_unshuffle", kShuffle},
    CandidateList{"aten::upsample_nearest2d.vec", kInterpolate},
    CandidateList{"aten::upsample_nearest2d", kInterpolate},
    CandidateList{"aten::upsample_bilinear2d.vec", kInterpolate},
    CandidateList{"aten::upsample_bilinear2d", kInterpolate},
    CandidateList{"aten::matmul", kMatmul},
    CandidateList{"aten::mm", kMatmul},
    CandidateList{"aten::bmm", kMatmul},
    CandidateList{"lissome::add_products", kAddProducts},
    CandidateList{"aten::pad", kPad},
    CandidateList{"aten::constant_pad_nd", kPad},
    CandidateList{"aten::cumsum", kCumulate},
    CandidateList{"aten::embedding", kEmbedding},
    CandidateList{"aten::index.Tensor", kGather},
    CandidateList{"aten::index_select", kGather},
    CandidateList{"aten::gather", kGather},
    CandidateList{"aten::argmax", kFindLargest},
    CandidateList{"aten::native_layer_norm", kLayerNormF32},
    CandidateList{"aten::native_layer_norm_backward", kLayerNormGradient},
    CandidateList{"aten::_safe_softmax", kSoftmaxF32},
    CandidateList{"aten::_softmax_backward_data", kSoftmaxGradient},
    CandidateList{"aten::_log_softmax_backward_data", kSoftmaxGradient},
    CandidateList{"aten::nll_loss_forward", kNllLoss},
    CandidateList{"aten::nll_loss2d_forward", kNllLoss},
    CandidateList{"aten::_scaled_dot_product_flash_attention_for_cpu", kAttentionTraining},
    CandidateList{"aten::_scaled_dot_product_flash_attention_for_cpu_backward", kAttentionGradient},
    CandidateList{"aten::embedding_dense_backward", kEmbeddingGradient},
    CandidateList{"aten::gelu_backward", kElementwise},
    CandidateList{"aten::silu_backward", kElementwise},
    CandidateList{"aten::tanh_backward", kElementwise},
    CandidateList{"aten::sigmoid_backward", kElementwise},
    CandidateList{"aten::scalar_tensor", kElementwise},
};

}  // namespace

std::span<const CandidateList> candidate_lists() { return kLists; }

std::span<const Candidate> find_candidates(const Op& op) {
  for (const CandidateList& list : kLists) {
    if (op.is(list.op)) return list.rows;
  }
  return {};
}

std::vector<std::string> list_kernel_names() {
  std::vector<std::string> names = {std::string(kReferenceKernel), std::string(kOwnKernel)};
  for (const CandidateList& list : kLists) {
    for (const Candidate& row : list.rows) {
      if (std::find(names.begin(), names.end(), row.name) == names.end()) names.emplace_back(row.name);
    }
  }
  return names;
}

}  // namespace lissome
