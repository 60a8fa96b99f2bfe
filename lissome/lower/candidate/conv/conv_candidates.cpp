// See candidate_table.cpp.
#include <array>

#include "lissome/lower/candidate/candidate_families.h"
#include "lissome/lower/candidate/candidate_libtorch.h"
#include "lissome/lower/candidate/conv/conv_candidates.h"

namespace lissome {
namespace {

constexpr std::array kConv = {
    make_joining_row("inverted_f32", "conv_f32", refuse_large_inverted_f32, emit_inverted_f32, true),
    make_joining_row("separable_f32", "conv_f32", refuse_large_separable_f32, emit_separable_f32, true),
    Candidate{"conv_f32", refuse_conv_f32, emit_conv_f32},
    make_joining_row("separable_f32", "conv_f32", refuse_separable_f32, emit_separable_f32, false),
    make_joining_row("inverted_f32", "conv_f32", refuse_inverted_f32, emit_inverted_f32, false),
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
constexpr std::array kConvInt8 = {
    Candidate{"conv_u8s8", refuse_conv_u8s8, emit_conv_u8s8},
    Candidate{"winograd_u8s8", refuse_winograd_u8s8, emit_winograd_u8s8},
    make_libtorch_row("onednn_conv_int8", refuse_onednn_conv_int8, emit_onednn_conv_int8),
};
constexpr std::array kConvTransposedInt8 = {
    Candidate{"conv_transposed_u8s8", refuse_conv_transposed_u8s8, emit_conv_transposed_u8s8},
};

constexpr std::array kConvLists = {
    CandidateList{"aten::convolution", kConv},
    CandidateList{"lissome::conv_act", kConv},
    CandidateList{"aten::convolution_backward", kConvBackward},
    CandidateList{"lissome::conv_int8", kConvInt8},
    CandidateList{"lissome::conv_int8_u8", kConvInt8},
    CandidateList{"lissome::conv_transposed_int8", kConvTransposedInt8},
    CandidateList{"lissome::conv_transposed_int8_u8", kConvTransposedInt8},
};

}  // namespace

std::span<const CandidateList> conv_candidates() { return kConvLists; }

}  // namespace lissome
