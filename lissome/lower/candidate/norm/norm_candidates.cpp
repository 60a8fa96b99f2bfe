// See candidate_table.cpp.
#include <array>

#include "lissome/lower/candidate/candidate_families.h"
#include "lissome/lower/candidate/norm/norm_candidates.h"

namespace lissome {
namespace {

constexpr std::array kBatchNorm = {Candidate{"batch_norm", refuse_batch_norm, emit_batch_norm}};
constexpr std::array kBatchNormBackward = {
    Candidate{"batch_norm_backward", refuse_batch_norm_backward, emit_batch_norm_backward},
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
constexpr std::array kLayerNormF32 = {Candidate{"layer_norm", refuse_layer_norm, emit_layer_norm}};
constexpr std::array kLayerNormGradient = {
    Candidate{"layer_norm_gradient", refuse_layer_norm_gradient, emit_layer_norm_gradient},
};
constexpr std::array kSoftmaxGradient = {
    Candidate{"softmax_gradient", refuse_softmax_gradient, emit_softmax_gradient, false},
};
constexpr std::array kGroupNorm = {
    Candidate{"group_norm", refuse_group_norm, emit_group_norm},
    Candidate{"group_norm_bf16", refuse_group_norm_bf16, emit_group_norm},
};

constexpr std::array kNormLists = {
    CandidateList{"aten::_native_batch_norm_legit_functional", kBatchNorm},
    CandidateList{"aten::native_batch_norm_backward", kBatchNormBackward},
    CandidateList{"aten::layer_norm", kLayerNorm},
    CandidateList{"aten::rms_norm", kLayerNorm},
    CandidateList{"aten::softmax.int", kSoftmax},
    CandidateList{"aten::_softmax", kSoftmaxF32},
    CandidateList{"aten::log_softmax.int", kSoftmaxF32},
    CandidateList{"aten::_log_softmax", kSoftmaxF32},
    CandidateList{"aten::group_norm", kGroupNorm},
    CandidateList{"aten::instance_norm", kGroupNorm},
    CandidateList{"aten::native_layer_norm", kLayerNormF32},
    CandidateList{"aten::native_layer_norm_backward", kLayerNormGradient},
    CandidateList{"aten::_safe_softmax", kSoftmaxF32},
    CandidateList{"aten::_softmax_backward_data", kSoftmaxGradient},
    CandidateList{"aten::_log_softmax_backward_data", kSoftmaxGradient},
};

}  // namespace

std::span<const CandidateList> norm_candidates() { return kNormLists; }

}  // namespace lissome
