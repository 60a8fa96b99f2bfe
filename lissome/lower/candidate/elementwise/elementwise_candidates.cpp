// See candidate_table.cpp.
#include <array>

#include "lissome/lower/candidate/candidate_families.h"
#include "lissome/lower/candidate/elementwise/elementwise_candidates.h"
#include "lissome/lower/candidate/move/move_candidates.h"

namespace lissome {
namespace {

constexpr std::array kThresholdBackward = {
    Candidate{"elementwise", refuse_threshold_backward, emit_threshold_backward, false},
    Candidate{"elementwise", refuse_elementwise, emit_elementwise, false},  // any other threshold
};
constexpr std::array kQuantize = {
    Candidate{"quantize", refuse_quantize, emit_quantize},
};
constexpr std::array kLutInt8 = {Candidate{"lut_u8", refuse_lut_u8, emit_lut_u8}};
constexpr std::array kDequantize = {
    Candidate{"dequantize", refuse_dequantize, emit_dequantize},
};
constexpr std::array kElementwise = {Candidate{"elementwise", refuse_elementwise, emit_elementwise, false}};
constexpr std::array kCast = {
    Candidate{"view", refuse_same_cast, emit_reshape, false},  // what it converts is made in its dtype already
    Candidate{"elementwise", refuse_elementwise, emit_elementwise, false},
    Candidate{"cast_bf16", refuse_cast_bf16, emit_cast_bf16, false},
};
constexpr std::array kMean = {Candidate{"mean", refuse_mean, emit_mean}};
constexpr std::array kGlu = {Candidate{"elementwise", refuse_glu, emit_glu, false}};
constexpr std::array kDropout = {Candidate{"dropout", refuse_dropout, emit_dropout}};

constexpr std::array kElementwiseLists = {
    CandidateList{"aten::threshold_backward", kThresholdBackward},
    CandidateList{"lissome::quantize", kQuantize},
    CandidateList{"lissome::dequantize", kDequantize},
    CandidateList{"lissome::dropout", kDropout},
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
    CandidateList{"lissome::lut_u8", kLutInt8},
    CandidateList{"aten::mean.dim", kMean},
    CandidateList{"aten::mean", kMean},
    CandidateList{"aten::sum", kMean},
    CandidateList{"aten::sum.dim_IntList", kMean},
    CandidateList{"aten::amax", kMean},
    CandidateList{"aten::amin", kMean},
    CandidateList{"aten::linalg_vector_norm", kMean},
    CandidateList{"aten::glu", kGlu},
    CandidateList{"aten::gelu_backward", kElementwise},
    CandidateList{"aten::silu_backward", kElementwise},
    CandidateList{"aten::tanh_backward", kElementwise},
    CandidateList{"aten::sigmoid_backward", kElementwise},
    CandidateList{"aten::scalar_tensor", kElementwise},
};

}  // namespace

std::span<const CandidateList> elementwise_candidates() { return kElementwiseLists; }

}  // namespace lissome
